"""Writes to the topic of a world: the drivers that do them, and what each was given to commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spark_ext.planner.protocol import Write
from testbed.simulation import ManagedLedger, Producers
from tests.simulation.product.clients import SimulatedClients
from tests.simulation.product.drivers import SimulatedDriver, TaskRun
from tests.simulation.world import TOPIC, World

STREAM = "stream"
"""The name of the stream's query; other names are of batches."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What was given to one commit: the executions of its tasks. ``exact``: exactly once."""

    runs: tuple[TaskRun, ...]
    exact: bool


@dataclass(slots=True, eq=False)
class Version:
    """One version of a write. ``done``: somebody was told that it is written.

    ``since_ms``, ``ends``: when it was committed first, and the last ledger of each partition then.
    ``counts``: of names that were forgotten, entries refused, and so on, then. ``drivers``: which
    have committed it; ``repeated``: another attempt of a task has sent it at the same time.
    ``loose``: it may be there twice.
    """

    since_ms: int
    ends: Mapping[str, int]
    counts: Mapping[str, int]
    attempts: list[Attempt] = field(default_factory=list)
    drivers: set[int] = field(default_factory=set)
    repeated: bool = False
    done: bool = False
    loose: bool = False


class SinkWorld:
    """``drivers``: two, of one checkpoint each of which may be a zombie; ``next``: the micro-batch
    that each of them runs next; ``committed``: the last one in the checkpoint.

    ``batch``: the version of the nightly batch that is next. ``versions``: by the write's name and
    number. ``failed``: batches without a name that can be gone on with: name, version, when.
    ``direct``: executions of tasks that send at once. ``skewed``: how often a clock was set;
    ``set_back``: how often the storage's was set to an earlier time; ``restored``: how often the
    storage was set back to a copy, ``unknown``: names of writes of which it had no manifest then.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.producers = Producers(world.state)
        world.rest.producers = self.producers
        self.drivers = [self.new_driver(), self.new_driver()]
        self.next = [0, 0]
        self.committed = -1
        self.batch = 0
        self.versions: dict[tuple[str, int], Version] = {}
        self.failed: list[tuple[str, int, int]] = []
        self.direct: set[int] = set()
        self.skewed = self.set_back = self.restored = 0
        self.unknown: set[str] = set()
        self._runs = 0

    def new_driver(self) -> SimulatedDriver:
        """A driver that starts, with an executor."""
        world = self.world
        return SimulatedDriver(
            self._new_clients, world.clock, world.drivers_clock, world.host_clocks[1]
        )

    def restart(self, number: int) -> None:
        """A driver starts: it goes on by the checkpoint."""
        self.drivers[number] = self.new_driver()
        self.next[number] = self.committed + 1

    def new_run(self, shape: int) -> TaskRun:
        """Another execution of a task: none, or a few rows, with keys or without."""
        self._runs += 1
        count = (0, 1, 2, 3, 5, 9, 4)[shape % 7]
        keyed = shape // 7 % 3
        keys = tuple(
            f"k{(shape + row) % 5}" if keyed == 1 or (keyed == 2 and row % 2) else None
            for row in range(count)
        )
        return TaskRun(self._runs, keys)

    def commits(
        self, driver: int, write: Write, runs: Sequence[TaskRun], epoch: int | None
    ) -> None:
        """Somebody is about to commit these executions of a version's tasks."""
        version = write.version if epoch is None else epoch
        exact = write.options.get("delivery") != "at-least-once"
        found = self.versions.get((write.app, version))
        if found is None:
            found = Version(self.world.clock.now_ms, self._ends(), self.counts())
            self.versions[write.app, version] = found
        found.attempts.append(Attempt(tuple(runs), exact))
        found.drivers.add(driver)
        if not exact:
            found.loose = True

    def counts(self) -> dict[str, int]:
        """Return how often something has happened that a write may notice."""
        broker = self.producers
        return {
            "forgotten": broker.forgotten,
            "refused": broker.refused,
            "undeduplicated": broker.undeduplicated,
            "skewed": self.skewed,
            "set back": self.set_back,
            "restored": self.restored,
        }

    def happened(self, version: Version, what: str) -> bool:
        """Return whether that has happened since the version was committed first."""
        return self.counts()[what] > version.counts[what]

    def _ends(self) -> dict[str, int]:
        return {ml.name: ml.last_confirmed[0] for ml in self.lives()}

    def lives(self) -> list[ManagedLedger]:
        """The partitions that there are, and were."""
        return [*self.world.topic.gone, *self.world.parts]

    def _new_clients(self) -> SimulatedClients:
        clients = self.world.new_clients()
        assert isinstance(clients, SimulatedClients)
        clients.producers = self.producers
        return clients


def sinks_of(world: World) -> SinkWorld:
    """Return the writes of a world, which begin with the first step that asks for them."""
    if world.sinks is None:
        assert TOPIC.full_name in world.state.topics
        world.sinks = SinkWorld(world)
    assert isinstance(world.sinks, SinkWorld)
    return world.sinks
