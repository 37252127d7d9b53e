"""Publish times that reads have learned, kept from query to query."""

import json
import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from reader.config import PulsarConfig, QueryConfig
from reader.model import LedgerIdentity, Segment
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from tests.unit.plan.values import TOPIC, segment


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PublishTimeStore]:
    yield store_in(tmp_path)


def store_in(folder: Path) -> PublishTimeStore:
    return PublishTimeStore(QueryConfig(cache_dir=folder), PulsarConfig(), TOPIC)


def identity_of(one: Segment) -> LedgerIdentity:
    assert one.identity is not None
    return one.identity


SEVEN, EIGHT = segment(7), segment(8)
SEVENTH, EIGHTH = identity_of(SEVEN), identity_of(EIGHT)


def test_ranges_of_the_parts_of_a_ledger_are_joined(store: PublishTimeStore) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 50, 99, 5, 40, 90))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 49, 5, 10, 50))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 49, 5, 10, 50))])  # read twice
    store.learn([(EIGHTH, LearnedTimes(0, 8, 10, 19, 1, 1, 1))])  # its beginning was never read
    known = store.known([SEVEN, EIGHT])
    assert known[0, 7] == LearnedTimes(0, 7, 0, 99, 10, 10, 90)
    assert not known[0, 8].covers(19)
    assert list(store.known([EIGHT])) == [(0, 8)]


@pytest.mark.parametrize("messages", [5, None])
def test_parts_with_an_entry_between_them_are_not_joined(
    store: PublishTimeStore, messages: int | None
) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 48, messages, 10, 50))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 50, 99, messages, 40, 90))])
    assert store.known([SEVEN])[0, 7] == LearnedTimes(0, 7, 0, 48, messages, 10, 50)


def test_overlapping_parts_do_not_add_up(store: PublishTimeStore) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 60, 5, 10, 50))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 50, 99, 5, 40, 90))])
    assert store.known([SEVEN])[0, 7] == LearnedTimes(0, 7, 0, 99, None, 10, 90)


def test_rows_are_counted_by_reads_that_pass_over_nothing(store: PublishTimeStore) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, None, 10, 90))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 49, 5, 10, 50))])
    assert store.known([SEVEN])[0, 7] == LearnedTimes(0, 7, 0, 99, None, 10, 90)
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, None, 10, 90))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 50, 99, 6, 40, 90))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, None, 10, 90))])
    assert store.known([SEVEN])[0, 7] == LearnedTimes(0, 7, 0, 99, 11, 10, 90)


@pytest.mark.parametrize(
    "changes",
    [
        {"created_at": "2026-02-02T00:00:00Z"},  # wiped and made again
        {"closed_at": 2000},  # restored, and the id given again
        {"last_entry": 98},
        {"length": 999},
    ],
)
def test_of_another_ledger_of_the_same_id_nothing_is_known(
    store: PublishTimeStore, changes: dict[str, Any]
) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 5, 10, 50))])
    other = replace(SEVEN, identity=replace(SEVENTH, **changes))
    assert store.known([other]) == {}
    assert store.known([replace(SEVEN, identity=None)]) == {}
    assert store.known([SEVEN])[0, 7].messages == 5
    # Both are kept apart, also when the parts of one come late.
    store.learn([(identity_of(other), LearnedTimes(0, 7, 0, 99, 7, 70, 80))])
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 5, 10, 50))])
    assert store.known([other])[0, 7].messages == 7
    assert store.known([SEVEN])[0, 7].messages == 5


@pytest.mark.parametrize(
    "line",
    [
        '{"partition":0,"led',
        "[]",
        "7",
        # As older versions wrote it: of which ledger 7, nobody knows.
        '{"partition":0,"ledger":7,"first":0,"last":99,"messages":9,"low":1,"high":2}',
    ],
)
def test_a_line_that_says_too_little_is_passed_over(
    tmp_path: Path, store: PublishTimeStore, line: str
) -> None:
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 5, 10, 50))])
    file = next(tmp_path.glob("*.jsonl"))
    whole = file.read_text()
    wrong = whole.replace('"messages":5', '"messages":"9"')
    file.write_text(line + "\n" + wrong + whole)
    assert store.known([SEVEN])[0, 7].messages == 5


