"""A partition's ledgers: ``internalStats`` and ``internal-info`` of the REST API's v2."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from reader.errors import NotFoundError
from reader.model import LedgerIdentity, LedgerMetadata, OffloadContext, Partition, Position, Stored
from reader.pulsar.http import date_ms
from reader.pulsar.ledger_metadata import parse_ledger_metadata
from reader.pulsar.transactions import TransactionRequests

_COMPACTION = "__compaction"
"""The cursor of Pulsar's own compaction."""
_COMPACTED = "CompactedTopicLedger"
"""The property of that cursor which names the compacted ledger."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger as a partition lists it.

    ``entries`` and ``bytes`` are 0 for the open ledger. ``closed_at``: ms since the epoch, None
    while open. ``offloaded``: Pulsar's own tiered storage has all of it, and ``offload`` says
    where; an attempt that is under way, or has failed, is in neither.
    """

    ledger_id: int
    entries: int
    bytes: int
    metadata: LedgerMetadata | None
    offloaded: bool
    closed_at: int | None
    offload: OffloadContext | None = None

    @property
    def closed(self) -> bool:
        """Whether nothing is written to it any more, as far as its own entry says."""
        return self.offloaded or (self.metadata is not None and self.metadata.closed)

    @property
    def stored(self) -> Stored | None:
        """By what its entries are read where they are stored; None: only the broker can.

        BookKeeper may still have a copy of what is offloaded (for the deletion lag, 4 h by
        default). Whether it does is in Pulsar's metadata store alone; of what jcloud drivers have
        taken no metadata is listed, and others list that of their own copy. Pulsar's own readers
        prefer the objects, too (``managedLedgerOffloadedReadPriority``).
        """
        return self.offload if self.offloaded else self.metadata


@dataclass(frozen=True, slots=True)
class CompactedLedger:
    """The ledger in which Pulsar's compaction keeps the latest message of each key.

    ``upto``: the last position that was compacted. ``metadata``: None if the broker does not show
    this ledger. Pulsar deletes no entry behind ``upto``; each compaction writes a new ledger.
    """

    ledger_id: int
    entries: int
    metadata: LedgerMetadata | None
    upto: Position


