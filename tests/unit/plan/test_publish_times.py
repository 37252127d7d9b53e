"""Publish times that reads have learned, kept from query to query."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reader.config import PulsarConfig, QueryConfig
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from tests.unit.plan.values import TOPIC


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PublishTimeStore]:
    yield PublishTimeStore(QueryConfig(cache_dir=tmp_path), PulsarConfig(), TOPIC)


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
    query = QueryConfig(cache_dir=tmp_path, learn_publish_times=False)
    PublishTimeStore(query, PulsarConfig(), TOPIC).learn(LearnedTimes(0, 7, 0, 99, 5, 10, 50))
    assert not list(tmp_path.iterdir())
