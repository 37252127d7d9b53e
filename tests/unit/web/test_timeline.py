"""Segments on a time axis: none over another, whatever the producers' clocks say."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offloader.web.timeline import Block, merged, placed, segment_block
from reader.model import Partition, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason

IN_TABLE = TierReason(Reason.IN_TABLE, "bookkeeper")
NOW = 1000.0


def cold(ledger: int, low: float | None, high: float | None, partition: int = 0) -> Block:
    first, last = (None if one is None else int(one * 1e6) for one in (low, high))
    segment = Segment(
        partition=Partition(Topic("a", "b", "c"), partition),
        ledger_id=ledger,
        state="offloaded",
        tier=Tier.PARQUET,
        reason=IN_TABLE,
        last_entry=4,
        entries=5,
        bytes=500,
        min_publish_time=first,
        max_publish_time=last,
        rows=50,
    )
    return segment_block(segment)


def lost_block(ledger: int) -> Block:
    partition, reason = Partition(Topic("a", "b", "c"), 0), TierReason(Reason.LOST)
    return segment_block(Segment(partition, ledger, "lost", Tier.PARQUET, reason, -1, 0, 0, rows=0))


def hot(ledger: int, closed: float | None, state: str = "sealed") -> Block:
    segment = Segment(
        partition=Partition(Topic("a", "b", "c"), 0),
        ledger_id=ledger,
        state=state,  # type: ignore[arg-type]
        tier=Tier.BOOKKEEPER,
        reason=IN_TABLE,
        last_entry=4,
        entries=5,
        bytes=100,
        closed_at=None if closed is None else int(closed * 1000),
    )
    return segment_block(segment)


def empty(ledger: int, closed: float | None, state: str = "sealed") -> Block:
    return replace(hot(ledger, closed, state), entries=0, empty=True)


def spans(blocks: Sequence[Block]) -> list[tuple[int, float, float]]:
    return [(one.first, one.begin, one.end) for one in blocks]


def test_published_then_closed_then_open() -> None:
    blocks = [hot(4, None, "open"), cold(1, 100, 200), hot(3, 400), cold(2, 210, 300)]
    assert spans(placed(blocks, NOW)) == [
        (1, 100, 200),
        (2, 210, 300),
        (3, 300, 400),
        (4, 400, NOW),
    ]


def test_what_is_empty_takes_no_time() -> None:
    blocks = [cold(1, 100, 200), empty(2, 300), hot(3, 400), empty(4, None, "open")]
    found = placed(blocks, NOW)
    assert spans(found) == [(1, 100, 200), (2, 300, 300), (3, 300, 400), (4, 400, 400)]
    assert [one.empty for one in found] == [False, True, False, True]
    assert spans(placed([empty(1, None, "open")], NOW)) == [(1, NOW, NOW)]
    assert not lost_block(1).empty, "nobody knows what it had"


def test_clocks_that_are_wrong() -> None:
    blocks = [cold(1, 100, 9e9), cold(2, -5e9, 300), hot(3, 400), hot(4, None, "open")]
    found = spans(placed(blocks, NOW))
    assert found == [(1, 100, 400), (2, 400, 400), (3, 400, 400), (4, 400, NOW)]
    assert placed(blocks, NOW)[0].published_to == 9e9, "what is shown is what it says"


def test_partitions_are_apart() -> None:
    found = placed([cold(5, 10, 20, partition=1), cold(4, 500, 600)], NOW)
    assert [(one.partition, one.begin) for one in found] == [(0, 500), (1, 10)]


def test_what_has_no_time_stands_before_what_has_one() -> None:
    lost = lost_block(1)
    found = placed([lost, cold(2, None, None), cold(3, 100, 200)], NOW)
    assert spans(found) == [(1, 100, 100), (2, 100, 100), (3, 100, 200)]
    assert spans(placed([lost, hot(2, 300), cold(3, 50, 400)], NOW))[0] == (1, 300, 300)
    assert spans(placed([lost, cold(2, 9e9, 9e9), hot(3, 400)], NOW))[0] == (1, 400, 400)
    alone = placed([lost], NOW)
    assert spans(alone) == [(1, NOW, NOW)]
    json.dumps([one.value() for one in [*found, *alone]], allow_nan=False)


@given(
    st.lists(
        st.tuples(st.none() | st.floats(-1e4, 1e4), st.none() | st.floats(-1e4, 1e4), st.booleans())
    )
)
def test_none_lies_over_another(some: list[tuple[float | None, float | None, bool]]) -> None:
    blocks = [
        hot(ledger, low) if is_hot else cold(ledger, low, high)
        for ledger, (low, high, is_hot) in enumerate(some)
    ]
    found = placed(blocks, NOW)
    assert [one.first for one in found] == list(range(len(some)))
    before = found[0].begin if found else 0.0
    for one in found:
        assert before <= one.begin <= one.end <= NOW
        assert math.isfinite(one.begin)
        before = one.end


@pytest.mark.parametrize("count", [0, 1, 100, 101, 5000])
def test_neighbours_stand_for_each_other(count: int) -> None:
    blocks = placed([cold(n, n, n + 1) for n in range(count)], 1e6)
    found = merged(blocks, 100)
    assert len(found) <= 100
    assert sum(one.ledgers or 0 for one in found) == count
    assert sum(one.rows or 0 for one in found) == 50 * count
    if count > 100:
        newest = found[-50:]
        assert [one.ledgers for one in newest] == [1] * 50, "the newest are as they are"
        first = found[0]
        assert (first.first, first.begin) == (0, 0)
        assert first.last == (first.ledgers or 0) - 1
        assert first.end == first.last + 1


def test_only_neighbours_of_one_kind() -> None:
    lost = lost_block(3)
    assert (lost.tier, lost.state) == (Tier.PARQUET, "lost"), "as the plan has them"
    blocks = [cold(n, n, n + 1) for n in range(1000)]
    blocks[3] = lost
    found = merged(placed(blocks, 1e6), 10)
    assert [one.first for one in found if one.state == "lost"] == [3]
    apart = [empty(n, n) if n == 3 else hot(n, n) for n in range(1000)]
    found = merged(placed(apart, 1e6), 10)
    assert [one.first for one in found if one.empty] == [3]
    unknown = [replace(one, ledgers=None) for one in placed(blocks, 1e6)]
    assert merged(unknown, 10)[0].ledgers is None