@dataclass(frozen=True, slots=True)
class PartitionLedgers:
    """A partition's ledgers, ascending, and where it ends.

    ``last_confirmed`` is the last entry written; ``max_read`` the last that no open transaction
    hides (equal to ``last_confirmed`` without transactions). ``recovering``: the broker cannot
    tell what transactions hide, or was not asked, and ``max_read`` is before everything.
    ``created_at`` is the managed ledger's creation time as Pulsar prints it; "" where there is no
    managed ledger yet.
    ``cursors`` maps a subscription to its next entry to read. ``listed_at``: when Pulsar answered,
    ms since the epoch by the broker's clock; None where it does not say. ``added``: entries written
    since the broker loaded the topic; ``kept``: those of all ledgers that are listed.
    ``timed_upto``: the last ledger that had a time; None: the last of ``ledgers``.
    ``compacted``: None if the partition has never been compacted, since its cursor was made.
    """

    partition: Partition
    ledgers: tuple[LedgerInfo, ...]
    last_confirmed: Position
    max_read: Position
    terminated: bool
    created_at: str
    open_bytes: int
    cursors: Mapping[str, Position]
    opened_at: int | None = None
    listed_at: int | None = None
    recovering: bool = False
    added: int = 0
    kept: int = 0
    timed_upto: int | None = None
    compacted: CompactedLedger | None = None

    @property
    def has_compaction(self) -> bool:
        """True if Pulsar compacts the partition: it deletes nothing that it has not compacted."""
        return _COMPACTION in self.cursors

    @property
    def missing(self) -> int:
        """How many entries, at least, were deleted that were written since the topic was loaded."""
        return max(0, self.added - self.kept)

    @property
    def trimmed(self) -> bool:
        """Whether entries were deleted that were written since the topic was loaded.

        False: some may have been, written before or since.
        """
        return self.missing > 0

    def last_entry(self, ledger: LedgerInfo) -> int:
        """The last entry id of one of the ledgers; -1 for an empty one.

        The last ledger shows 0 entries even when the topic is terminated; its metadata and the
        last confirmed entry know better.
        """
        if ledger.metadata is not None and ledger.metadata.closed:
            return ledger.metadata.last_entry
        if self.last_confirmed.ledger == ledger.ledger_id:
            return self.last_confirmed.entry
        return ledger.entries - 1

    def closed_at(self, ledger: LedgerInfo) -> int | None:
        """When one of the ledgers was closed (ms since the epoch), for good; None: not known.

        Never of the last ledger: a terminated topic's gets a new time whenever it is loaded. Nor of
        one that was the last where the times come from: any broker gives these, and one that has
        not seen yet that it is closed prints the time of the question.
        """
        last = self.ledgers[-1].ledger_id
        upto = last if self.timed_upto is None else min(last, self.timed_upto)
        return None if ledger.ledger_id >= upto else ledger.closed_at

    def opened_times(self, closed_at: int | None = None) -> dict[int, int | None]:
        """Return by ledger when the one before was closed, ms since the epoch; None: not known.

        ``closed_at``: of the ledger before the first, if it is known.
        """
        closed = [closed_at, *map(self.closed_at, self.ledgers)]
        return {one.ledger_id: at for one, at in zip(self.ledgers, closed, strict=False)}

    def identity(self, ledger: LedgerInfo) -> LedgerIdentity | None:
        """What tells one of the ledgers from another of the same id; None: not known."""
        closed_at = self.closed_at(ledger)
        if closed_at is None or not self.created_at:
            return None
        return LedgerIdentity(self.created_at, closed_at, self.last_entry(ledger), ledger.bytes)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a partition ends: what is written later lies behind ``last``.

    ``created_at``: the managed ledger's creation time as Pulsar prints it, which tells this log
    from another topic's or cluster's of the same name; "" where there is no managed ledger yet.
    """

    last: Position
    created_at: str


NO_LOG = LogEnd(Position(-1, -1), "")
"""The end of a partition that nobody has written to."""


class LedgerRequests(TransactionRequests):
    """Which ledgers a partition has."""

    def log_end(self, partition: Partition) -> LogEnd:
        """Return where the partition ends now. Asks for no ledger's metadata."""
        path = f"/admin/v2/persistent/{partition.rest_path}"
        what = f"topic {partition}"
        try:
            stats = self.http.get(f"{path}/internalStats", what)
        except NotFoundError:
            if partition.index < 0:
                raise
            return NO_LOG
        info = self.http.get(f"{path}/internal-info", what)
        return LogEnd(
            Position.parse(stats["lastConfirmedEntry"]), str(info.get("creationDate") or "")
        )

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        """The partition's ledgers and end. A partition nobody wrote to yet has none.

        ``transactions=False``: what they hide is not asked, nor waited for (see ``recovering``).
        """
        path = f"/admin/v2/persistent/{partition.rest_path}"
        what = f"topic {partition}"
        try:
            stats = self.http.get(f"{path}/internalStats", what, metadata="true")
        except NotFoundError:
            if partition.index < 0:
                raise
            nothing = Position(-1, -1)  # listed by its topic, made on the first write
            return PartitionLedgers(partition, (), nothing, nothing, False, "", 0, {})
        answer = self.http.check(self.http.request("GET", f"{path}/internal-info"), what)
        info = answer.json()
        closed = {
            int(one["ledgerId"]): int(one.get("timestamp") or 0) for one in info.get("ledgers", [])
        }
        last = Position.parse(stats["lastConfirmedEntry"])
        offloads = {
            int(one["ledgerId"]): str(one.get("offloadedContextUuid") or "")
            for one in info.get("ledgers", [])
        }
        ledgers = tuple(_ledger(one, closed, offloads) for one in stats["ledgers"])
        max_read = self.max_read(partition, last) if transactions else None
        return PartitionLedgers(
            partition=partition,
            ledgers=ledgers,
            last_confirmed=last,
            max_read=Position(-1, -1) if max_read is None else max_read,
            recovering=max_read is None,
            terminated=stats.get("state") == "Terminated",
            created_at=str(info.get("creationDate") or ""),
            open_bytes=int(stats.get("currentLedgerSize") or 0),
            cursors={name: _next_entry(one) for name, one in stats["cursors"].items()},
            opened_at=_moment_ms(stats.get("lastLedgerCreatedTimestamp")),
            # What is deleted is taken from the second one alone. A write is counted there first
            # (``OpAddEntry``), and asked for last, so it is never ahead in the first one only.
            added=int(stats.get("entriesAddedCounter", 0)),
            kept=int(stats.get("numberOfEntries", 0)),
            listed_at=_answered_at(answer, ledgers, closed),
            timed_upto=max(closed, default=None),
            compacted=_compacted(stats),
        )

    def compacted(self, partition: Partition) -> CompactedLedger | None:
        """The newest compacted ledger. Raises NotFoundError where there is no topic."""
        path = f"/admin/v2/persistent/{partition.rest_path}/internalStats"
        return _compacted(self.http.get(path, f"topic {partition}", metadata="true"))

    def ledger_ids(self, partition: Partition) -> set[int]:
        """The ids alone, with one request. Raises NotFoundError where there is no topic."""
        path = f"/admin/v2/persistent/{partition.rest_path}/internalStats"
        stats = self.http.get(path, f"topic {partition}")
        return {int(one["ledgerId"]) for one in stats["ledgers"]}


