"""A partition that is added has its hold in the next round, whatever becomes of the others."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from offloader.config import OffloadConfig
from offloader.model.observation import Discovery
from offloader.schedule import Rounds
from offloader.schedule.queue import TopicQueue
from offloader.schedule.scheduler import Scheduler
from offloader.turn.topic_offloader import TopicOffloader
from reader.errors import UnavailableError
from reader.model import Partition
from testbed.simulation import ClusterState
from tests.unit.turns.small_pulsar import HOLD, TOPIC, OddRest, SmallPartition, SmallPulsar


class GrowingRest(OddRest):
    """``silent``: partitions that do not answer; ``tried``: those whose hold was asked for.

    ``converting``: called when a turn has planned what it converts.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.silent: set[Partition] = set()
        self.tried: list[int] = []
        self.answered = threading.Condition()
        self.converting: Callable[[], None] = lambda: None

    def answer(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if path.endswith("/schemas"):
            self.converting()
        if method != "PUT" or not path.endswith(f"/subscription/{HOLD}"):
            return super().answer(method, path, body)
        partition = Partition(TOPIC, int(path.split("/")[-3].rpartition("-")[2]))
        try:
            if partition in self.silent:
                raise UnavailableError(f"{partition}: 503")
            return super().answer(method, path, body)
        finally:
            with self.answered:
                self.tried.append(partition.index)
                self.answered.notify_all()

    def wait_tried(self, times: int) -> None:
        with self.answered:
            assert self.answered.wait_for(lambda: len(self.tried) >= times, 60)

    def wait_held(self, part: SmallPartition, scheduler: Scheduler) -> None:
        """Rounds, until one has held it: the one before may not be done with its holds."""
        for _ in range(6000):
            scheduler.round()
            with self.answered:
                if self.answered.wait_for(lambda: HOLD in part.ml.cursors, 0.01):
                    return
        raise AssertionError(f"{part.partition} has no hold")


class GrowingPulsar(SmallPulsar):
    """A topic that gets more partitions."""

    rest: GrowingRest

    def __init__(self) -> None:
        super().__init__(rest=GrowingRest)
        self.grow(0)

    def grow(self, index: int) -> SmallPartition:
        made = SmallPartition(Partition(TOPIC, index), first=10 * index + 5)
        self.add(made)
        return made


@pytest.fixture
def pulsar() -> GrowingPulsar:
    return GrowingPulsar()


def test_a_partition_that_does_not_answer_keeps_no_other_unheld(
    pulsar: GrowingPulsar, tmp_path: Path
) -> None:
    added = [pulsar.grow(1), pulsar.grow(2)]
    pulsar.rest.silent = {Partition(TOPIC, 0)}
    with pulsar.offloader(pulsar.config(tmp_path)) as offloader:
        for _ in range(2):
            with pytest.raises(UnavailableError, match="orders-partition-0: 503"):
                offloader.observe(TOPIC)
    assert all(HOLD in one.ml.cursors for one in added)
    assert sorted(pulsar.rest.tried) == [0, 0, 1, 2], "what is held is not asked for again"


def test_a_hold_that_cannot_be_made_again_keeps_no_other_unheld(
    pulsar: GrowingPulsar, tmp_path: Path
) -> None:
    other = pulsar.grow(1)
    with pulsar.offloader(pulsar.config(tmp_path)) as offloader:
        offloader.observe(TOPIC)
        for one in pulsar.parts:
            pulsar.delete_hold(one)
        pulsar.rest.silent = {Partition(TOPIC, 0)}
        with pytest.raises(UnavailableError, match="orders-partition-0: 503"):
            offloader.observe(TOPIC)
    assert HOLD in other.ml.cursors


@contextmanager
def long_turn(pulsar: GrowingPulsar, offloader: TopicOffloader) -> Iterator[Scheduler]:
    """The scheduler while the topic's turn converts; the turn ends with the block.

    It has no rounds of its own: one that is late would ask for holds beside the test's rounds.
    """
    begun, go = threading.Event(), threading.Event()

    def convert() -> None:
        begun.set()
        assert go.wait(60)

    pulsar.rest.converting = convert
    made = Scheduler(
        TopicQueue(OffloadConfig()),
        lambda: Discovery(dict.fromkeys([TOPIC], tuple(pulsar.parts)), None),
        offloader,
        Rounds(3600.0, wake_seconds=0.01),
        ended=lambda topic, result, retry_at: None,
    )
    request = made.request(TOPIC)
    run = partial(made.run, lambda: request.done, rounds=False)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert begun.wait(60)
        yield made
    finally:
        go.set()
        thread.join(120)
        assert not thread.is_alive()
    assert request.result(0).committed


def test_a_round_holds_it_while_its_topic_has_a_long_turn(
    pulsar: GrowingPulsar, tmp_path: Path
) -> None:
    config = pulsar.config(tmp_path)
    said: list[str] = []
    with pulsar.offloader(config, said.append) as offloader:
        offloader.observe(TOPIC)
        pulsar.parts[Partition(TOPIC, 0)].write("0a")
        pulsar.parts[Partition(TOPIC, 0)].roll(6)
        with long_turn(pulsar, offloader) as scheduler:
            added = pulsar.grow(1)
            pulsar.rest.silent = {added.partition}
            scheduler.round()
            pulsar.rest.wait_tried(2)
            assert HOLD not in added.ml.cursors
            pulsar.rest.silent = set()
            pulsar.rest.wait_held(added, scheduler)
            pulsar.rest.wait_held(pulsar.grow(2), scheduler)
        added.write("1a")
        added.roll(16)
        assert 15 in added.ledgers, "nothing is trimmed"
        offloader.turn(TOPIC, now=True)
    assert sorted(pulsar.rest.tried) == [0, 1, 1, 2], "what is held is not asked for again"
    assert sorted(pulsar.query(config)) == ["0a", "1a"]
    [line] = [one for one in said if "no hold yet" in one]
    assert "orders: new partitions have no hold yet: " in line


def test_a_round_holds_nothing_of_a_topic_that_is_refused(
    pulsar: GrowingPulsar, tmp_path: Path
) -> None:
    pulsar.rest.policies["messageTTL"] = 60
    config = pulsar.config(tmp_path, offload={"unsafe_retention": "refuse"})
    said: list[str] = []
    with pulsar.offloader(config, said.append) as offloader:
        offloader.hold(TOPIC, [Partition(TOPIC, 0)])
    assert pulsar.rest.tried == []
    assert "new partitions have no hold yet: not offloaded: message TTL" in said[-1]
