"""A partition's ledgers: ``internalStats`` and ``internal-info`` of the REST API's v2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reader.errors import NotFoundError
from reader.model import LedgerMetadata, Partition, Position
from reader.pulsar.http import AdminPart
from reader.pulsar.ledger_metadata import parse_ledger_metadata
from reader.pulsar.transactions import max_read

__all__ = ["LedgerInfo", "LedgerRequests", "PartitionLedgers"]


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger as a partition lists it.

    ``entries`` and ``bytes`` are 0 for the open ledger. ``closed_at``: ms since the epoch, None
    while open. ``offloaded``: moved away by Pulsar's own tiered storage.
    """

    ledger_id: int
    entries: int
    bytes: int
    metadata: LedgerMetadata | None
    offloaded: bool
    closed_at: int | None


@dataclass(frozen=True, slots=True)
class PartitionLedgers:
    """A partition's ledgers, ascending, and where it ends.

    ``last_confirmed`` is the last entry written; ``max_read`` the last that no open transaction
    hides (equal to ``last_confirmed`` without transactions). ``created_at`` is the managed
    ledger's creation time as Pulsar prints it; "" where there is no managed ledger yet.
    ``cursors`` maps a subscription to its next entry to read.
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


class LedgerRequests(AdminPart):
    """Which ledgers a partition has."""

    def ledgers(self, partition: Partition) -> PartitionLedgers:
        """The partition's ledgers and end. A partition nobody wrote to yet has none."""
        path = f"/admin/v2/persistent/{partition.rest_path}"
        what = f"topic {partition}"
        try:
            stats = self.http.get(f"{path}/internalStats", what, metadata="true")
        except NotFoundError:
            if partition.index < 0:
                raise
            nothing = Position(-1, -1)  # listed by its topic, made on the first write
            return PartitionLedgers(partition, (), nothing, nothing, False, "", 0, {})
        info = self.http.get(f"{path}/internal-info", what)
        closed = {
            int(one["ledgerId"]): int(one.get("timestamp") or 0) for one in info.get("ledgers", [])
        }
        last = Position.parse(stats["lastConfirmedEntry"])
        return PartitionLedgers(
            partition=partition,
            ledgers=tuple(_ledger(one, closed) for one in stats["ledgers"]),
            last_confirmed=last,
            max_read=max_read(self.http, partition, last, clock=self.clock, sleep=self.sleep),
            terminated=stats.get("state") == "Terminated",
            created_at=str(info.get("creationDate") or ""),
            open_bytes=int(stats.get("currentLedgerSize") or 0),
            cursors={name: _next_entry(one) for name, one in stats["cursors"].items()},
            opened_at=_moment_ms(stats.get("lastLedgerCreatedTimestamp")),
        )

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


def _next_entry(cursor: Mapping[str, Any]) -> Position:
    mark = Position.parse(cursor["markDeletePosition"])
    return Position(mark.ledger, mark.entry + 1)


def _ledger(one: Mapping[str, Any], closed: Mapping[int, int]) -> LedgerInfo:
    ledger_id = int(one["ledgerId"])
    text = one.get("metadata")
    metadata = parse_ledger_metadata(ledger_id, text) if text else None
    closed_at = closed.get(ledger_id) or None
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=int(one["entries"]),
        bytes=int(one["size"]),
        metadata=metadata,
        offloaded=bool(one.get("offloaded")),
        # Of an open ledger Pulsar prints the time of the question.
        closed_at=None if metadata is not None and not metadata.closed else closed_at,
    )
