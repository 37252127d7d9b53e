"""Shadow topics, and topics that became scalable ones: said, and nothing is doubled or missed."""

from pathlib import Path

import pytest

from offloader.service.status import topic_status
from offloader.subscription import TopicKinds
from reader.config import PulsarConfig
from reader.model import Partition
from reader.scan import TopicReader
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, TOPIC, SmallPartition, SmallPulsar

SOURCE = "persistent://public/default/source"
SHADOW = "is a shadow of public/default/source"
MIGRATED = "was migrated to a scalable topic of Pulsar 5"


@pytest.fixture
def pulsar() -> SmallPulsar:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    part.write("a", "b")
    part.seal(6)
    return SmallPulsar(part)


def test_a_shadow_is_left_out_without_a_hold(pulsar: SmallPulsar, tmp_path: Path) -> None:
    pulsar.shadow(SOURCE)
    logged: list[str] = []
    with pulsar.offloader(pulsar.config(tmp_path), logged.append) as offloader:
        for turn in (offloader.observe(TOPIC), offloader.turn(TOPIC, now=True)):
            assert turn.committed is None
            assert not turn.more
            assert turn.observation is not None
            [note] = turn.observation.notes
            assert SHADOW in note
        offloader.hold(TOPIC, list(pulsar.parts))
    assert [HOLD in one.ml.cursors for one in pulsar.parts.values()] == [False]
    assert len(logged) == 1
    assert SHADOW in logged[0]


def test_status_names_a_shadow_and_misses_no_subscription(
    pulsar: SmallPulsar, tmp_path: Path
) -> None:
    pulsar.shadow(SOURCE)
    with pulsar.clients(pulsar.config(tmp_path)) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
    assert not found.errors
    assert [one for one in found.warnings if SHADOW in one]


def test_a_shadow_that_was_named_is_offloaded(pulsar: SmallPulsar) -> None:
    pulsar.shadow(SOURCE)
    logged: list[str] = []
    now = [0.0]
    admin = pulsar.admin_client(PulsarConfig())
    kinds = TopicKinds(admin, [TOPIC], monotonic=lambda: now[0], log=logged.append)
    listed = {one: admin.ledgers(one) for one in pulsar.parts}
    assert kinds.left_out(TOPIC) is None
    assert [SHADOW in one for one in kinds.notes(TOPIC, listed)] == [True]
    pulsar.shadow(None)
    assert kinds.notes(TOPIC, listed)  # for an hour
    now[0] = 3600.0
    assert not kinds.notes(TOPIC, listed)
    assert len(logged) == 1


def test_what_a_migrated_topic_had_is_offloaded_and_all_say_what_became_of_it(
    pulsar: SmallPulsar, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [part] = pulsar.parts.values()
    part.ml.terminated = pulsar.topic.migrated = True
    config, logged = pulsar.config(tmp_path), list[str]()
    with pulsar.offloader(config, logged.append) as offloader:
        turn = offloader.turn(TOPIC, now=True)
        assert turn.committed is not None
        assert turn.observation is not None
        assert [one for one in turn.observation.notes if MIGRATED in one]
        offloader.turn(TOPIC, now=True)
    assert len([one for one in logged if MIGRATED in one]) == 1
    with pulsar.clients(config) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
        assert [one for one in found.warnings if MIGRATED in one]
        caplog.clear()
        assert sorted(TopicReader(clients, TOPIC).scan().read_all()["value"].to_pylist()) == [
            b"a",
            b"b",
        ]
    [warning] = caplog.messages
    assert MIGRATED in warning


def test_a_role_that_may_not_ask_is_told_and_offloads(pulsar: SmallPulsar, tmp_path: Path) -> None:
    """Pulsar's own authorization lets consumers ask; that of others may not."""

    pulsar.rest.refused = {"properties", "scalable"}
    [part] = pulsar.parts.values()
    part.ml.terminated = True
    config, logged = pulsar.config(tmp_path), list[str]()
    with pulsar.offloader(config, logged.append) as offloader:
        assert offloader.turn(TOPIC, now=True).committed is not None
        offloader.turn(TOPIC, now=True)
    assert [
        ("shadow" in one, "migrated" in one)
        for one in logged
        if "may be" in one or "may have" in one
    ] == [(True, False), (False, True)]
    assert sorted(pulsar.query(config)) == ["a", "b"]
    with pulsar.clients(config) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
    assert not found.errors
    assert len(found.warnings) == 2


def test_a_topic_that_is_not_terminated_is_not_asked_about(
    pulsar: SmallPulsar, tmp_path: Path
) -> None:
    config = pulsar.config(tmp_path)
    pulsar.offload(config)
    pulsar.query(config)
    assert "scalable" not in pulsar.rest.asked


def test_a_terminated_topic_is_read_to_its_end(pulsar: SmallPulsar, tmp_path: Path) -> None:
    [part] = pulsar.parts.values()
    part.ml.terminated = True
    config = pulsar.config(tmp_path)
    assert sorted(pulsar.query(config)) == ["a", "b"]
    with pulsar.offloader(config) as offloader:
        assert offloader.turn(TOPIC, now=True).committed is not None
        for _ in range(2):
            turn = offloader.turn(TOPIC, now=True)
            assert (turn.committed, turn.more) == (None, False)
            assert turn.observation.backlog.oldest is None
    assert sorted(pulsar.query(config)) == ["a", "b"]
