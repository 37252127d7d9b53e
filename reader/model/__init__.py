"""Values: topic, partition, position, ledger, segment, schema version, entries, columns.

    topics        Topic, Partition: names, and how they are written
    positions     Position: ledger id and entry id; BEFORE_ALL, TransactionId
    ledgers       LedgerIdentity, LedgerMetadata, OffloadContext, Segment: where a ledger is stored,
                  and as a part of a partition
    schemas       SchemaInfo: one version of a topic's schema
    stored_times  StoredTimes: when messages were stored, as far as it is known
    splits        Split: the entries of one segment that one task reads
    reasons       TierReason, PruneReason: why a segment has its tier, and why it is not read
    entry_blocks  EntryBlock: raw entries of one ledger, in one array of bytes
    columns       the metadata columns of every table
    row_kinds     RowKind: what a row is, and filters by it
    column_names  which names are the same name for Spark, and names that are free

A *partition* is Pulsar's ``…-partition-N``, or the topic itself (index -1). A *segment* is one
ledger of one partition. Names are those of Pulsar and BookKeeper. No I/O and no settings here.
Imports only ``reader.errors``.
"""

from reader.model.entry_blocks import EntryBlock
from reader.model.ledgers import (
    LedgerIdentity,
    LedgerMetadata,
    OffloadContext,
    Segment,
    SegmentState,
    Stored,
    Tier,
)
from reader.model.positions import BEFORE_ALL, Position, TransactionId
from reader.model.schemas import SchemaInfo
from reader.model.splits import Split
from reader.model.stored_times import StoredTimes
from reader.model.topics import Partition, Topic

__all__ = [
    "BEFORE_ALL",
    "EntryBlock",
    "LedgerIdentity",
    "LedgerMetadata",
    "OffloadContext",
    "Partition",
    "Position",
    "SchemaInfo",
    "Segment",
    "SegmentState",
    "Split",
    "Stored",
    "StoredTimes",
    "Tier",
    "Topic",
    "TransactionId",
]
