"""Two offloaders of one topic, in one table: each sees what the other does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from offloader.backlog import backlog_after, newest_backlog
from offloader.config import Config
from offloader.model import Discovery, TopicBacklog
from offloader.schedule import Rounds, Scheduler, TopicQueue
from offloader.service.log_follower import LogFollower
from offloader.service.status import topic_status
from offloader.turn.topic_offloader import TopicOffloader
from reader.errors import NotFoundError
from reader.model import Partition, Topic
from reader.storage import open_storage
from reader.table import LoggedCommit
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, TOPIC, SmallPartition, SmallPulsar

NOW = NOW_MS / 1000


@dataclass
class First:
    """An offloader's scheduler, of which the test gives the turns, and its follower."""

    engine: TopicOffloader
    scheduler: Scheduler
    queue: TopicQueue
    follower: LogFollower
    noticed: list[LoggedCommit] = field(default_factory=list)

    def observe(self) -> None:
        queued = self.queue.queued(TOPIC)
        self.queue.began(queued, 0.0)
        self.queue.done(queued, self.engine.observe(TOPIC).observation, more=False, now=0.0)

    @property
    def backlog(self) -> TopicBacklog:
        state = self.scheduler.state(TOPIC)
        assert state is not None
        assert state.backlog is not None
        return state.backlog


@contextmanager
def first_of(pulsar: SmallPulsar, config: Config) -> Iterator[First]:
    with pulsar.offloader(config) as engine:
        queue = TopicQueue(config.offload)
        queue.serve({TOPIC: list(pulsar.parts)})
        scheduler = Scheduler(
            queue,
            lambda: Discovery({}, None),
            engine,
            Rounds(60),
            ended=lambda topic, result, retry_at: None,
        )
        noticed: list[LoggedCommit] = []
        follower = LogFollower(
            open_storage(config.storage), scheduler, lambda topic, commit: noticed.append(commit)
        )
        yield First(engine, scheduler, queue, follower, noticed)


