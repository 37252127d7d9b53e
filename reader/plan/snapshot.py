"""What one query sees: ledgers, end positions, schemas and table version, fixed together.

Order matters (ledgers first, then the table): a ledger that moves in between is found in the
table; none is missed, none is read twice. Nothing but the table's watermark decides what is cold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pyarrow as pa

from reader.config import ReadConfig
from reader.errors import ConfigurationError, NotFoundError
from reader.model import (
    TIERS,
    Partition,
    Position,
    SchemaInfo,
    Segment,
    SegmentState,
    Tier,
    Topic,
)
from reader.model.columns import METADATA
from reader.model.reasons import Reason, TierReason
from reader.payload import payload_fields
from reader.plan.data_loss import refuse_data_loss
from reader.private_keys import check_keys
from reader.pulsar.admin import AdminClient
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from reader.storage import open_storage
from reader.table import TopicTable

__all__ = [
    "Ciphertext",
    "Snapshot",
    "check_same_topic",
    "list_ledgers",
    "partition_segments",
    "payload_columns",
    "take_snapshot",
]

_PARALLEL_REQUESTS = 8


@dataclass(frozen=True, slots=True)
class Ciphertext:
    """The encrypted entries in a table's version, of which keys are configured."""

    version: int
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent view of a topic.

    ``version``/``uri``: the pinned Delta table, None where it has no part in the answer.
    ``fields``: the payload columns of the answer (table's first, then those only hot rows have).
    ``cold_columns``: the columns as the table version itself has them.
    ``hot``: segments to read from BookKeeper or the broker, by partition and ledger, none empty.
    ``cold``: segments that the table holds, as far as Pulsar still lists them.
    ``ciphertext``: rows of the table that are decrypted when they are read.
    """

    topic: Topic
    uri: str
    version: int | None
    fields: pa.Schema
    cold_columns: pa.Schema
    schemas: tuple[SchemaInfo, ...]
    hot: tuple[Segment, ...]
    cold: tuple[Segment, ...] = ()
    ciphertext: Ciphertext | None = None

    @property
    def columns(self) -> pa.Schema:
        """All columns of the answer: payload, then metadata."""
        return pa.schema([*self.fields, *METADATA])


def take_snapshot(
    config: ReadConfig, admin: AdminClient, topic: Topic, *, tiers: str | None = None
) -> Snapshot:
    """Fix what a query over ``topic`` sees, now.

    ``tiers`` forces one tier: "bookkeeper" and "broker" read everything Pulsar still has through
    it, "parquet" reads the table alone. Raises NotFoundError for an unknown topic, and
    ConfigurationError for one that the broker does not let us consume, wherever its rows lie, and
    for one of which messages were lost.
    """
    if tiers is not None and tiers not in TIERS:
        raise ConfigurationError(
            f"unknown tier {tiers!r}", hint="one of " + ", ".join(TIERS) + ", or none"
        )
    admin.require_consume(topic)
    listed: Mapping[Partition, PartitionLedgers] = {}
    schemas: tuple[SchemaInfo, ...] = ()
    gone: NotFoundError | None = None
    if tiers != "parquet":
        try:
            listed = list_ledgers(admin, admin.partitions(topic))
            # After the ledgers: every listed message's schema version is registered by now.
            schemas = admin.schemas(topic)
        except NotFoundError as error:
            gone = error  # a deleted topic keeps its table
    table = TopicTable.open(open_storage(config.storage), topic) if config.storage.uri else None
    if table is None and (gone or tiers == "parquet"):
        raise gone or NotFoundError(
            f"topic {topic} has no table yet", hint="run: pulsar-lake offload --once " + str(topic)
        )
    segments: list[Segment] = []
    for partition, listing in listed.items():
        watermark, reach = -1, None
        if table is not None:
            check_same_topic(table, listing)
            watermark, reach = table.watermark(partition), table.reach(partition)
        segments += partition_segments(config, listing, watermark, reach, tiers=tiers)
    if table is not None and not config.query.allow_gaps:
        refuse_data_loss(table, listed)
    if tiers in ("bookkeeper", "broker") and table is not None:
        _refuse_trimmed(table, listed, tiers)
    pinned = table if tiers not in ("bookkeeper", "broker") else None
    if pinned is not None and pinned.is_empty:
        pinned = None
    return Snapshot(
        topic=topic,
        uri=table.uri if table else "",
        version=pinned.version if pinned else None,
        fields=payload_columns(table, schemas),
        cold_columns=pinned.schema if pinned else pa.schema([]),
        schemas=schemas,
        hot=tuple(s for s in segments if s.tier != "parquet" and s.last_entry >= 0),
        cold=tuple(s for s in segments if s.tier == "parquet"),
        ciphertext=_ciphertext(config, pinned),
    )


def _ciphertext(config: ReadConfig, table: TopicTable | None) -> Ciphertext | None:
    if not config.encryption.configured:
        return None
    check_keys(config.encryption)
    if table is None or not table.has_ciphertext:
        return None
    return Ciphertext(table.version, tuple(table.partitions()))


def list_ledgers(
    admin: AdminClient, partitions: Sequence[Partition]
) -> dict[Partition, PartitionLedgers]:
    """The ledgers of several partitions, asked for side by side."""
    with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, max(1, len(partitions)))) as pool:
        return dict(zip(partitions, pool.map(admin.ledgers, partitions), strict=True))


def partition_segments(
    config: ReadConfig,
    listing: PartitionLedgers,
    watermark: int,
    reach: Position | None = None,
    *,
    tiers: str | None = None,
) -> list[Segment]:
    """The partition's ledgers as segments, each with its last readable entry and its tier.

    Entries behind an open transaction (after ``max_read``) are not in any segment. ``reach``:
    where the first message begins of which an end above the ``watermark`` is still to come, as
    the table has it.
    """
    end = min(listing.last_confirmed, listing.max_read)
    segments = []
    for position, info in enumerate(listing.ledgers):
        last_of_all = position == len(listing.ledgers) - 1
        closed = not last_of_all or (
            listing.terminated and info.metadata is not None and info.metadata.closed
        )
        last = listing.last_entry(info)
        if info.ledger_id > end.ledger:
            last = -1
        elif info.ledger_id == end.ledger:
            last = min(last, end.entry)
        state: SegmentState = "sealed" if closed else "open"
        tier, reason = _choose(config, info, state, last, watermark, tiers)
        segments.append(
            Segment(
                partition=listing.partition,
                ledger_id=info.ledger_id,
                state="offloaded" if info.ledger_id <= watermark else state,
                tier=tier,
                reason=reason,
                last_entry=last,
                entries=last + 1,
                bytes=listing.open_bytes if last_of_all else info.bytes,
                metadata=info.metadata,
                closed_at=info.closed_at,
            )
        )
    return _with_reach(segments, reach)


def _with_reach(segments: Sequence[Segment], recorded: Position | None) -> list[Segment]:
    """Where the messages of the hot segments begin at the earliest.

    The ledger named is one that is there, so that it can be seen when it has gone.
    """
    hot = [one for one in segments if one.tier != "parquet" and one.last_entry >= 0]
    if not hot:
        return list(segments)
    reach = Position(hot[0].ledger_id, 0)
    if recorded is not None and any(one.ledger_id == recorded.ledger for one in segments):
        reach = min(reach, recorded)
    return [replace(one, reach=reach) if one.tier != "parquet" else one for one in segments]


def _choose(
    config: ReadConfig,
    info: LedgerInfo,
    state: SegmentState,
    last: int,
    watermark: int,
    forced: str | None,
) -> tuple[Tier, TierReason]:
    if forced == "bookkeeper":
        return "bookkeeper", TierReason(Reason.FORCED)
    if forced == "broker":
        return "broker", TierReason(Reason.FORCED)
    if info.ledger_id <= watermark:
        return "parquet", TierReason(Reason.AT_WATERMARK, watermark)
    if info.offloaded:
        return "broker", TierReason(Reason.PULSAR_OFFLOADED)
    if info.metadata is None:
        return "broker", TierReason(Reason.NO_METADATA)
    if state == "sealed":
        return "bookkeeper", TierReason(Reason.SEALED)
    if last + 1 > config.query.tail_entries:
        return "bookkeeper", TierReason(Reason.LONG_TAIL, config.query.tail_entries)
    return "broker", TierReason(Reason.SHORT_TAIL)


def check_same_topic(table: TopicTable, listing: PartitionLedgers) -> None:
    """Refuse a table that was filled from another cluster's ledgers.

    A topic that was made again has a new creation time and only newer ledgers: fine.
    """
    recorded = table.created_at(listing.partition)
    if recorded is None or not listing.created_at or recorded == listing.created_at:
        return
    watermark = table.watermark(listing.partition)
    below = [one.ledger_id for one in listing.ledgers if one.ledger_id <= watermark]
    if below:
        raise ConfigurationError(
            f"the table of {listing.partition} was filled from another cluster or before a "
            f"restore: ledger {below[0]} lies below its watermark {watermark}, but the managed "
            f"ledger was created at {listing.created_at}, not {recorded}",
            hint=f"point storage.uri elsewhere, or move the table at {table.uri} away",
        )


def _refuse_trimmed(
    table: TopicTable, listed: Mapping[Partition, PartitionLedgers], tier: str
) -> None:
    for partition, listing in listed.items():
        watermark = table.watermark(partition)
        first = listing.ledgers[0].ledger_id if listing.ledgers else watermark + 1
        trimmed = [
            one.ledger
            for one in table.ledgers()
            if one.partition == partition.index and one.rows and one.ledger < first
        ]
        if trimmed:
            raise NotFoundError(
                f"tier {tier!r} cannot serve all of {partition}: Pulsar has trimmed "
                f"ledger {trimmed[0]} and {len(trimmed) - 1} more",
                hint="leave tiers unset: the table has them",
            )


def payload_columns(table: TopicTable | None, schemas: Sequence[SchemaInfo]) -> pa.Schema:
    """The table's payload columns, grown by what the topic's schemas have added since."""
    if table is None:
        return payload_fields(schemas)
    # A table whose topic's schemas are gone keeps its columns as they are.
    return payload_fields(schemas, known=table.payload_schema) if schemas else table.payload_schema
