"""What was measured, as a JSON file and as a chart."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from benchmarks.bench import Result
from demo.chart import COLORS, NAMES

__all__ = ["chart", "save"]

_LOGARITHMIC = 20  # the axis is, if the slowest takes so many times as long as the fastest

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "numba", "pulsar-client")


def save(path: Path, results: Sequence[Result], settings: dict[str, Any]) -> None:
    """A list of objects: case, measure, value, unit, runs, least, most, and what it ran on."""
    context = {
        "machine": _machine(),
        "versions": {"python": platform.python_version()} | {n: version(n) for n in _PACKAGES},
        "settings": settings,
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    found = [
        asdict(one) | {"least": min(one.runs), "most": max(one.runs)} | context for one in results
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / (1 << 30), 1),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def chart(path: Path, results: Sequence[Result], rows: int) -> None:
    """Bars of seconds, a group a query and a bar a tier, on a logarithmic axis."""
    timed = [one for one in results if one.unit == "s" and one.measure in COLORS]
    cases = list(dict.fromkeys(one.case for one in timed))
    if not cases:
        return
    figure, axes = plt.subplots(figsize=(10, 1 + 1.1 * len(cases)), layout="constrained")
    height = 0.26
    for offset, tier in enumerate(COLORS):
        ours = {one.case: one for one in timed if one.measure == tier}
        values = [ours[case].value for case in cases]
        places = [number + (offset - 1) * height for number in range(len(cases))]
        spread = [
            [ours[case].value - min(ours[case].runs) for case in cases],
            [max(ours[case].runs) - ours[case].value for case in cases],
        ]
        axes.barh(
            places,
            values,
            height,
            xerr=spread,
            color=COLORS[tier],
            label=NAMES[tier],
            error_kw={"ecolor": "#444444", "capsize": 2, "elinewidth": 1},
        )
        for place, case in zip(places, cases, strict=True):
            text = f"  {ours[case].value:.2f} s,  {rows / ours[case].value:,.0f} rows/s"
            axes.text(max(ours[case].runs), place, text, va="center", fontsize=9)
    axes.set_yticks(range(len(cases)), cases)
    axes.invert_yaxis()
    shortest = min(min(one.runs) for one in timed)
    longest = max(max(one.runs) for one in timed)
    scale = ""
    if longest / shortest > _LOGARITHMIC:
        scale = ", logarithmic"
        axes.set_xscale("log")
        axes.set_xlim(shortest / 1.5, longest * (longest / shortest) ** 0.45)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    else:
        axes.set_xlim(0, longest * 1.4)
    axes.set_xlabel(f"seconds{scale} (median; line: fastest to slowest run)")
    axes.set_title(f"Spark SQL over {rows:,} rows of one topic, by tier", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3)
    figure.savefig(path, dpi=130)
    plt.close(figure)
