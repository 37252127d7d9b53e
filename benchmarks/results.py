"""The results: one JSON list with machine and versions, and a table."""

import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Result

RESULTS, MACHINE = "latest.json", "machine.json"

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "numpy", "numba", "pulsar-client")

Json = dict[str, Any]


def as_json(result: Result, run: str) -> Json:
    """{case, measure, value, target, met, runs} and what belongs to it.

    `value` is the median of `runs`, `spread` their least and greatest. `target`: a number, which
    `side` says to be a least (>=) or a most (<=); null, like `met`, for what has none. `run`: when
    and on what, a key of machine.json.
    """
    return {
        "case": result.case,
        "measure": result.measure,
        "unit": result.unit,
        "value": result.value,
        "target": result.target.value if result.target else None,
        "side": result.target.side if result.target else None,
        "met": result.met,
        "runs": list(result.runs),
        "spread": [min(result.runs), max(result.runs)],
        "run": run,
    }


def merged(before: Iterable[Json], new: Sequence[Json], order: Sequence[str]) -> list[Json]:
    """The new results in place of those of the same cases; other cases' stay.

    In the order of the cases, then in their own. Cases that are not in `order` any more go.
    """
    measured = {one["case"] for one in new}
    kept = [one for one in before if one["case"] not in measured and one["case"] in order]
    return sorted([*kept, *new], key=lambda one: order.index(one["case"]))


def read(path: Path) -> Any:
    """A JSON file that an earlier run wrote; None where there is none, or a broken one."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def save(folder: Path, new: Sequence[Result], about: Json, order: Sequence[str]) -> list[Json]:
    """Write both files into `folder`; all results that they hold now.

    about: the run's `context`. The other cases' results stay, each with the run it comes from.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run = str(about["at"])
    before = read(folder / RESULTS)
    runs = read(folder / MACHINE)
    known = [one for one in before if isinstance(one, dict)] if isinstance(before, list) else []
    found = merged(known, [as_json(one, run) for one in new], order)
    runs = (runs if isinstance(runs, dict) else {}) | {run: about}
    used = {one["run"] for one in found}
    _write(folder / RESULTS, found)
    _write(folder / MACHINE, {name: one for name, one in runs.items() if name in used})
    return found


def _write(path: Path, value: Any) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value, indent=1) + "\n")
    part.replace(path)


def row(result: Json) -> list[str]:
    """One line of the table: measure, value, spread, target, whether it is met."""
    unit = "" if result["unit"] == "x" else f" {result['unit']}"
    low, high = result["spread"]
    target = "" if result["target"] is None else f"{result['side']} {_number(result['target'])}"
    met = {True: "yes", False: "NO", None: ""}[result["met"]]
    value = f"{_number(result['value'])}{unit}"
    return [result["measure"], value, f"{_number(low)} to {_number(high)}", target, met]


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def context(settings: Json) -> Json:
    """When, on what machine, with which versions and settings."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(memory / (1 << 30), 1),
            "load_before": round(os.getloadavg()[0], 2),
        },
        "compiled_python_is_kept": not sys.dont_write_bytecode,
        "versions": {"python": platform.python_version()} | {n: version(n) for n in _PACKAGES},
        "settings": settings,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
