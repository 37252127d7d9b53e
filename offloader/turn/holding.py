"""The holds of the topics that this process offloads: taken, restored, released.

What each step does to one partition is in ``offloader.subscription.hold``; here is what this
process remembers of it between turns, and what operators are told.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from offloader.config import OffloadConfig
from offloader.model import Release, settings_of
from offloader.output import LakeCommitter, Replacement
from offloader.subscription import hold
from offloader.turn.known_versions import KnownVersions
from offloader.turn.phase_timer import PhaseTimer
from reader.errors import CommitConflictError, ConfigurationError
from reader.model import Partition, Topic
from reader.plan import DataLoss, HistoryChecks, compaction_start, given_up, list_ledgers
from reader.pulsar import AdminClient, PartitionLedgers
from reader.storage import Storage
from reader.table import FollowedTables, TopicTable


class Holding:
    """Each topic for one thread at a time; ``take_new`` also beside that one.

    ``clock_ms``: ms since the epoch.
    """

    def __init__(
        self,
        admin: AdminClient,
        tables: FollowedTables,
        storage: Storage,
        committer: LakeCommitter,
        config: OffloadConfig,
        *,
        clock_ms: Callable[[], int],
        say: Callable[[str], None],
        timer: PhaseTimer,
    ) -> None:
        self._admin = admin
        self._tables = tables
        self._storage = storage
        self._committer = committer
        self._config = config
        self._name = config.subscription
        self._clock_ms = clock_ms
        self._say = say
        self._timer = timer
        self._taken: set[Partition] = set()
        self._made: set[Partition] = set()
        self._accepted: set[Partition] = set()  # with an old copy
        self._history = HistoryChecks()
        self._known: dict[Topic, KnownVersions] = {}

    def take(self, topic: Topic) -> Mapping[Partition, PartitionLedgers]:
        """The topic's ledgers, listed under its hold on each partition.

        Raises UnavailableError when Pulsar does not show a hold that it was asked to make.
        """
        partitions = self._admin.partitions(topic, known=self._taken)
        self.take_new(partitions)
        listed = list_ledgers(self._admin, partitions)
        for partition in hold.missing(listed, self._name):
            self._say(
                f"{partition}: subscription {self._name} was missing and has been created "
                "again; messages may be lost"
            )
            self._made.add(partition)
        return hold.verify(self._admin, listed, self._name)

    def take_new(self, partitions: Sequence[Partition]) -> None:
        """Take the hold on those where this process has not taken it yet.

        Raises the first error once all were tried.
        """
        new = [one for one in partitions if one not in self._taken]
        found = hold.take(self._admin, new, self._name)
        self._made |= {one for one, made in found.items() if made is True}
        self._taken |= {one for one, made in found.items() if isinstance(made, bool)}
        hold.require_all(found)

    def check(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable
    ) -> list[DataLoss]:
        """Whether ``table`` was filled from the history that ``listed`` is of, and is the newest
        that it was: to be known before a hold moves, or anything is added.

        Returns what operators have given up of an old copy. ``listed`` is older than ``table``.
        Raises ConfigurationError for another cluster's ledgers, or a restored one's, and for an old
        copy otherwise.
        """
        self._history.check(self._admin, table, listed)
        found = self._given_up(listed, table)
        self._accepted |= {one.partition for one in found}
        return found

    def recorded(self, table: TopicTable, partitions: Iterable[Partition]) -> None:
        """Note that a commit has stepped over what operators have given up of ``partitions``."""
        for partition in self._accepted.intersection(partitions):
            upto = table.watermark(partition)
            hold.claim(self._admin, partition, self._name, table, upto, recorded=True)
            self._accepted.discard(partition)

    def _given_up(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable
    ) -> list[DataLoss]:
        return given_up(self._admin, table, listed, lambda: self._tables.newest(table.topic))

    def name_table(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable | None
    ) -> None:
        """Note ``table`` down with the holds that were made for it now: those before them were
        moved for it.

        Raises ConfigurationError for the hold of another table.
        """
        # Other threads add to the set: it can be asked, and not gone through.
        for partition in sorted(one for one in listed if one in self._made):
            watermark = table.watermark(partition) if table else -1
            if table is not None and watermark >= 0:
                hold.claim(self._admin, partition, self._name, table, watermark)
            self._made.discard(partition)

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
        """Raises ConfigurationError where a hold was moved for a table, though there is none, and
        CommitConflictError where another offloader has made the table by now.
        """
        uri = self._storage.table_uri(topic)
        try:
            for partition in partitions:
                hold.require_unclaimed(self._admin, partition, self._name, uri)
        except ConfigurationError as error:
            if self._tables.newest(topic) is None:
                raise
            raise CommitConflictError(
                f"another offloader has made the table of {topic} meanwhile"
            ) from error

    def _note_compaction(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable
    ) -> TopicTable:
        """Commit from which ledger on Pulsar compacts each partition, if that is new.

        Return the table after that. It is done before the hold moves: what Pulsar deletes then, its
        compaction may not have seen. Raises as ``LakeCommitter.replace``.
        """
        starts: dict[Partition, int | None] = {}
        for partition, listing in listed.items():
            if table.created_at(partition) == listing.created_at:
                start = compaction_start(table, listing)
                if start != table.numbers(partition).compaction_start:
                    starts[partition] = start
        if not starts:
            return table
        note = {"operation": "compaction-start"}
        change = Replacement({}, (), False, note, compaction_starts=starts)
        return self._committer.replace(table, change)

    def release(
        self, topic: Topic, listed: Mapping[Partition, PartitionLedgers], newest: TopicTable
    ) -> tuple[tuple[Release, ...], float]:
        """Move the holds to what has been in the log for ``grace``; ``newest`` was just read.

        Returns the moves, and the seconds until more is settled (0.0: nothing is waiting). Raises
        ConfigurationError for another cluster's table, an old copy, or another table's hold.
        """
        # What is released was checked to be this topic's, and is in the log.
        self._history.check(self._admin, newest, listed)
        newest = self._note_compaction(listed, newest)
        moves = hold.moves(listed, newest, self._name)
        if not moves:
            return (), 0.0
        self._given_up({one.partition: listed[one.partition] for one in moves}, newest)
        grace = settings_of(self._config, topic).grace
        known = self._known.get(topic)
        if known is None or known.table_id != newest.id:
            known = self._known[topic] = KnownVersions(newest.id, self._timer.now)
        known.note(newest.version)
        table, wait = hold.settled(
            self._storage,
            newest,
            topic,
            clock_ms=self._clock_ms(),
            grace_ms=int(grace.total_seconds() * 1000),
            known_ms=known.age_ms,
        )
        if table is None:
            return (), wait
        known.forget_before(table.version)
        with self._timer.phase("release"):
            for one in hold.moves(listed, table, self._name):
                upto = table.watermark(one.partition)
                hold.claim(self._admin, one.partition, self._name, table, upto)
            moved = hold.release(self._admin, listed, table, self._name)
        return tuple(moved), wait
