"""`scan()` of an offloaded topic against `pyarrow.dataset` over its files; `head` and `tail`.

In one process that has done it before, and each time in a new one, whose whole time is taken. The
commands are new processes too: of the offloaded topic, and of the same one with all rows hot.
"""

import json
import operator
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.contenders.arrow_scan import dataset_rows, scan_rows
from benchmarks.data.topics import LONG
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from reader.model import Topic
from reader.storage import open_storage

_SHOWN = 10
_MAIN = "from offloader.cli.app import main; main()"


def _run(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(LONG)
    config = world.config("cold")
    world.offloaded(config, topic)
    directory = open_storage(config.storage).table_uri(Topic.parse(topic.name))
    expected = (topic.rows, topic.sum_of_ids)
    files = {name: _settings_file(world.directory, name, world.settings(name)) for name in _STORES}
    arguments = {
        "scan": ("scan", files["cold"], topic.name),
        "pyarrow.dataset": ("dataset", directory),
    }
    new = {name: partial(_in_new_process, *parts) for name, parts in arguments.items()}
    first, last = range(_SHOWN), range(topic.rows - _SHOWN, topic.rows)
    seconds = take_turns(
        {
            "scan, warm": Contender(lambda: scan_rows(files["cold"], topic.name), expected),
            "pyarrow.dataset, warm": Contender(lambda: dataset_rows(directory), expected),
            **{f"{name}, new process": Contender(run, expected) for name, run in new.items()},
            **{
                f"{command}, {where}": Contender(
                    partial(_shown, command, files[store], topic.name), list(ids)
                )
                for store, where in _STORES.items()
                for command, ids in (("head", first), ("tail", last))
            },
        },
        bench.repeats,
    )
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    for how in ("warm", "new process"):
        ratio = paired(
            seconds[f"scan, {how}"], seconds[f"pyarrow.dataset, {how}"], operator.truediv
        )
        results.append(bench.result(f"scan: of pyarrow.dataset, {how}", "x", ratio, at_most(1.15)))
    for where in _STORES.values():
        taken = seconds[f"head, {where}"]
        results.append(bench.result(f"head, {where}: in time", "s", taken, at_most(1.5)))
    return results


_STORES = {"cold": "offloaded", "none": "hot"}


def _settings_file(directory: Path, name: str, settings: dict[str, dict[str, Any]]) -> str:
    lines: list[str] = []
    for section, keys in settings.items():
        lines += [f"[{section}]", *(f"{key} = {json.dumps(one)}" for key, one in keys.items())]
    path = directory / f"{name}.toml"
    path.write_text("\n".join(lines))
    return str(path)


def _in_new_process(*arguments: str) -> tuple[int, ...]:
    return tuple(_answer("-m", "benchmarks.contenders.arrow_scan", *arguments))


def _shown(command: str, settings: str, topic: str) -> list[int]:
    shown = _answer(
        "-c", _MAIN, command, topic, "-n", str(_SHOWN), "--format", "json", "--config", settings
    )
    return [row["id"] for row in shown]


def _answer(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BrokenCaseError(f"the new process exited with {done.returncode}")
    return json.loads(done.stdout)


CASES = (
    Case(
        "scan_arrow",
        "scan() of an offloaded topic against pyarrow.dataset over its files; head and tail",
        _run,
        (LONG,),
    ),
)
