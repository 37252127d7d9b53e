"""A plan: for each segment its tier, why, and what is read of it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.config import ReadConfig
from reader.model import Position, Segment, SegmentState, Tier
from reader.model.reasons import Pruned, Reason, TierReason
from reader.plan.cold_files import ColdFile
from reader.plan.filters import Predicate
from reader.plan.offloaded import ColdPart
from reader.plan.plan import Known, Plan, PlannedSegment, make_plan, plan_snapshot
from reader.plan.publish_times import LearnedTimes
from reader.plan.snapshot import Ciphertext, Snapshot
from reader.table import TopicTable
from tests.unit.plan.values import TOPIC, segment, snapshot, time

SHORT_TAIL = TierReason(Reason.SHORT_TAIL)


def tail(ledger: int = 9, entries: int = 5) -> Segment:
    return replace(segment(ledger, entries), state="open", tier=Tier.BROKER, reason=SHORT_TAIL)


def table_segment(
    ledger: int, state: SegmentState = "offloaded", low: int = 0, high: int = 9, rows: int = 50
) -> Segment:
    lost = state == "lost"
    return Segment(
        partition=segment().partition,
        ledger_id=ledger,
        state=state,
        tier=Tier.PARQUET,
        reason=TierReason(Reason.LOST) if lost else TierReason(Reason.IN_TABLE, "bookkeeper"),
        last_entry=-1 if lost else 9,
        entries=0 if lost else 10,
        bytes=100,
        min_publish_time=low,
        max_publish_time=high,
        rows=0 if lost else rows,
    )


def with_table(*hot: Segment, unreadable: tuple[Segment, ...] = ()) -> Snapshot:
    return replace(snapshot(*hot), version=3, uri="/t", unreadable=unreadable)


COLD = ColdPart(
    (table_segment(1), table_segment(2, low=10, high=19), table_segment(3, "lost")),
    (
        ColdFile("a", 10, 50, {"__publishTime": (0, 9)}),
        ColdFile("b", 20, 50, {"__publishTime": (10, 19)}),
    ),
)


def of(plan: Plan, ledger: int) -> PlannedSegment:
    [found] = [one for one in plan.segments if one.segment.ledger_id == ledger]
    return found


@pytest.mark.parametrize("columns", [None, ["__eventTime"], ["__index"], []])
def test_what_is_shown_of_a_segment_is_what_is_read(columns: list[str] | None) -> None:
    """The tier does not depend on the query's columns."""
    plan = plan_snapshot(snapshot(segment(7, 100, 1 << 30), tail(9)), columns)
    for one in plan.segments:
        assert {(s.tier, s.reason) for s in one.splits} == {(one.segment.tier, one.segment.reason)}
        entries = [e for s in one.splits for e in range(s.first_entry, s.last_entry + 1)]
        assert entries == list(range(one.segment.entries))
    assert [of(plan, ledger).segment.tier for ledger in (7, 9)] == ["bookkeeper", "broker"]


def test_of_all_there_is_why_it_is_read_or_not() -> None:
    empty = replace(segment(8, 0), last_entry=-1)
    waiting = replace(segment(10, 0), last_entry=-1, waiting=4)
    plan = plan_snapshot(
        with_table(segment(7), tail(9), unreadable=(empty, waiting)), known=Known(cold=COLD)
    )
    assert [
        (one.segment.ledger_id, one.segment.tier, one.pruned and one.pruned.kind)
        for one in plan.segments
    ] == [
        (1, "parquet", None),
        (2, "parquet", None),
        (3, "parquet", Pruned.LOST),
        (7, "bookkeeper", None),
        (8, "bookkeeper", Pruned.EMPTY),
        (9, "broker", None),
        (10, "bookkeeper", Pruned.WAITING),
    ]
    assert {split.ledger_id for split in plan.splits} == {7, 9}
    assert (plan.files, plan.files_read, plan.file_bytes_read) == (2, 2, 30)
    text = str(plan)
    assert text.splitlines()[0] == f"{TOPIC}, table version 3"
    assert "4 more behind an open transaction" in text
    assert "pruned: its messages are lost; deleted before it was offloaded" in text
    assert "parquet: 2 of 2 files, 30 of 30 bytes" in text


