"""A ledger as BookKeeper describes it, and as a segment of a partition."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from reader.model.positions import Position
from reader.model.reasons import TierReason
from reader.model.topics import Partition

SegmentState = Literal["open", "sealed", "offloaded", "lost"]


class Tier(StrEnum):
    """Where the rows of a segment are read from."""

    PARQUET = "parquet"
    BOOKKEEPER = "bookkeeper"
    TIERED = "tiered"
    BROKER = "broker"

    @property
    def cold(self) -> bool:
        """Read from the table, without Pulsar."""
        return self is Tier.PARQUET


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """BookKeeper's metadata of one ledger.

    ``ensembles`` maps the first entry id of each ensemble to its bookie ids, ascending.
    ``last_entry`` is -1 while the ledger is open, and when it is empty.
    ``digest_type`` is one of CRC32C, CRC32, MAC (HMAC), DUMMY. ``length``: bytes of all entries, as
    their writer counted; -1 where it is not known.
    """

    ledger_id: int
    state: str
    ensemble_size: int
    write_quorum: int
    ack_quorum: int
    last_entry: int
    digest_type: str
    ensembles: tuple[tuple[int, tuple[str, ...]], ...]
    password: bytes = b""
    length: int = -1

    @property
    def closed(self) -> bool:
        return self.state == "CLOSED"

    def ensemble_at(self, entry: int) -> tuple[str, ...]:
        """The bookies of the ensemble that holds ``entry``: greatest key ≤ entry."""
        found = self.ensembles[0][1]
        for first, bookies in self.ensembles:
            if first > entry:
                break
            found = bookies
        return found

    def replicas(self, entry: int) -> tuple[str, ...]:
        """The write set of ``entry``, in the order in which BookKeeper wrote it."""
        ensemble = self.ensemble_at(entry)
        return tuple(ensemble[(entry + i) % self.ensemble_size] for i in range(self.write_quorum))


@dataclass(frozen=True, slots=True)
class OffloadContext:
    """Where Pulsar's own tiered storage has a ledger, once its offload is complete.

    ``uuid``: of the attempt that succeeded; names of objects are made of it. Driver and bucket are
    in Pulsar's metadata store alone.
    """

    uuid: str


Stored = LedgerMetadata | OffloadContext
"""By what a ledger's entries are read where they are stored: on bookies, or in objects."""


@dataclass(frozen=True, slots=True)
class LedgerIdentity:
    """What tells a sealed ledger from another of its id, after a cluster was wiped or restored.

    ``created_at``: its managed ledger's creation time, as Pulsar prints it; ``closed_at``: when the
    broker closed it, ms since the epoch; ``last_entry`` and ``length`` (bytes): its end.
    """

    created_at: str
    closed_at: int
    last_entry: int
    length: int


@dataclass(frozen=True, slots=True)
class Segment:
    """One ledger of one partition, and where a query reads it.

    ``state``: open (the last of its partition), sealed (closed, not in the table yet), offloaded
    (in the table) or lost (deleted before it was offloaded).
    ``last_entry`` is the last entry of the snapshot (inclusive; -1: none). ``bytes`` is the stored
    size as BookKeeper counts it, 0 where unknown. ``closed_at`` is in ms since the epoch, by the
    broker's clock; ``min_publish_time`` and ``max_publish_time`` are in µs since the epoch, by the
    producers' clocks; each is None where unknown. ``rows`` is None until a complete read has
    counted them. ``lookback``: a message that ends in this segment begins there at the earliest;
    None: in this segment. ``waiting``: entries after ``last_entry`` that no reader is given yet,
    because a transaction before them is open. ``identity``: None where it is not known, or not
    sealed. ``created_at``: its managed ledger's creation time, "" where unknown. ``metadata``: by
    what it is read where it is stored; None: only the broker can. ``opened_at``: nothing in it was
    stored before, by the brokers' clocks (ms since the epoch); None where unknown.
    """

    partition: Partition
    ledger_id: int
    state: SegmentState
    tier: Tier
    reason: TierReason
    last_entry: int
    entries: int
    bytes: int
    metadata: Stored | None = None
    closed_at: int | None = None
    min_publish_time: int | None = None
    max_publish_time: int | None = None
    rows: int | None = None
    lookback: Position | None = None
    waiting: int = 0
    identity: LedgerIdentity | None = None
    created_at: str = ""
    opened_at: int | None = None
