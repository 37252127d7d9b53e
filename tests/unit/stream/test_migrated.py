"""A stream, and following, of a topic that was migrated to a scalable topic of Pulsar 5."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reader.model import Partition
from reader.scan.follow import new_rows
from reader.stream.known_topic import KnownTopic
from reader.stream.stream_options import StreamOptions
from reader.stream.tails import Tails
from reader.stream.topic_stream import TopicStream
from tests.unit.turns.small_pulsar import TOPIC, SmallPartition, SmallPulsar

MIGRATED = "was migrated to a scalable topic of Pulsar 5"


def test_a_stream_warns_within_five_minutes_and_each_hour() -> None:
    answers: Iterator[bool] = iter([False, True, True])
    admin = SimpleNamespace(is_migrated=lambda topic: next(answers))
    settings = SimpleNamespace(pulsar=SimpleNamespace(lost_ledgers={}))
    clients: Any = SimpleNamespace(admin=admin, settings=settings)
    now, warned = [0.0], list[tuple[float, str]]()
    known = KnownTopic(clients, TOPIC, clock=lambda: now[0])
    for now[0] in (0.0, 1.0, 299.0, 300.0, 301.0, 3899.0, 3900.0, 3901.0):
        known.warn_if_migrated(lambda text: warned.append((now[0], text)))
    assert [at for at, _ in warned] == [300.0, 3900.0]
    assert all(MIGRATED in text for _, text in warned)
    assert next(answers, None) is None


def test_a_stream_passes_each_warning_on(tmp_path: Path) -> None:
    """Warnings of losses are given once; this one comes again as long as it is true."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.topic.migrated = part.ml.terminated = True
    nowhere = {"service_url": "pulsar://127.0.0.1:1", "timeout": "1s"}
    now, warned = [0.0], list[float]()
    options = StreamOptions.of({"topic": TOPIC.local_name})
    with pulsar.clients(pulsar.config(tmp_path, pulsar=nowhere)) as opened, Tails(opened) as tails:
        stream = TopicStream(
            opened, options, tails, warn=lambda text: warned.append(now[0]), clock=lambda: now[0]
        )
        for now[0] in (0.0, 1.0, 3700.0):
            stream.end()
    assert warned == [0.0, 3700.0]


@pytest.mark.parametrize("terminated", [True, False])
def test_following_warns_once(
    tmp_path: Path, terminated: bool, caplog: pytest.LogCaptureFixture
) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.topic.migrated, part.ml.terminated = True, terminated
    nowhere = {"service_url": "pulsar://127.0.0.1:1", "timeout": "1s"}
    now, turns = [0.0], iter([0.0, 6.0, 12.0])

    def sleep(seconds: float) -> None:
        now[0] = next(turns)  # StopIteration ends the generator in a RuntimeError

    with (
        pulsar.clients(pulsar.config(tmp_path, pulsar=nowhere)) as opened,
        pytest.raises(RuntimeError, match="StopIteration"),
    ):
        next(
            new_rows(
                opened,
                TOPIC,
                {},
                ["value"],
                failed=lambda error: None,
                clock=lambda: now[0],
                sleep=sleep,
            )
        )
    [warning] = caplog.messages
    assert MIGRATED in warning
