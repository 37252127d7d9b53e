"""The chart: where each month lay while it was queried, and how long each tier took."""

from collections.abc import Mapping
from pathlib import Path
from statistics import median

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt

from demo.queries import MONTHS
from reader.model import Tier

COLORS = {Tier.PARQUET: "#2f6fb0", Tier.BOOKKEEPER: "#e08a2e", Tier.BROKER: "#6c9a4b"}
NAMES = {Tier.PARQUET: "Parquet", Tier.BOOKKEEPER: "BookKeeper", Tier.BROKER: "broker"}


def draw(
    path: Path,
    delays: Mapping[int, float],
    tiers: Mapping[int, Tier],
    seconds: Mapping[Tier, list[float]],
    rows: int,
) -> None:
    """Write a PNG.

    delays: month → mean delay in minutes; tiers: month → the tier that the query over the whole
    year read it from; seconds: tier → the times of one query over all `rows`.
    """
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.6), width_ratios=(1.25, 1), layout="constrained"
    )
    months = sorted(delays)
    bars = left.bar(
        [MONTHS[month - 1] for month in months],
        [delays[month] for month in months],
        color=[COLORS[tiers[month]] for month in months],
    )
    left.bar_label(bars, fmt="%.0f", fontsize=9, padding=2)
    for tier in COLORS:
        if tier in tiers.values():
            left.bar([0], [0], color=COLORS[tier], label=f"read from {NAMES[tier]}")
    left.set_title("One SQL query, three tiers", loc="left", fontsize=12)
    left.set_ylabel("mean delay of departure, minutes")
    left.set_ylim(0, max(delays.values()) * 1.25)
    left.legend(loc="upper center", ncols=3, frameon=False, fontsize=9)

    names = [tier for tier in COLORS if tier in seconds]
    times = [median(seconds[tier]) for tier in names]
    spread = [
        [time - min(seconds[tier]) for tier, time in zip(names, times, strict=True)],
        [max(seconds[tier]) - time for tier, time in zip(names, times, strict=True)],
    ]
    positions = range(len(names))
    right.barh(
        positions,
        times,
        xerr=spread,
        color=[COLORS[tier] for tier in names],
        error_kw={"ecolor": "#444444", "capsize": 3, "elinewidth": 1},
    )
    right.set_yticks(positions, [NAMES[tier] for tier in names])
    right.invert_yaxis()
    furthest = max(max(times) for times in seconds.values())
    right.set_xlim(0, furthest * 1.55)
    for position, tier, time in zip(positions, names, times, strict=True):
        right.text(
            max(seconds[tier]) + furthest * 0.03,
            position,
            f"{time:.2f} s\n{rows / time:,.0f} rows/s",
            va="center",
            fontsize=10,
        )
    right.set_xlabel("seconds (median; line: fastest to slowest run)")
    right.set_title(f"The same query over {rows:,} rows, by tier", loc="left", fontsize=12)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
