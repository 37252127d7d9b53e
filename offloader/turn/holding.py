"""The holds of the topics that this process offloads: taken, restored, released.

What each step does to one partition is in ``offloader.subscription.hold``; here is what this
process remembers of it between turns, and what operators are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from offloader.config import OffloadConfig
from offloader.model import Release, settings_of
from offloader.subscription import hold
from offloader.turn.phase_timer import PhaseTimer
from reader.model import Partition, Topic
from reader.plan import check_same_topic, list_ledgers
from reader.pulsar import AdminClient, PartitionLedgers
from reader.storage import Storage
from reader.table import TopicTable

__all__ = ["Holding"]


class Holding:
    """Each topic for one thread at a time. ``clock_ms``: ms since the epoch."""

    def __init__(
        self,
        admin: AdminClient,
        storage: Storage,
        config: OffloadConfig,
        *,
        clock_ms: Callable[[], int],
        say: Callable[[str], None],
        timer: PhaseTimer,
    ) -> None:
        self._admin = admin
        self._storage = storage
        self._config = config
        self._name = config.subscription
        self._clock_ms = clock_ms
        self._say = say
        self._timer = timer
        self._taken: set[Partition] = set()
        self._claimed: set[Partition] = set()

    def take(self, topic: Topic) -> Mapping[Partition, PartitionLedgers]:
        """The topic's ledgers, listed under its hold on each partition.

        Raises UnavailableError when Pulsar does not show a hold that it was asked to make.
        """
        partitions = self._admin.partitions(topic)
        new = [one for one in partitions if one not in self._taken]
        hold.take(self._admin, new, self._name)
        self._taken.update(new)
        listed = list_ledgers(self._admin, partitions)
        for partition in hold.missing(listed, self._name):
            self._claimed.discard(partition)
            self._say(
                f"{partition}: subscription {self._name} was missing and has been created "
                "again; messages may be lost"
            )
        return hold.verify(self._admin, listed, self._name)

    def restore(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable | None
    ) -> Mapping[Partition, PartitionLedgers]:
        """Move holds back that something else has moved ahead; ``listed`` after that.

        Raises ConfigurationError for a hold that was moved for another table.
        """
        strayed = hold.strayed(listed, table, self._name)
        if not strayed:
            return listed
        for one in strayed:
            uri = self._storage.table_uri(one.partition.topic)
            hold.require_own(self._admin, one.partition, self._name, uri)
            self._say(
                f"{one.partition}: something has moved subscription {self._name} to {one.before}, "
                f"ahead of what is in the table: moved back to {one.after}; look for a TTL, a "
                "backlog quota, or who reset it"
            )
            self._admin.move_hold(one.partition, self._name, one.after)
        return {**listed, **list_ledgers(self._admin, [one.partition for one in strayed])}

    def require_unclaimed(self, topic: Topic, partitions: Iterable[Partition]) -> None:
        """Raises ConfigurationError where a hold was moved for a table, though there is none."""
        uri = self._storage.table_uri(topic)
        for partition in partitions:
            hold.require_unclaimed(self._admin, partition, self._name, uri)

    def release(
        self, topic: Topic, listed: Mapping[Partition, PartitionLedgers], newest: TopicTable
    ) -> tuple[tuple[Release, ...], float]:
        """Move the holds to what has been in the log for ``grace``; ``newest`` was just read.

        Returns the moves, and the seconds until more is settled (0.0: nothing is waiting). Raises
        ConfigurationError for another cluster's table, or another table's hold.
        """
        # What is released was checked to be this topic's, and is in the log.
        for listing in listed.values():
            check_same_topic(newest, listing)
        moves = hold.moves(listed, newest, self._name)
        if not moves:
            return (), 0.0
        grace = settings_of(self._config, topic).grace
        table, wait = hold.settled(
            self._storage,
            newest,
            topic,
            clock_ms=self._clock_ms(),
            grace_ms=int(grace.total_seconds() * 1000),
        )
        if table is None:
            return (), wait
        with self._timer.phase("release"):
            for partition in {one.partition for one in moves} - self._claimed:
                hold.claim(self._admin, partition, self._name, newest)
                self._claimed.add(partition)
            moved = hold.release(self._admin, listed, table, self._name)
        return tuple(moved), wait
