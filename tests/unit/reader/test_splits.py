from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.config import ReadConfig
from reader.model import LedgerMetadata, Partition, Segment, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.plan.snapshot import Snapshot
from reader.plan.splits import (
    Predicate,
    Split,
    pack_splits,
    plan_splits,
    prune_reason,
    publish_range,
)

TOPIC = Topic("public", "default", "t")
LEDGER = LedgerMetadata(7, "CLOSED", 1, 1, 1, 99, "CRC32C", ((0, ("b:1",)),))


def segment(ledger: int = 7, entries: int = 100, size: int = 1000, partition: int = 0) -> Segment:
    return Segment(
        partition=Partition(TOPIC, partition),
        ledger_id=ledger,
        state="sealed",
        tier="bookkeeper",
        reason=TierReason(Reason.SEALED),
        last_entry=entries - 1,
        entries=entries,
        bytes=size,
        metadata=LEDGER,
    )


def snapshot(*hot: Segment) -> Snapshot:
    return Snapshot(TOPIC, "", None, pa.schema([]), (), (), hot)


def time(op: str, *values: int) -> Predicate:
    return Predicate("__publishTime", op, values)


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ([], (None, None)),
        ([time(">", 5)], (6, None)),
        ([time(">=", 5), time("<", 9)], (5, 8)),
        ([time("=", 5)], (5, 5)),
        ([time("in", 5, 9, 7)], (5, 9)),
        ([time(">", 5), time(">", 7), time("<=", 3)], (8, 3)),
        ([Predicate("other", ">", (5,))], (None, None)),
        ([Predicate("__publishTime", ">", (None,))], (None, None)),
    ],
)
def test_publish_range(
    predicates: list[Predicate], expected: tuple[int | None, int | None]
) -> None:
    assert publish_range(predicates) == expected


@given(
    entries=st.integers(1, 5000),
    size=st.integers(0, 1 << 34),
    target=st.integers(1 << 20, 1 << 28),
    parallelism=st.integers(1, 16),
)
def test_splits_cover_each_entry_once(
    entries: int, size: int, target: int, parallelism: int
) -> None:
    hot = [segment(7, entries, size), segment(8, 3, 10)]
    splits = plan_splits(snapshot(*hot), target_bytes=target, parallelism=parallelism)
    seen = [(s.ledger_id, e) for s in splits for e in range(s.first_entry, s.last_entry + 1)]
    assert seen == [(h.ledger_id, e) for h in hot for e in range(h.entries)]
    assert all(s.whole == (s.first_entry == 0 and s.last_entry == s_last(hot, s)) for s in splits)
    packs = pack_splits(splits, target)
    assert [s for pack in packs for s in pack] == splits


def s_last(hot: list[Segment], split: Split) -> int:
    return next(h.last_entry for h in hot if h.ledger_id == split.ledger_id)


def test_learned_ranges_prune_only_when_they_cover_the_segment() -> None:
    learned = LearnedTimes(0, 7, 0, 99, 500, 1000, 2000)
    assert prune_reason(segment(), [time(">", 2000)], learned)
    assert prune_reason(segment(), [time("<", 1000)], learned)
    assert prune_reason(segment(), [time(">=", 2000)], learned) is None
    partly = replace(learned, last=98)
    assert prune_reason(segment(), [time(">", 2000)], partly) is None
    assert prune_reason(segment(), [time(">", 0)], LearnedTimes(0, 7, 0, 99, 0, None, None))
    assert prune_reason(segment(), [time(">", 2000)], None) is None


def test_clock_skew_is_opt_in_and_says_that_it_is_not_exact() -> None:
    closed = replace(segment(), closed_at=1_000_000)  # ms
    late = [time(">", 1_000_000_000 + 3_600_000_000)]
    assert prune_reason(closed, late) is None
    assert "not exact" in str(prune_reason(closed, late, None, timedelta(minutes=10)))
    assert prune_reason(closed, late, None, timedelta(hours=2)) is None
    early = [time("<", 1)]
    assert prune_reason(closed, early, None, timedelta(minutes=1), closed_before=900_000)
    assert prune_reason(closed, early, None, timedelta(minutes=1), closed_before=None) is None


def test_partition_and_ledger_prune() -> None:
    assert prune_reason(segment(partition=1), [Predicate("__partition", "=", (0,))])
    assert prune_reason(segment(partition=1), [Predicate("__partition", "in", (0, 1))]) is None
    assert prune_reason(segment(7), [Predicate("__ledgerId", ">", (7,))])
    assert prune_reason(segment(7), [Predicate("__ledgerId", ">=", (7,))]) is None


def test_a_short_tail_goes_to_bookkeeper_for_columns_the_client_lacks() -> None:
    tail = replace(segment(), state="open", tier="broker", reason=TierReason(Reason.SHORT_TAIL))
    assert plan_splits(snapshot(tail), columns=["__eventTime"])[0].tier == "broker"
    asked = plan_splits(snapshot(tail), columns=["__index"])[0]
    assert asked.tier == "bookkeeper"
    assert asked.reason == TierReason(Reason.SHORT_TAIL_COLUMN, "__index")
    assert "__index" in str(asked.reason)
    forced = replace(tail, reason=TierReason(Reason.FORCED))
    assert plan_splits(snapshot(forced), columns=["__index"])[0].tier == "broker"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PublishTimeStore]:
    yield PublishTimeStore(ReadConfig.load({"query": {"cache_dir": str(tmp_path)}}), TOPIC)


def test_ranges_of_the_parts_of_a_ledger_are_joined(store: PublishTimeStore) -> None:
    store.learn(LearnedTimes(0, 7, 50, 99, 5, 40, 90))
    store.learn(LearnedTimes(0, 7, 0, 49, 5, 10, 50))
    store.learn(LearnedTimes(0, 7, 0, 49, 5, 10, 50))  # read twice
    store.learn(LearnedTimes(0, 8, 10, 19, 1, 1, 1))  # its beginning was never read
    known = store.known()
    assert known[0, 7] == LearnedTimes(0, 7, 0, 99, 10, 10, 90)
    assert not known[0, 8].covers(19)


def test_overlapping_parts_do_not_add_up(store: PublishTimeStore) -> None:
    store.learn(LearnedTimes(0, 7, 0, 60, 5, 10, 50))
    store.learn(LearnedTimes(0, 7, 50, 99, 5, 40, 90))
    assert not store.known()[0, 7].covers(99)


def test_a_torn_line_is_passed_over(tmp_path: Path, store: PublishTimeStore) -> None:
    store.learn(LearnedTimes(0, 7, 0, 99, 5, 10, 50))
    file = next(tmp_path.glob("*.jsonl"))
    file.write_text('{"partition":0,"led\n' + file.read_text())
    assert store.known()[0, 7].messages == 5


def test_learning_can_be_turned_off(tmp_path: Path) -> None:
    config = ReadConfig.load({"query": {"cache_dir": str(tmp_path), "learn_ranges": False}})
    PublishTimeStore(config, TOPIC).learn(LearnedTimes(0, 7, 0, 99, 5, 10, 50))
    assert not list(tmp_path.iterdir())
