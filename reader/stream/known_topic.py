"""What a stream knows of one topic between its batches; asked for again only where it has to be.

A list of ledgers serves as long as a batch ends in one of them: ledgers that are offloaded and
trimmed since are found in the table when they are read, as for a query that takes long. The schemas
are listed after a batch's end is known, as all that messages up to there name are registered then.
Ledgers first, then the table.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from reader import plan
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import BEFORE_ALL, Partition, Position, SchemaInfo, Topic
from reader.pulsar import PartitionLedgers
from reader.stream.losses import LossReader, expired, is_made_again, missing
from reader.stream.offsets import PartitionOffset
from reader.table import TopicTable

_TABLE_SECONDS = 5.0
"""How old the newest version may be that a batch of hot rows alone goes by."""
_ASK_SECONDS = 300.0
"""Seconds between two questions whether the topic was migrated."""
_WARN_SECONDS = 3600.0
"""Seconds between two warnings that the topic was migrated."""
_BEHIND_SECONDS = 60.0


def another_topic(why: str) -> ConfigurationError:
    """Of a topic that is not the one that the stream has read."""
    return ConfigurationError(why, hint="start a new query with another checkpointLocation")


class KnownTopic:
    """For one thread at a time. ``clock``: seconds."""

    def __init__(
        self, clients: Clients, topic: Topic, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.topic = topic
        self._clients = clients
        self._clock = clock
        self._listed: dict[Partition, PartitionLedgers] = {}
        self._table: TopicTable | None = None
        self._held_at = -math.inf
        self._losses = LossReader(clients.settings.pulsar.lost_ledgers)
        self._table_at = -math.inf
        self._behind_at: dict[Partition, float] = {}
        self._ask_migrated_at = -math.inf

    def table(self, *, now: bool = False) -> TopicTable | None:
        """The newest version, as of some seconds ago or ``now``. Raises as ``newest_table``."""
        if now or self._clock() - self._table_at >= _TABLE_SECONDS:
            self._table = self._clients.newest_table(self.topic)
            self._table_at = self._clock()
        return self._table

    def schemas(self) -> tuple[SchemaInfo, ...]:
        """All versions that are registered now; none of a topic that was deleted."""
        return self._clients.admin.schemas(self.topic)

    def end(self, partition: Partition, broker_end: Position) -> Position:
        """Where a partition ends. ``broker_end``: for its broker, which knows of no message that
        was trimmed, and says -1:-1 where all of them were."""
        table = self.table()
        if broker_end != BEFORE_ALL:
            listing = self._listing(partition, broker_end)
            gone = bool(listing.ledgers) and broker_end.ledger < listing.ledgers[0].ledger_id
            if broker_end.entry < 0 or gone:
                # Pulsar deletes an empty ledger when it loads the topic, and one that an open
                # transaction begins behind as any other: no place to go on from.
                broker_end = _last_entry(listing, broker_end.ledger)
        cold_end = table.end(partition) if table is not None else None
        if cold_end is None or cold_end.ledger <= broker_end.ledger:
            return broker_end
        return cold_end

    def require_not_behind(self, partition: Partition, known: PartitionOffset) -> None:
        """Of a partition that ends before what a stream has read: all of it was trimmed, or the
        topic is another one. Looked up once a minute at most. Raises ConfigurationError."""
        if self._clock() - self._behind_at.get(partition, -math.inf) < _BEHIND_SECONDS:
            return
        listing = self._listing(partition, known.at, now=True)
        table = self.table()
        watermark = table.watermark(partition) if table is not None else -1
        ids = [one.ledger_id for one in listing.ledgers]
        if ids and known.at.ledger > max(ids[-1], watermark):
            raise another_topic(
                f"{partition}: ledger {known.at.ledger}, which was read, has a greater number than "
                f"all that there are, up to {ids[-1]}: its cluster was restored or set up anew"
            )
        self._behind_at[partition] = self._clock()

    def warn_if_migrated(self, warn: Callable[[str], None]) -> None:
        """Call ``warn`` for a topic that continues as a scalable topic of Pulsar 5.

        Pulsar is asked every five minutes, and each hour once a warning was given.
        """
        if self._clock() < self._ask_migrated_at:
            return
        note = plan.migrated_note(self._clients.admin, self.topic)
        self._ask_migrated_at = self._clock() + (_ASK_SECONDS if note is None else _WARN_SECONDS)
        if note is not None:
            warn(note)

    def offset(
        self, partition: Partition, at: Position, known: PartitionOffset | None
    ) -> PartitionOffset:
        """A position with what tells later whether the topic is still the same.

        ``known``: an earlier one of the stream.
        """
        table = self.table()
        begun = PartitionOffset() if known is None else known
        created, gone_before = begun.created_at, begun.missing
        if not created or at > begun.at:
            # Of one that was deleted and made again, what is read next is judged by the old one.
            listed = self._listing(partition, at).created_at
            if created and listed and listed != created:
                gone_before = 0
            created = listed or created
        given_up = table.numbers(partition).given_up if table is not None else None
        gone = expired(table, partition)
        if at >= gone[0] and known is not None:
            gone = known.expired  # as before: what expires is what was read
        return PartitionOffset(
            at=at,
            created_at=created,
            expired=gone,
            given_up=max(begun.given_up, given_up or BEFORE_ALL),
            missing=gone_before,
        )

    def missing(self, partition: Partition) -> int:
        """``PartitionOffset.missing`` of a stream that begins now."""
        return missing(self._listing(partition, BEFORE_ALL), self.table())

    def earliest(self, partition: Partition) -> Position:
        """Where a stream begins that is to read all that there is."""
        table = self.table()
        if table is not None and table.watermark(partition) >= 0:
            return BEFORE_ALL
        listing = self._listing(partition, BEFORE_ALL, now=True)
        for one in listing.ledgers:
            if listing.last_entry(one) >= 0:
                return Position(one.ledger_id, -1)
        return BEFORE_ALL

    def snapshot(
        self,
        start: Mapping[Partition, PartitionOffset],
        end: Mapping[Partition, PartitionOffset],
        *,
        lost: Callable[[str], None],
    ) -> plan.Snapshot:
        """All that a batch may read, up to ``end``; ``lost`` is told what is not there any more.

        Raises as ``take_snapshot``, and what ``lost`` raises.
        """
        self._clients.admin.require_consume(self.topic)
        schemas = self.schemas()
        for again in (False, True):  # once more where the table has more than is known of it
            listed = {one: self._listing(one, to.at) for one, to in end.items()}
            table = self.table(now=again or any(self._is_cold(one, start[one].at) for one in end))
            behind, losses = _behind(listed, table), self._losses.of(start, end, listed, table)
            if not behind and not losses:
                break
            self._listed = {one: it for one, it in self._listed.items() if one not in behind}
        for partition, listing in listed.items():
            _require_following(partition, start[partition], listing)
        table = self._held(listed, table)
        if table is not None:
            plan.check_same_topic(self._clients.admin, table, listed)
        for one in losses:
            lost(one)
        bounded = {
            one: replace(listing, last_confirmed=end[one].at, max_read=end[one].at)
            for one, listing in listed.items()
        }
        return plan.snapshot_of(self._clients.settings, self.topic, bounded, schemas, table)

    def _held(
        self, listed: Mapping[Partition, PartitionLedgers], table: TopicTable | None
    ) -> TopicTable | None:
        """Raises as ``held_table``; asks no more often than the table is opened."""
        if self._held_at == self._table_at or self._clients.settings.query.allow_data_loss:
            return table
        clients, asked = self._clients, self._table_at
        uri = clients.storage.table_uri(self.topic) if clients.has_storage else ""
        found = plan.held_table(clients.admin, table, listed, uri, lambda: self.table(now=True))
        self._held_at = asked
        return found

    def _is_cold(self, partition: Partition, at: Position) -> bool:
        """Whether what follows lies in the table, as far as is known."""
        return self._table is None or at.ledger <= self._table.watermark(partition)

    def _listing(
        self, partition: Partition, end: Position, *, now: bool = False
    ) -> PartitionLedgers:
        """The partition's ledgers, up to ``end`` at least."""
        known = self._listed.get(partition)
        if now or known is None or not _reaches(known, end):
            # What transactions hide lies behind the end.
            found = plan.list_ledgers(self._clients.admin, [partition], transactions=False)
            known = self._listed[partition] = found[partition]
        return known


