"""How long tests took, by folder: `python -m tests.durations build/junit/*.xml` prints a table.

`make test` and `make test-servers` write these files. A test's time is what it and the fixtures
that it starts take: the first one of a run that needs a server pays for the server.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

_DEPTH = 2
"""Folders below `tests` that get a line of their own."""


def table(reports: Iterable[Path]) -> str:
    """Return a Markdown table: tests and seconds of each folder, by report, the slowest first."""
    lines = ["| folder | run by | tests | s |", "| --- | --- | --- | --- |"]
    for report in reports:
        seconds: dict[str, list[float]] = defaultdict(list)
        for case in ElementTree.parse(report).iter("testcase"):
            seconds[_folder(case.get("classname", ""))].append(float(case.get("time", "0")))
        for folder, took in sorted(seconds.items(), key=lambda item: -sum(item[1])):
            lines.append(f"| `{folder}` | {report.stem} | {len(took)} | {sum(took):.0f} |")
        every = [took for folder in seconds.values() for took in folder]
        lines.append(f"| all | {report.stem} | {len(every)} | {sum(every):.0f} |")
    return "\n".join(lines)


def _folder(classname: str) -> str:
    """`tests.spark.sink.test_kills.TestX` is in `spark/sink`."""
    names = classname.split(".")
    module = next((at for at, name in enumerate(names) if name.startswith("test_")), len(names))
    return "/".join(names[1:module][:_DEPTH]) or "."


if __name__ == "__main__":
    print(table(map(Path, sys.argv[1:])))