def test_times_prune_hot_and_cold() -> None:
    learned = {(0, 7): LearnedTimes(0, 7, 0, 99, 500, 20, 29)}
    later = plan_snapshot(
        with_table(segment(7), tail(9)), None, [time(">", 29)], known=Known(learned, COLD)
    )
    assert {one.segment.ledger_id for one in later.segments if one.read} == {9}
    assert {split.ledger_id for split in later.splits} == {9}
    assert (later.files, later.files_read) == (2, 0)
    some = plan_snapshot(with_table(segment(7)), None, [time("<=", 9)], known=Known(learned, COLD))
    assert {one.segment.ledger_id for one in some.segments if one.read} == {1}
    assert of(some, 7).segment.rows == 500, "what was learned is shown"
    assert (some.files_read, some.file_bytes_read) == (1, 10)


def test_close_times_are_for_hot_segments_alone() -> None:
    """Files have their own statistics."""
    closed = replace(segment(7), closed_at=1)
    old = ColdPart((replace(table_segment(1), rows=None, closed_at=1),), ())
    plan = plan_snapshot(
        with_table(closed),
        None,
        [time(">", 10**12)],
        known=Known(cold=old, clock_skew=timedelta(minutes=1)),
    )
    assert of(plan, 7).pruned is not None
    assert of(plan, 1).pruned is None


def test_rows_that_are_known_are_counted_unread() -> None:
    learned = {(0, 7): LearnedTimes(0, 7, 0, 99, 500, None, None)}
    plan = plan_snapshot(snapshot(segment(7), segment(8)), [], known=Known(learned))
    assert plan.counted == 500
    assert {split.ledger_id for split in plan.splits} == {8}
    assert "not read: it has 500 rows" in str(plan)
    for other in (
        plan_snapshot(snapshot(segment(7)), ["__key"], known=Known(learned)),
        plan_snapshot(
            snapshot(segment(7)), [], [Predicate("__ledgerId", "=", (7,))], known=Known(learned)
        ),
        plan_snapshot(snapshot(segment(7, 50)), [], known=Known(learned)),
    ):
        assert (other.counted, len(other.splits)) == (0, 1)


def test_from_and_to_positions() -> None:
    snap = with_table(segment(7), segment(8), tail(9))
    plan = plan_snapshot(
        snap, bounds={0: (Position(7, 90), Position(8, 4))}, known=Known(cold=COLD)
    )
    assert [(s.ledger_id, s.first_entry, s.last_entry, s.whole) for s in plan.splits] == [
        (7, 90, 99, False),
        (8, 0, 4, False),
    ]
    unread = {one.segment.ledger_id for one in plan.segments if not one.read}
    assert unread == {1, 2, 3, 9}
    assert of(plan, 9).pruned is not None
    assert of(plan, 9).pruned == of(plan, 1).pruned
    elsewhere = plan_snapshot(snap, bounds={1: (Position(7, 90), None)})
    assert len(elsewhere.splits) == 3


def test_a_table_without_rows() -> None:
    below = replace(table_segment(1), reason=TierReason(Reason.AT_WATERMARK, 1))
    plan = plan_snapshot(replace(snapshot(), cold=(below,)))
    assert of(plan, 1).pruned is not None
    assert not plan.splits


def test_ciphertext_is_told() -> None:
    sealed = Ciphertext(3, (segment().partition,))
    plan = plan_snapshot(replace(with_table(), ciphertext=sealed), known=Known(cold=COLD))
    assert "encrypted entries of 1 partitions are decrypted" in str(plan)
    assert plan.restricted(hot=True, files=()).snapshot.ciphertext == sealed
    cold = plan.restricted(hot=False, files=None)
    assert "decrypted" not in str(cold), "they come with the hot rows"
    assert cold.cold == plan.cold


class FilesOnly:
    """A table of which nothing but the files may be asked."""

    def files(self) -> pa.Table:
        return pa.table({"path": ["b", "a"], "size_bytes": [20, 10]})

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} was asked for")


def test_tasks_need_no_more_of_a_table_than_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its segments take all commits or, where log clean-up has removed some, all rows."""
    monkeypatch.setattr(TopicTable, "open", lambda *_: FilesOnly())
    clients = Clients(ReadConfig.load({"storage": {"uri": str(tmp_path)}}))
    plan = make_plan(clients, with_table(segment(7)), describe=False)
    assert [(one.file.path, one.read) for one in plan.cold] == [("a", True), ("b", True)]
    assert [one.segment.ledger_id for one in plan.segments] == [7]
    with pytest.raises(AssertionError, match="commits was asked for"):
        make_plan(clients, with_table(segment(7)))
