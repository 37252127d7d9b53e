"""Topic, partition, position, ledger, segment: the words of the project as values.

A *partition* is Pulsar's ``…-partition-N``, or the topic itself (index -1). A *segment* is one
ledger of one partition. Names are those of Pulsar and BookKeeper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from reader.errors import ConfigurationError

__all__ = [
    "EntryBlock",
    "LedgerMetadata",
    "Partition",
    "Position",
    "SchemaInfo",
    "Segment",
    "SegmentState",
    "Tier",
    "Topic",
]

SegmentState = Literal["open", "sealed", "offloaded", "lost"]
Tier = Literal["parquet", "bookkeeper", "broker"]

_PARTITION_SUFFIX = re.compile(r"^(.*)-partition-(\d+)$")


@dataclass(frozen=True, slots=True, order=True)
class Topic:
    """``persistent://tenant/namespace/name``, without any ``-partition-N``."""

    tenant: str
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Topic:
        """Read ``persistent://t/n/x``, ``t/n/x`` or ``x`` (of ``public/default``).

        Raises ConfigurationError for anything else, ``non-persistent://`` above all.
        """
        rest = text.strip()
        if rest.startswith("non-persistent://"):
            raise ConfigurationError(
                f"{text} is a non-persistent topic: Pulsar stores nothing of it",
                hint="only persistent topics have a history to read",
            )
        rest = rest.removeprefix("persistent://")
        if "://" in rest:
            raise ConfigurationError(
                f"{text!r} is not a topic name", hint="write persistent://tenant/namespace/topic"
            )
        parts = rest.split("/", 2)
        if len(parts) == 1:
            parts = ["public", "default", *parts]
        if len(parts) != 3 or not all(parts):
            raise ConfigurationError(
                f"{text!r} is not a topic name", hint="write tenant/namespace/topic"
            )
        return cls(*parts)

    @property
    def full_name(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.name}"

    @property
    def local_name(self) -> str:
        """``tenant/namespace/name``, as people write it."""
        return f"{self.tenant}/{self.namespace}/{self.name}"

    @property
    def rest_path(self) -> str:
        """The path of the admin REST, percent-encoded."""
        return "/".join(quote(part, safe="") for part in (self.tenant, self.namespace, self.name))

    def __str__(self) -> str:
        return self.local_name


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """One partition of a topic; ``index`` is -1 for a topic without partitions."""

    topic: Topic
    index: int

    @property
    def full_name(self) -> str:
        suffix = f"-partition-{self.index}" if self.index >= 0 else ""
        return self.topic.full_name + suffix

    @property
    def rest_path(self) -> str:
        return self.topic.rest_path + (f"-partition-{self.index}" if self.index >= 0 else "")

    @classmethod
    def parse(cls, full_name: str) -> Partition:
        match = _PARTITION_SUFFIX.match(full_name)
        if match:
            return cls(Topic.parse(match[1]), int(match[2]))
        return cls(Topic.parse(full_name), -1)

    def __str__(self) -> str:
        return self.full_name.removeprefix("persistent://")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """(ledger id, entry id); entry -1 is "before the first entry"."""

    ledger: int
    entry: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read ``"12:345"`` as the admin REST writes it."""
        ledger, _, entry = text.partition(":")
        return cls(int(ledger), int(entry))

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """BookKeeper's metadata of one ledger.

    ``ensembles`` maps the first entry id of each ensemble to its bookie ids, ascending.
    ``last_entry`` is -1 while the ledger is open, and when it is empty.
    ``digest_type`` is one of CRC32C, CRC32, MAC (HMAC), DUMMY.
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
class Segment:
    """One ledger of one partition, and where a query reads it.

    ``last_entry`` is the last entry of the snapshot (inclusive; -1: nothing in it). ``bytes`` is
    the stored size as BookKeeper counts it, 0 where unknown. Times are µs since the epoch, None
    where unknown. ``rows`` is None until a complete read has counted them. ``reach``: a message
    that ends in this segment begins there at the earliest; None: in it.
    """

    partition: Partition
    ledger_id: int
    state: SegmentState
    tier: Tier
    reason: str
    last_entry: int
    entries: int
    bytes: int
    metadata: LedgerMetadata | None = None
    closed_at: int | None = None
    min_publish_time: int | None = None
    max_publish_time: int | None = None
    rows: int | None = None
    reach: Position | None = None


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """One version of a topic's schema.

    ``type`` is Pulsar's name in capitals (AVRO, JSON, STRING, INT32, BYTES, KEY_VALUE, …);
    ``definition`` is the schema text ("" for primitives).
    """

    version: int
    type: str
    definition: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def encoding(self) -> str:
        """Of a KEY_VALUE schema, where the key lies: INLINE or SEPARATED."""
        return self.properties.get("kv.encoding.type") or "INLINE"


@dataclass(frozen=True, slots=True)
class EntryBlock:
    """Raw entries of one ledger: what every hot source gives and every decoder takes.

    ``arena`` (uint8) holds the entries' bytes; entry i is
    ``arena[offsets[i] : offsets[i] + lengths[i]]`` and has id ``entry_ids[i]`` (int64, ascending).
    Digests are verified already. ``damaged`` names, by row number i, the entries of which every
    replica fails its digest: their bytes may be wrong and become rescued rows.
    """

    ledger_id: int
    entry_ids: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    arena: npt.NDArray[np.uint8]
    damaged: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger_id: int, entries: Mapping[int, bytes]) -> EntryBlock:
        """The entries by their ids, which ascend."""
        lengths = np.array([len(entry) for entry in entries.values()], np.int64)
        return cls(
            ledger_id=ledger_id,
            entry_ids=np.array(list(entries), np.int64),
            offsets=np.cumsum(lengths) - lengths,
            lengths=lengths,
            arena=np.frombuffer(b"".join(entries.values()), np.uint8),
        )

    def __len__(self) -> int:
        return len(self.entry_ids)
