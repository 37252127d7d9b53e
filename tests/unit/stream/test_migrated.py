"""A stream, and following, of a topic that was migrated to a scalable topic of Pulsar 5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reader.errors import UnsupportedError
from reader.model import Partition
from reader.scan.follow import new_rows
from reader.stream.known_topic import KnownTopic
from tests.unit.turns.small_pulsar import TOPIC, SmallPartition, SmallPulsar

MIGRATED = "was migrated to a scalable topic of Pulsar 5"


def clients(admin: Any, *, allow_data_loss: bool = False) -> Any:
    settings = SimpleNamespace(
        query=SimpleNamespace(allow_data_loss=allow_data_loss),
        pulsar=SimpleNamespace(lost_ledgers={}),
    )
    return SimpleNamespace(admin=admin, settings=settings)


def test_a_stream_is_told_within_five_minutes() -> None:
    answers: Iterator[bool] = iter([False, True, True])
    admin = SimpleNamespace(is_migrated=lambda topic: next(answers))
    now = [0.0]
    known = KnownTopic(clients(admin), TOPIC, clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 299.0):
        known.require_not_migrated()
    for now[0] in (300.0, 301.0):
        with pytest.raises(UnsupportedError, match=MIGRATED):
            known.require_not_migrated()
    assert next(answers, None) is None


def test_a_stream_may_be_told_to_go_without() -> None:
    KnownTopic(clients(None, allow_data_loss=True), TOPIC).require_not_migrated()


@pytest.mark.parametrize("terminated", [True, False])
def test_following_ends(tmp_path: Path, terminated: bool) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.migrated, part.terminated = True, terminated
    nowhere = {"service_url": "pulsar://127.0.0.1:1", "timeout": "1s"}
    with (
        pulsar.clients(pulsar.config(tmp_path, pulsar=nowhere)) as opened,
        pytest.raises(UnsupportedError, match=MIGRATED),
    ):
        next(new_rows(opened, TOPIC, {}, ["value"], failed=lambda error: None))
