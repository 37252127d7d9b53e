"""Offloaders of the simulated world: turns, rounds and maintenance of one process."""

from typing import Any

from offloader.config import Config
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks, Discovery, Turn
from offloader.schedule import Lookup, Rounds, Scheduler, TopicQueue, parse_names
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from testbed.simulation import Clock, HostClock
from tests.support.conversions import InThreadJobs

_MOST_TURNS = 12


class Host:
    """One process. ``wall_clock``: its host's; ``seen``: the ledgers that its turns have seen."""

    def __init__(
        self, config: Config, clients: Clients, clock: Clock, wall_clock: HostClock
    ) -> None:
        self.config = config
        self.clients = clients
        self.clock = clock
        self.wall_clock = wall_clock
        self.said: list[str] = []
        self.seen: set[tuple[str, int]] = set()
        self.failures: list[Exception] = []
        self.offloader = TopicOffloader(
            clients,
            config.offload,
            InThreadJobs(clients),
            clocks=Clocks(self.clock_ms, lambda: clock.now_ms / 1000, clock.sleep),
            say=self.said.append,
        )
        self.queue = TopicQueue(config.offload, jitter=lambda: 0.5)
        self._maintainer = TableMaintainer(
            clients.storage,
            config.offload,
            clocks=Clocks(ms=self.clock_ms, sleep=clock.sleep),
            say=self.said.append,
        )

    def clock_ms(self) -> int:
        """This host's idea of the time."""
        return self.wall_clock.now_ms

    def turn(self, topic: Topic) -> Turn:
        """One turn of the topic, of all sealed ledgers. Raises PulsarLakeError."""
        return self.offloader.turn(topic, now=True)

    def maintain(self, topic: Topic, *, vacuum: bool) -> None:
        """All maintenance of the topic's table. Raises PulsarLakeError."""
        self._maintainer.maintain(topic, vacuum=vacuum)

    def round(self) -> list[Exception]:
        """One round of the scheduler, and the turns that are ready then; their errors."""
        errors: list[Exception] = []

        def ended(topic: Topic, result: Turn | Exception, retry_at: float) -> None:
            if isinstance(result, Exception):
                errors.append(result)

        def discover() -> Discovery:
            admin = self.clients.admin
            lookup = Lookup(admin)
            found: dict[Topic, Any] = {}
            for pattern in parse_names(self.config.offload.topics):
                found |= lookup.find(pattern)
            return Discovery(found, admin.loaded(admin.brokers()))

        scheduler = Scheduler(
            self.queue,
            discover,
            self.offloader,
            Rounds(self.config.offload.interval.total_seconds()),
            ended=ended,
            clocks=Clocks(self.clock_ms, lambda: self.clock.now_ms / 1000),
        )

        left = _MOST_TURNS

        def over() -> bool:
            nonlocal left
            left -= 1
            self.clock.advance(1001)  # an order of the queue that is older is made anew
            return left < 0 or not self.queue.ready(self.clock.now_ms / 1000)

        scheduler.round()
        scheduler.run(over, rounds=False)
        return errors