def test_what_others_may_write_is_not_believed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = store_in(tmp_path / "learned")
    assert store.known([SEVEN]) == {}
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 5, 10, 50))])
    assert (tmp_path / "learned").stat().st_mode & 0o777 == 0o700
    assert not caplog.messages
    for mode in (0o2770, 0o777):  # the first as Kubernetes' fsGroup makes it
        (tmp_path / "learned").chmod(mode)
        assert store.known([SEVEN]) == store_in(tmp_path / "learned").known([SEVEN]) == {}
    [said] = caplog.messages
    assert str(tmp_path / "learned") in said
    store.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 6, 10, 50))])
    (tmp_path / "learned").chmod(0o700)
    assert store.known([SEVEN])[0, 7].messages == 5


def test_learning_can_be_turned_off(tmp_path: Path) -> None:
    query = QueryConfig(cache_dir=tmp_path, learn_publish_times=False)
    off = PublishTimeStore(query, PulsarConfig(), TOPIC)
    off.learn([(SEVENTH, LearnedTimes(0, 7, 0, 99, 5, 10, 50))])
    assert not list(tmp_path.iterdir())


LEDGERS = range(1_000, 1_200)


def read_them_all(store: PublishTimeStore, cuts: int = 1) -> None:
    """What the tasks of one query learn, each of a part of a ledger."""
    for ledger in LEDGERS:
        for cut in range(cuts):
            first, last = cut * 100 // cuts, (cut + 1) * 100 // cuts - 1
            learned = LearnedTimes(0, ledger, first, last, last - first + 1, first, last)
            store.learn([(identity_of(segment(ledger)), learned)])


def kept_in(folder: Path) -> tuple[int, int]:
    """(lines, bytes) of all files."""
    texts = [one.read_bytes() for one in folder.iterdir()]
    return sum(text.count(b"\n") for text in texts), sum(map(len, texts))


@pytest.mark.parametrize("planned", [False, True])
def test_what_is_kept_is_bounded_by_the_ledgers_not_the_queries(
    tmp_path: Path, store: PublishTimeStore, planned: bool
) -> None:
    read_them_all(store)
    once = kept_in(tmp_path)
    most = (0, 0)
    for query in range(6):
        read_them_all(store, 1 + query % 3)
        most = max(most, kept_in(tmp_path))
        if planned and query % 3 == 0:
            store.known(map(segment, LEDGERS))
    lines, size = most
    assert lines <= 4 * once[0] and size <= 2 * once[1] + (64 << 10)
    known = store.known(map(segment, LEDGERS))
    assert {one.messages for one in known.values()} == {100}
    assert len(known) == len(LEDGERS)


def test_ledgers_that_are_not_planned_any_more_are_forgotten(
    tmp_path: Path, store: PublishTimeStore
) -> None:
    for ledger in range(700):
        store.learn([(identity_of(segment(ledger)), LearnedTimes(0, ledger, 0, 99, 5, 10, 50))])
    assert len(store.known([segment(699)])) == 1
    assert kept_in(tmp_path)[0] == 1
    assert store.known([segment(699)])[0, 699].messages == 5
    assert not list(tmp_path.glob("*.tmp"))


def _learn(folder: Path, process: int, together: Barrier) -> None:
    store = store_in(folder)
    together.wait(60)
    for _ in range(3):
        read_them_all(store, 1 + process)
        store.known([segment(ledger) for ledger in LEDGERS if ledger % 2 == process])


def test_what_several_processes_learn_at_once_is_true(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(2)
    other = context.Process(target=_learn, args=(tmp_path, 1, together))
    other.start()
    _learn(tmp_path, 0, together)
    other.join()
    assert other.exitcode == 0
    for file in tmp_path.iterdir():
        for line in file.read_bytes().splitlines():
            assert json.loads(line)
    for found in store_in(tmp_path).known(map(segment, LEDGERS)).values():
        assert found.messages == found.last - found.first + 1
        assert (found.low, found.high) == (found.first, found.last)
