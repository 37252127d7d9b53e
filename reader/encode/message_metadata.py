"""What messages carry beside their payloads, out of the metadata columns that can be written.

``__key`` with ``__keyBase64`` (or binary, which is sent as base64), ``__orderingKey``,
``__messageProperties``, ``__eventTime``, ``__deliverAt`` and ``__tombstone``; times in ms on the
wire, so what is finer is cut off. All other metadata columns are the broker's and the producer's to
say: they are ignored, so that what was read can be written as it is. Case is ignored in names.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.encode.base64_spans import base64_text
from reader.errors import ConfigurationError
from reader.kernels.array_types import Bools, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.utf8 import valid_utf8_spans
from reader.model.columns import metadata_index, metadata_name

NOT_DELAYED = np.iinfo(np.int64).min
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_OF_A_MILLI = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_TEXT = (pa.string(), pa.large_string())
_BYTES = (pa.binary(), pa.large_binary())

WRITABLE = (
    "__key",
    "__keyBase64",
    "__orderingKey",
    "__messageProperties",
    "__eventTime",
    "__deliverAt",
    "__tombstone",
)
"""Metadata columns that messages are given; where no topic is named, ``__topic`` names a row's."""


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """By row. ``events``: ms, 0: none. ``deliver``: ms, or NOT_DELAYED.

    The properties of row r are the pairs ``pair_ends[r]`` to ``pair_ends[r + 1]`` of ``names`` and
    ``texts``.
    """

    keys: ByteSpans
    base64: Bools
    orders: ByteSpans
    events: Int64s
    deliver: Int64s
    pair_ends: Int64s
    names: ByteSpans
    texts: ByteSpans
    tombstones: Bools

    def properties(self, row: int) -> list[tuple[bytes, bytes]]:
        """Of one row."""
        pairs = range(int(self.pair_ends[row]), int(self.pair_ends[row + 1]))
        return [(self.names[p] or b"", self.texts[p] or b"") for p in pairs]


def check_message_columns(columns: pa.Schema) -> None:
    """Raises ConfigurationError for a metadata column that no message takes: by its type, or as it
    is there twice."""
    found: set[str] = set()
    for field in columns:
        name = metadata_name(field.name)
        if name not in _ALLOWED:
            continue
        if name in found:
            raise ConfigurationError(
                f"column {field.name} is there twice: names do not differ by case alone",
                hint="drop or rename one of the two",
                context={"column": name},
            )
        found.add(name)
        if not _ALLOWED[name](field.type) and not pa.types.is_null(field.type):
            raise ConfigurationError(
                f"column {name} cannot be written as {field.type}",
                hint=f"it takes {_TAKES[name]}",
                context={"column": name},
            )


def message_columns(batch: pa.RecordBatch) -> MessageColumns:
    """Of a batch whose schema ``check_message_columns`` has passed.

    Raises ConfigurationError for a value that no message can have, which says row and column.
    """
    keys, base64 = _keys(batch)
    pair_ends, names, texts = _properties(batch)
    return MessageColumns(
        keys=keys,
        base64=base64,
        orders=_spans(_column(batch, "__orderingKey", pa.binary())),
        events=_times(batch, "__eventTime", 0),
        deliver=_times(batch, "__deliverAt", NOT_DELAYED),
        pair_ends=pair_ends,
        names=names,
        texts=texts,
        tombstones=_flags(batch, "__tombstone"),
    )


def _keys(batch: pa.RecordBatch) -> tuple[ByteSpans, Bools]:
    column = _column(batch, "__key", pa.string())
    if column.type in _BYTES:
        spans = base64_text(_spans(column))
        return spans, spans.present
    spans = _spans(column)
    _refuse(~_utf8(spans), "__key", "is not UTF-8 (bytes are a key as binary)")
    base64 = _flags(batch, "__keyBase64")
    if base64.any():
        good = pc.fill_null(pc.match_substring_regex(column, _BASE64), True)
        _refuse(base64 & ~_bools(good), "__key", "is not base64, as __keyBase64 says")
    return spans, base64


def _properties(batch: pa.RecordBatch) -> tuple[Int64s, ByteSpans, ByteSpans]:
    rows = batch.num_rows
    index = metadata_index(batch.schema, "__messageProperties")
    if index < 0 or pa.types.is_null(batch.schema.field(index).type):
        none = _spans(pa.nulls(0, pa.binary()))
        return np.zeros(rows + 1, np.int64), none, none
    column = batch.column(index)
    # A map that is NULL has no pairs, whatever its offsets say.
    column = pc.if_else(column.is_valid(), column, pa.scalar([], column.type))
    offsets = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    names, texts = column.keys.slice(first, last - first), column.items.slice(first, last - first)
    owners = np.repeat(np.arange(rows), np.diff(offsets))

    def refuse_pairs(bad: Bools, why: str) -> None:
        _refuse(np.bincount(owners[bad], minlength=rows) > 0, "__messageProperties", why)

    refuse_pairs(_bools(texts.is_null()), "has a property that is NULL")
    found = _spans(names), _spans(texts)
    refuse_pairs(~_utf8(found[0]) | ~_utf8(found[1]), "has a property that is not UTF-8")
    return offsets - first, *found


def _times(batch: pa.RecordBatch, name: str, none: int) -> Int64s:
    column = _column(batch, name, pa.timestamp("us", tz="UTC"))
    present = _bools(column.is_valid())
    counts = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    millis = counts * 1000 if column.type.unit == "s" else counts // _OF_A_MILLI[column.type.unit]
    early = present & (millis <= 0)
    if early.any():
        value = column[int(np.flatnonzero(early)[0])]
        _refuse(early, name, f"is not after 1970-01-01, as Pulsar's times have to be: {value}")
    found: Int64s = np.where(present, millis, none)
    return found


def _flags(batch: pa.RecordBatch, name: str) -> Bools:
    return _bools(pc.fill_null(_column(batch, name, pa.bool_()), False))


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> Any:
    index = metadata_index(batch.schema, name)
    if index < 0 or pa.types.is_null(batch.schema.field(index).type):
        return pa.nulls(batch.num_rows, kind)
    return batch.column(index)


def _spans(column: Any) -> ByteSpans:
    return ByteSpans.of(column.cast(pa.large_binary()))


def _utf8(strings: ByteSpans) -> Bools:
    """Whether each is UTF-8 (Spark's need not be), or not present."""
    data, starts, ends, present = strings.fixed()
    good = np.empty(len(strings), np.bool_)
    valid_utf8_spans(data, starts, ends, good)
    found: Bools = good | ~present
    return found


def _bools(column: Any) -> Bools:
    found: Bools = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def _refuse(bad: Bools, column: str, why: str) -> None:
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ConfigurationError(
            f"column {column} of a row {why}", context={"row": row, "column": column}
        )


def _is_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) and kind.key_type in _TEXT and kind.item_type in _TEXT


_ALLOWED = {
    "__topic": lambda kind: kind in _TEXT,
    "__key": lambda kind: kind in _TEXT + _BYTES,
    "__keyBase64": pa.types.is_boolean,
    "__orderingKey": lambda kind: kind in _BYTES,
    "__messageProperties": _is_map,
    "__eventTime": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "__deliverAt": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "__tombstone": pa.types.is_boolean,
}
_TAKES = {
    "__topic": "a string",
    "__key": "a string, or binary",
    "__keyBase64": "a boolean",
    "__orderingKey": "binary",
    "__messageProperties": "a map<string,string>",
    "__eventTime": "a timestamp",
    "__deliverAt": "a timestamp",
    "__tombstone": "a boolean",
}
