"""The same query from each tier alone: timed, and compared row by row."""

import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from demo import queries
from demo.chart import NAMES
from demo.queries import Answer
from reader.model import Tier
from testbed.screen import Screen

_REPEATS = 3
_POSITION = ("__partition", "__ledgerId", "__entryId", "__batchIndex")


def time_tiers(
    screen: Screen, spark: Any, frames: Mapping[Tier, Any], truth: Answer
) -> dict[Tier, list[float]]:
    """Seconds of each run after a warm-up, tier by tier; the runs take turns.

    frames: tier → the whole topic, from that tier alone.
    """
    seconds: dict[Tier, list[float]] = {tier: [] for tier in frames}
    wrong = dict.fromkeys(frames, "")
    for tier, frame in frames.items():
        frame.createOrReplaceTempView(f"flights_{tier}")
    for number in range(_REPEATS + 1):
        for tier in frames:
            begun = time.monotonic()
            rows = spark.sql(queries.by_carrier_and_month(f"flights_{tier}")).collect()
            if number > 0:  # the first is a warm-up
                seconds[tier].append(time.monotonic() - begun)
            wrong[tier] = wrong[tier] or queries.differences(queries.found(rows), truth)
    _show(screen, seconds, sum(count for count, _ in truth.values()))
    for tier in frames:
        screen.check(f"{NAMES[tier]} alone agrees with pandas", not wrong[tier], wrong[tier])
    wrong_tier = _first_different(frames)
    screen.check("all columns of all rows are the same in all three", not wrong_tier, wrong_tier)
    return seconds


def _show(screen: Screen, seconds: Mapping[Tier, list[float]], rows: int) -> None:
    table = []
    for tier, times in seconds.items():
        typical = median(times)
        spread = f"{min(times):.2f} to {max(times):.2f}"
        ratio = f"{typical / median(seconds[Tier.PARQUET]):.1f} x"
        table.append([NAMES[tier], f"{typical:.2f}", spread, f"{rows / typical:,.0f}", ratio])
    screen.table(["tier", "seconds", f"of {_REPEATS} runs", "rows/s", "of Parquet"], table)


def _first_different(frames: Mapping[Tier, Any]) -> str:
    """The first tier whose rows differ from the others', or "": in every column."""
    order = [(name, "ascending") for name in _POSITION]
    first = None
    for tier, frame in frames.items():
        rows = frame.toArrow().sort_by(order)
        first = rows if first is None else first
        if not rows.equals(first):
            return tier
    return ""
