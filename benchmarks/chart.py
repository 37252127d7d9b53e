"""The charts: each target and the measured value relative to it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

_MET, _MISSED = "#2f6fb0", "#e08a2e"
_LEAST, _MOST = 0.05, 20.0


def share(value: float, target: float, side: str) -> float:
    """Return how much of its target a value reaches: 1 just meets it, 2 is twice as good.

    Between 0.05 and 20, so that one bar does not make all others invisible.
    """
    if value == target:
        return 1.0
    if side == "<=" and value <= 0:
        return _MOST
    return min(_MOST, max(_LEAST, value / target if side == ">=" else target / value))


def chart(path: Path, results: Sequence[dict[str, Any]]) -> None:
    """A bar for each result with a target, on a logarithmic axis of shares; SVG."""
    wanted = [one for one in results if one["target"] is not None]
    if not wanted:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(11, 1.2 + 0.36 * len(wanted)), layout="constrained")
    shares = [share(one["value"], one["target"], one["side"]) for one in wanted]
    places = range(len(wanted))
    colors = [_MET if one["met"] else _MISSED for one in wanted]
    axes.barh(places, [one - 1 for one in shares], left=1, color=colors, height=0.66)
    for place, reached, one in zip(places, shares, wanted, strict=True):
        text = (
            f"{_short(one['value'])} (target {one['side']} {_short(one['target'])} {one['unit']})"
        )
        # Always right of the line, where a missed target leaves room.
        axes.annotate(
            text,
            (max(reached, 1), place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=8,
        )
    axes.set_yticks(places, [f"{one['case']}: {one['measure']}" for one in wanted], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(_LEAST / 1.5, _MOST * 12)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.axvline(1, color="#444444", linewidth=1)
    axes.set_xlabel("how much of its target each value reaches (right of the line: met)")
    axes.set_title("pulsar-lake: measured against its targets", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
    plt.close(figure)


def _short(value: float) -> str:
    return f"{value:.3g}"
