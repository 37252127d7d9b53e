"""The kinds of histories, by the names that `python -m tests.simulation` gives them."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulation.compacted.view_histories import draw_view
from tests.simulation.run import Draw
from tests.simulation.sinks.sink_histories import draw_sink
from tests.simulation.steps import draw
from tests.simulation.streams.stream_histories import draw_stream, draw_troubled_stream


@dataclass(frozen=True, slots=True)
class HistoryKind:
    """How histories are drawn, and how many of them `make test` runs, from ``seed`` on."""

    draw: Draw
    seed: int
    some: int


HISTORIES: Mapping[str, HistoryKind] = {
    "world": HistoryKind(draw, 1_000_000, 150),
    "streams": HistoryKind(draw_stream, 3_000_000, 60),
    "troubled-streams": HistoryKind(draw_troubled_stream, 9_000_000, 60),
    "sinks": HistoryKind(draw_sink, 7_000_000, 100),
    "views": HistoryKind(draw_view, 5_000_000, 60),
}