def _moment_ms(text: str | None) -> int | None:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None
    except ValueError:
        return None


def _answered_at(
    answer: httpx.Response, ledgers: Sequence[LedgerInfo], closed: Mapping[int, int]
) -> int | None:
    """When ``internal-info`` was answered, by the broker's clock.

    Of an open ledger Pulsar prints that time (``MetaStoreImpl.updateMLInfoTimestamp``), in ms. In
    the header it has seconds.
    """
    for one in ledgers:
        if one.metadata is not None and not one.metadata.closed and closed.get(one.ledger_id):
            return closed[one.ledger_id]
    return date_ms(answer)


def _compacted(stats: Mapping[str, Any]) -> CompactedLedger | None:
    """The compacted ledger by the cursor, which says in one what it is and how far it reaches.

    ``compactedLedger`` is what the broker has opened: none while the ledger's bookies do not
    answer, the next one while a compaction ends.
    """
    cursor = stats["cursors"].get(_COMPACTION) or {}
    named = (cursor.get("properties") or {}).get(_COMPACTED)
    if named is None:
        return None
    ledger_id, shown = int(named), stats.get("compactedLedger") or {}
    found = shown if int(shown.get("ledgerId", -1)) == ledger_id else {}
    text = found.get("metadata")
    return CompactedLedger(
        ledger_id=ledger_id,
        entries=int(found.get("entries", 0)),
        metadata=parse_ledger_metadata(ledger_id, text) if text else None,
        upto=Position.parse(cursor["markDeletePosition"]),
    )


def _next_entry(cursor: Mapping[str, Any]) -> Position:
    mark = Position.parse(cursor["markDeletePosition"])
    return Position(mark.ledger, mark.entry + 1)


def _ledger(
    one: Mapping[str, Any], closed: Mapping[int, int], offloads: Mapping[int, str]
) -> LedgerInfo:
    ledger_id = int(one["ledgerId"])
    text = one.get("metadata")
    metadata = parse_ledger_metadata(ledger_id, text) if text else None
    closed_at = closed.get(ledger_id) or None
    # ``internal-info`` has the uuid, but calls an attempt offloaded that is only prepared.
    offloaded, uuid = bool(one.get("offloaded")), offloads.get(ledger_id)
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=int(one["entries"]),
        bytes=int(one["size"]),
        metadata=metadata,
        offloaded=offloaded,
        # It becomes a part of paths.
        offload=OffloadContext(uuid) if offloaded and uuid and _UUID.fullmatch(uuid) else None,
        # Of an open ledger Pulsar prints the time of the question.
        closed_at=None if metadata is not None and not metadata.closed else closed_at,
    )