def waiting(tmp_path: Path) -> tuple[SmallPartition, SmallPulsar, Config]:
    """Ledgers 5 and 6 are sealed, 7 is open."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.create_hold(part.partition, HOLD)
    for number in (5, 6):
        part.write(f"{number}a")
        part.roll(number + 1)
    return part, pulsar, pulsar.config(tmp_path / "lake")


def test_anothers_commit_is_seen_in_the_log_alone(tmp_path: Path) -> None:
    part, pulsar, config = waiting(tmp_path)
    with first_of(pulsar, config) as first:
        first.observe()
        assert (first.backlog.ledgers, first.backlog.version) == (2, None)
        first.follower.follow()
        assert first.noticed == []
        pulsar.offload(config)
        asked = len(pulsar.rest.asked)
        first.follower.follow()
        assert (first.backlog.ledgers, first.backlog.version) == (0, 1)
        assert [one.watermark for one in first.backlog.partitions] == [6]
        assert [len(one.ledgers) for one in first.noticed if one.ledgers] == [2]
        assert len(pulsar.rest.asked) == asked, "Pulsar is not asked"
        # And what comes after that, once there is something to wait for.
        part.write("7a")
        part.roll(8)
        first.observe()
        assert (first.backlog.ledgers, first.backlog.version) == (1, 1)
        pulsar.offload(config)
        for _ in range(2):
            first.follower.follow()
        assert (first.backlog.ledgers, first.backlog.version) == (0, 2)
        assert [one.version for one in first.noticed] == [0, 1, 2], "each once"


def test_an_own_commit_is_noticed_once_and_an_idle_table_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, pulsar, config = waiting(tmp_path)
    with first_of(pulsar, config) as first:
        first.observe()
        first.follower.follow()
        queued = first.queue.queued(TOPIC)
        first.queue.began(queued, 0.0)
        observation = first.engine.turn(TOPIC, now=True).observation
        first.queue.done(queued, observation, more=False, now=0.0)
        first.follower.follow()
        assert [one.version for one in first.noticed] == [0, 1]
        assert first.backlog.version == 1
        monkeypatch.setattr("offloader.service.log_follower.read_commit", None)
        first.follower.follow()  # nothing waits, so nothing is asked for


def test_what_another_has_committed_is_no_error(tmp_path: Path) -> None:
    """It is let go of then, and Pulsar deletes it under the hands of the one that was slower."""
    part, pulsar, config = waiting(tmp_path)
    part.write("7a")
    part.roll(8)
    said: list[str] = []

    def say(text: str) -> None:
        if "offloading" in text and not said:
            said.append(text)
            pulsar.offload(config)
            assert part.ledgers == [8], "none of them is there any more"
        else:
            said.append(text)

    with pulsar.offloader(config, say) as slower:
        turn = slower.turn(TOPIC, now=True)
    assert turn.committed is None
    assert turn.observation.backlog.version == 1
    assert [one for one in said if "planning again: another offloader has committed it" in one]
    assert sorted(pulsar.query(config)) == ["5a", "6a", "7a"]


def test_what_nobody_has_committed_is_one(tmp_path: Path) -> None:
    part, pulsar, config = waiting(tmp_path)

    def lose(text: str) -> None:
        if "offloading" in text:
            part.delete(5, 6)

    with pulsar.offloader(config, lose) as offloader, pytest.raises(NotFoundError):
        offloader.turn(TOPIC, now=True)


def test_the_newer_lists_less_the_newer_watermarks(tmp_path: Path) -> None:
    part, pulsar, config = waiting(tmp_path)

    def look(clock_ms: int, elapsed: float) -> TopicBacklog:
        with pulsar.clients(config) as clients:
            found = topic_status(
                clients, HOLD, TOPIC, clock_ms=clock_ms, failures={}, elapsed=lambda: elapsed
            )
        assert found.backlog is not None
        return found.backlog

    before = look(NOW_MS, 100.0)
    part.write("7a", "7b")
    part.roll(8)
    later = look(NOW_MS - 8 * 3_600_000, 101.0)  # the host's clock was set back
    assert [one.ledgers for one in (before, later)] == [2, 3]
    # A turn that began before the look ends after it, with a commit.
    committed = backlog_after(before, {part.partition: 6}, version=1, read=105.0)
    assert committed.ledgers == 0
    for found in (newest_backlog(later, committed), newest_backlog(committed, later)):
        assert (found.asked, found.read, found.version) == (101.0, 105.0, 1)
        [left] = found.partitions
        assert (left.watermark, left.ledgers) == (6, 1)
        assert left.sealed == sum(len(one.data) for one in part.ml.ledgers[2].entries)
        assert left.hold == later.partitions[0].hold
        assert [one.ledger_id for one in found.listed[0].ledgers] == [7, 8], "what can still go"
    assert newest_backlog(None, before) is before
    assert newest_backlog(later, before) is later


def test_an_open_ledger_that_was_offloaded_since_is_none(tmp_path: Path) -> None:
    part, pulsar, config = waiting(tmp_path)
    with pulsar.clients(config) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={}).backlog
    assert found is not None
    found = replace(found, listed=tuple(replace(one, open_bytes=70) for one in found.listed))
    partial = backlog_after(found, {part.partition: 5}, version=1, read=found.read)
    assert (partial.ledgers, partial.unsealed) == (1, 70)
    whole = backlog_after(partial, {part.partition: 7}, version=2, read=found.read)
    assert (whole.ledgers, whole.unsealed) == (0, 0)


def test_a_topic_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    _, pulsar, config = waiting(tmp_path)
    with first_of(pulsar, config) as first:
        first.observe()
        first.follower.follow()
        first.queue.serve({Topic("public", "default", "other"): []})
        assert first.scheduler.state(TOPIC) is None
        first.follower.follow()
        pulsar.offload(config)
        first.queue.serve({TOPIC: list(pulsar.parts)})
        first.observe()
        first.follower.follow()
        assert first.noticed == [], "what was there before it came"
