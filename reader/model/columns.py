"""The metadata columns of every table.

Payload columns come first, then these. All are nullable. Times are µs since the epoch, UTC.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from reader.model.column_names import name_key
from reader.model.positions import BEFORE_ALL, Position

__all__ = [
    "BROKER_NULLS",
    "CIPHERTEXT_SQL",
    "ENCRYPTED_ERROR",
    "ENCRYPTION_CONTEXT",
    "FIRST_DAY",
    "FIRST_MICROS",
    "FIRST_MILLIS",
    "GIVEN_UP_ERROR",
    "GIVEN_UP_PLACE",
    "IS_CIPHERTEXT",
    "IS_GIVEN_UP",
    "IS_STRAY",
    "LAST_DAY",
    "LAST_MICROS",
    "LAST_MILLIS",
    "METADATA",
    "METADATA_NAMES",
    "OTHER_METADATA",
    "STATISTICS",
    "STRAY_ERROR",
    "TIMESTAMP",
    "count_ciphertext",
    "given_up_error",
    "last_given_up",
    "metadata_index",
    "metadata_name",
    "rows_between",
]

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
        ("__rescued", pa.binary()),
        ("__error", pa.string()),
    ]
)
METADATA_NAMES = tuple(METADATA.names)
_BY_KEY = {name_key(name): name for name in METADATA_NAMES}

# Files carry minimum and maximum of these, so that scans skip files by them.
STATISTICS = ("__partition", "__ledgerId", "__entryId", "__publishTime", "__eventTime")

ENCRYPTED_ERROR = "encrypted"
"""How ``__error`` begins in a row that is an encrypted entry, and in no other row.

A stored value (``docs/formats.md``), as the next two are and no other text there: by it the rows of
a table are found that a query with keys decrypts. Keep it.
"""

STRAY_ERROR = "chunked message with chunks missing"
GIVEN_UP_ERROR = "chunked message that was never completed"
"""How ``__error`` begins in a row of chunks: by these a query knows rows of a table that were none
of its snapshot. Stored values; keep them."""

GIVEN_UP_PLACE = "([0-9]+):([0-9]+)$"
"""How ``__error`` ends in the table's rows of ``GIVEN_UP_ERROR``, as a regular expression: ledger
and entry of the first chunk. A stored value, as by it a stream knows what was given up since it had
passed the row's place; not there in rows of older versions."""

BROKER_NULLS = ("__index", "__brokerPublishTime")
"""What a broker adds to an entry, beside what its producer wrote. A consumer is shown it only where
``exposingBrokerEntryMetadataToClientEnabled`` is set in the broker (by default it is not): else the
two are NULL in rows that came through it, and only these."""


IS_CIPHERTEXT = pc.field("__encryptionContext").is_valid() & pc.coalesce(
    pc.starts_with(pc.field("__error"), ENCRYPTED_ERROR), pa.scalar(False)
)
"""Of a table's rows, those that are encrypted entries."""

IS_STRAY = pc.coalesce(pc.starts_with(pc.field("__error"), STRAY_ERROR), pa.scalar(False))
IS_GIVEN_UP = pc.coalesce(pc.starts_with(pc.field("__error"), GIVEN_UP_ERROR), pa.scalar(False))
"""Of a table's rows, those of chunks that no message has."""


def given_up_error(begin: Position) -> str:
    """``__error`` of a table's row of a message that was given up, which begins at ``begin``."""
    return f"{GIVEN_UP_ERROR}: its first chunk is entry {begin}"


def last_given_up(rows: pa.RecordBatch) -> Position:
    """Return where the last given-up message begins that has a row, or BEFORE_ALL."""
    if "__error" not in rows.schema.names:
        return BEFORE_ALL
    errors = rows.column("__error")
    errors = errors.filter(pc.starts_with(errors, GIVEN_UP_ERROR))
    places = (re.search(GIVEN_UP_PLACE, text) for text in errors.to_pylist())
    return max((Position.parse(place[0]) for place in places if place), default=BEFORE_ALL)


def rows_between(partition: int, first: Position | None, last: Position | None) -> pc.Expression:
    """A partition's rows, by its index, from ``first`` to ``last`` (inclusive, None: open)."""
    ledger, entry = pc.field("__ledgerId"), pc.field("__entryId")
    found = pc.field("__partition") == partition
    if first is not None:
        found &= (ledger > first.ledger) | ((ledger == first.ledger) & (entry >= first.entry))
    if last is not None:
        found &= (ledger < last.ledger) | ((ledger == last.ledger) & (entry <= last.entry))
    return found


CIPHERTEXT_SQL = (
    "(__encryptionContext IS NOT NULL AND "
    f"coalesce(startswith(__error, '{ENCRYPTED_ERROR}'), false))"
)
"""``IS_CIPHERTEXT`` for Spark."""


def count_ciphertext(batch: pa.RecordBatch) -> int:
    """How many rows are encrypted entries."""
    with_context = batch.column("__encryptionContext").is_valid()
    if not pc.any(with_context).as_py():
        return 0
    marked = pc.fill_null(pc.starts_with(batch.column("__error"), ENCRYPTED_ERROR), False)
    return int(pc.sum(pc.and_(with_context, marked)).as_py() or 0)


def metadata_name(name: str) -> str | None:
    """Return the metadata column that is the same name for Spark, or None."""
    return _BY_KEY.get(name_key(name))


def metadata_index(columns: pa.Schema, name: str) -> int:
    """Where rows have a metadata column, -1: nowhere."""
    return next((i for i, one in enumerate(columns.names) if metadata_name(one) == name), -1)
