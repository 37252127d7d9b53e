"""The metadata columns of every table.

Payload columns come first, then these. All are nullable. Times are µs since the epoch, UTC.
"""

import pyarrow as pa
import pyarrow.compute as pc

from reader.model.column_names import name_key
from reader.model.positions import BEFORE_ALL, Position
from reader.model.row_kinds import KIND_COLUMN, RowKind

TIMESTAMP = pa.timestamp("us", tz="UTC")

# The years 1 to 9999: Python has no other dates and times, so one value of another year would fail
# a whole result in Python and PySpark.
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
FIRST_MILLIS, LAST_MILLIS = FIRST_DAY * 86_400_000, (LAST_DAY + 1) * 86_400_000 - 1
FIRST_MICROS, LAST_MICROS = FIRST_MILLIS * 1000, LAST_MILLIS * 1000 + 999

# As the Java client's EncryptionContext; ``metadata`` is the entry's whole MessageMetadata.
ENCRYPTION_CONTEXT = pa.struct(
    [
        (
            "keys",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("value", pa.binary()),
                        ("metadata", pa.map_(pa.string(), pa.string())),
                    ]
                )
            ),
        ),
        ("param", pa.binary()),
        ("algorithm", pa.string()),
        ("compression", pa.string()),
        ("uncompressedSize", pa.int64()),
        ("batchSize", pa.int32()),
        ("metadata", pa.binary()),
    ]
)

OTHER_METADATA = pa.struct([("entry", pa.binary()), ("message", pa.binary())])
"""Fields of an entry's MessageMetadata, and of a batched message's own SingleMessageMetadata, that
have no column, as protobuf's bytes."""

METADATA = pa.schema(
    [
        ("__topic", pa.string()),
        ("__partition", pa.int32()),
        ("__ledgerId", pa.int64()),
        ("__entryId", pa.int64()),
        ("__batchIndex", pa.int32()),
        ("__key", pa.string()),
        ("__keyBase64", pa.bool_()),
        ("__orderingKey", pa.binary()),
        ("__messageProperties", pa.map_(pa.string(), pa.string())),
        ("__publishTime", TIMESTAMP),
        ("__eventTime", TIMESTAMP),
        ("__brokerPublishTime", TIMESTAMP),
        ("__deliverAt", TIMESTAMP),
        ("__index", pa.int64()),
        ("__producerName", pa.string()),
        ("__replicatedFrom", pa.string()),
        ("__sequenceId", pa.int64()),
        ("__schemaVersion", pa.int64()),
        ("__tombstone", pa.bool_()),
        ("__encryptionContext", ENCRYPTION_CONTEXT),
        ("__otherMetadata", OTHER_METADATA),
        ("__firstChunkLedgerId", pa.int64()),
        ("__firstChunkEntryId", pa.int64()),
        (KIND_COLUMN, pa.string()),
        ("__rescued", pa.binary()),
        ("__error", pa.string()),
    ]
)
METADATA_NAMES = tuple(METADATA.names)
_BY_KEY = {name_key(name): name for name in METADATA_NAMES}

# Files carry minimum and maximum of these, so that scans skip files by them.
STATISTICS = ("__partition", "__ledgerId", "__entryId", "__publishTime", "__eventTime", KIND_COLUMN)

FIRST_CHUNK = ("__firstChunkLedgerId", "__firstChunkEntryId")
"""Where the message or the chunks of a row begin, if they are more than one entry; else NULL."""

BROKER_NULLS = ("__index", "__brokerPublishTime")
"""What a broker adds to an entry, beside what its producer wrote. A consumer is shown it only where
``exposingBrokerEntryMetadataToClientEnabled`` is set in the broker (by default it is not): else the
two are NULL in rows that came through it, and only these."""


def last_given_up(rows: pa.RecordBatch) -> Position:
    """Return where the last given-up message begins that has a row, or BEFORE_ALL."""
    if KIND_COLUMN not in rows.schema.names:
        return BEFORE_ALL
    kinds = rows.column(KIND_COLUMN)
    found = rows.filter(pc.equal(kinds, RowKind.INCOMPLETE.value))
    places = zip(*(found.column(name).to_pylist() for name in FIRST_CHUNK), strict=True)
    return max((Position(*place) for place in places), default=BEFORE_ALL)


def rows_between(partition: int, first: Position | None, last: Position | None) -> pc.Expression:
    """A partition's rows, by its index, from ``first`` to ``last`` (inclusive, None: open)."""
    ledger, entry = pc.field("__ledgerId"), pc.field("__entryId")
    found = pc.field("__partition") == partition
    if first is not None:
        found &= (ledger > first.ledger) | ((ledger == first.ledger) & (entry >= first.entry))
    if last is not None:
        found &= (ledger < last.ledger) | ((ledger == last.ledger) & (entry <= last.entry))
    return found


def metadata_name(name: str) -> str | None:
    """Return the metadata column that is the same name for Spark, or None."""
    return _BY_KEY.get(name_key(name))


def metadata_index(columns: pa.Schema, name: str) -> int:
    """Where rows have a metadata column, -1: nowhere."""
    return next((i for i, one in enumerate(columns.names) if metadata_name(one) == name), -1)