def _reaches(listing: PartitionLedgers, end: Position) -> bool:
    if end == BEFORE_ALL:
        return True
    return bool(listing.ledgers) and end.ledger <= listing.ledgers[-1].ledger_id


def _behind(
    listed: Mapping[Partition, PartitionLedgers], table: TopicTable | None
) -> set[Partition]:
    """Those of which all listed ledgers are in the table by now."""
    return {
        one
        for one, listing in listed.items()
        if table is not None
        and listing.ledgers
        and listing.ledgers[-1].ledger_id <= table.watermark(one)
        and not listing.terminated
    }


def _last_entry(listing: PartitionLedgers, before: int) -> Position:
    """The last entry that is listed of ledgers before one."""
    for one in reversed(listing.ledgers):
        if one.ledger_id < before and (last := listing.last_entry(one)) >= 0:
            return Position(one.ledger_id, last)
    return BEFORE_ALL


def _require_following(
    partition: Partition, since: PartitionOffset, listing: PartitionLedgers
) -> None:
    """Of a partition that was made again: its ledgers' numbers go on. Raises ConfigurationError."""
    if not is_made_again(since, listing) or not listing.ledgers:
        return
    first = listing.ledgers[0].ledger_id
    if first <= since.at.ledger:
        raise another_topic(
            f"{partition} was deleted and made again, with ledger {first}, though ledger "
            f"{since.at.ledger} was read: its cluster was restored or set up anew"
        )
