"""What rows of the tables point at as Arrow arrays: payloads, keys, properties."""

import base64
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.decode import tables
from reader.decode.passes.column_memory import IN_ARENA, IN_INFLATED, fill_spans
from reader.decode.passes.copies import gather
from reader.decode.passes.other_fields import copy_other_fields, measure_other_fields
from reader.kernels.array_types import Bools, Bytes, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_bytes
from reader.model import StoredTimes
from reader.model.columns import METADATA


@dataclass(frozen=True, slots=True)
class Rows:
    """A portion of rows: what every column is built from."""

    partition: int
    ledger_ids: Int64s  # of the block's entries
    entry_ids: Int64s
    arena: Bytes
    inflated: Bytes
    entries: Int64s  # (E_FIELDS, entries of the block)
    rows: Int64s  # (R_FIELDS, at least count)
    pairs: Int64s  # (P_FIELDS, properties of all rows), empty if they are not wanted
    count: int

    def __len__(self) -> int:
        return self.count

    def row(self, field: int) -> Int64s:
        return self.rows[field, : self.count]

    def entry(self, field: int) -> Int64s:
        """A field of each row's entry."""
        found: Int64s = self.entries[field][self.row(tables.R_ENTRY)]
        return found


def _bitmap(valid: Bools | None) -> tuple[pa.Buffer | None, int]:
    """(validity buffer, number of nulls)."""
    if valid is None or valid.all():
        return None, 0
    return pa.py_buffer(np.packbits(valid, bitorder="little")), int((~valid).sum())


def _binary(rows: Rows, kind: pa.DataType, offsets: Int64s, lengths: Int64s) -> pa.Array:
    """Strings or bytes out of the two arenas; a length of -1 is NULL."""
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=starts[1:])
    data = empty_bytes(int(starts[-1]))
    gather(
        rows.arena,
        rows.inflated,
        np.ascontiguousarray(offsets),
        np.ascontiguousarray(lengths),
        starts,
        data,
    )
    if kind != pa.large_binary():
        starts = starts.astype(np.int32)  # portions are bounded so that this holds
    bitmap, nulls = _bitmap(lengths >= 0)
    buffers = [bitmap, pa.py_buffer(starts), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(lengths), buffers, nulls)


def _keep_last(rows: Rows, pairs: Int64s, first: int, stop: int) -> None:
    """Keep the last of each key among ``pairs[:, first:stop]``, for any number of pairs."""
    # Through memoryviews: one by one, NumPy's numbers and slices take four times as long.
    arena, inflated = rows.arena.data, rows.inflated.data
    offsets, lengths = (
        pairs[field, first:stop].data for field in (tables.P_KEY, tables.P_KEY_LENGTH)
    )
    last: dict[bytes, int] = {}
    for p, at, size in zip(range(first, stop), offsets, lengths, strict=True):
        last[bytes(arena[at : at + size] if at >= 0 else inflated[~at : ~at + size])] = p
    pairs[tables.P_KEEP, first:stop] = 0
    pairs[tables.P_KEEP, list(last.values())] = 1


def properties(rows: Rows) -> pa.Array:
    """``__messageProperties``; of a repeated one the last value counts."""
    kind = METADATA.field("__messageProperties").type
    counts = rows.row(tables.R_PROPERTIES)
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.maximum(counts, 0), out=starts[1:])
    pairs = rows.pairs[:, : int(starts[-1])]
    for r in np.flatnonzero(counts > tables.SMALL_MAP).tolist():
        _keep_last(rows, pairs, int(starts[r]), int(starts[r + 1]))
    keep = pairs[tables.P_KEEP] != 0
    offsets = np.zeros(len(keep) + 1, np.int32)
    np.cumsum(keep, out=offsets[1:])
    if not keep.all():
        pairs = pairs[:, keep]
    keys = _binary(rows, pa.string(), pairs[tables.P_KEY], pairs[tables.P_KEY_LENGTH])
    values = _binary(rows, pa.string(), pairs[tables.P_VALUE], pairs[tables.P_VALUE_LENGTH])
    children = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    bitmap, nulls = _bitmap(counts >= 0)
    buffers = [bitmap, pa.py_buffer(offsets[starts])]
    return pa.Array.from_buffers(kind, len(rows), buffers, nulls, children=[children])


def other_metadata(rows: Rows) -> pa.Array:
    """``__otherMetadata``: NULL where all fields have columns."""
    flags = rows.entry(tables.E_FLAGS)
    of_entries = np.where(flags & tables.HAS_OTHER != 0, rows.entry(tables.E_METADATA_LENGTH), -1)
    batched = (flags & tables.HAS_OTHER_INSIDE != 0) & (rows.row(tables.R_BATCH) >= 0)
    of_messages = np.where(batched, rows.row(tables.R_METADATA_LENGTH), -1)
    members = [
        _other_fields(rows, rows.entry(tables.E_METADATA), of_entries, single=False),
        _other_fields(rows, rows.row(tables.R_METADATA), of_messages, single=True),
    ]
    kind = METADATA.field("__otherMetadata").type
    missing = pc.and_(*(one.is_null() for one in members))
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=missing)


def _other_fields(rows: Rows, offsets: Int64s, lengths: Int64s, *, single: bool) -> pa.Array:
    """The fields without a column of the metadata there; NULL without any."""
    offsets, lengths = np.ascontiguousarray(offsets), np.ascontiguousarray(lengths)
    starts = np.zeros(len(lengths) + 1, np.int64)
    measure_other_fields(rows.arena, rows.inflated, offsets, lengths, single, starts[1:])
    bitmap, nulls = _bitmap(starts[1:] > 0)
    np.cumsum(starts, out=starts)
    data = empty_bytes(int(starts[-1]))
    copy_other_fields(rows.arena, rows.inflated, offsets, lengths, single, starts, data)
    buffers = [bitmap, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers, nulls)


def key_array(rows: Rows) -> pa.LargeBinaryArray:
    """The keys as bytes, decoded where their text is base64; null without a key.

    C++ writes the key of a SEPARATED KeyValue as it is, without base64.
    """
    lengths = rows.row(tables.R_KEY_LENGTH)
    lengths = np.where(lengths <= tables.BINARY_KEY, tables.BINARY_KEY - lengths, lengths)
    raw = _binary(rows, pa.large_binary(), rows.row(tables.R_KEY), lengths)
    encoded = rows.row(tables.R_BASE64) != 0
    if not encoded.any():
        return raw
    keys = [
        _unpacked(key) if packed else key
        for key, packed in zip(raw.to_pylist(), encoded.tolist(), strict=True)
    ]
    return pa.array(keys, pa.large_binary())


def _unpacked(key: bytes | None) -> bytes | None:
    try:
        return None if key is None else base64.b64decode(key, validate=True)
    except ValueError:
        return key  # its flag is wrong


def payload_spans(rows: Rows) -> ByteSpans:
    """The messages' payloads, without a copy where they lie in one buffer."""
    offsets, lengths = rows.row(tables.R_PAYLOAD), rows.row(tables.R_PAYLOAD_LENGTH)
    starts, ends = np.frombuffer(pa.allocate_buffer(16 * len(rows)), np.int64).reshape(2, -1)
    present = np.empty(len(rows), np.bool_)
    seen = fill_spans(rows.rows, len(rows), starts, ends, present)
    if seen == IN_ARENA | IN_INFLATED:
        return ByteSpans.of(_binary(rows, pa.large_binary(), offsets, lengths))
    return ByteSpans(rows.inflated if seen == IN_INFLATED else rows.arena, starts, ends, present)


def stored_times(rows: Rows) -> StoredTimes:
    """Return when each message was stored."""
    own = rows.row(tables.R_ENTRY)
    first, stop = (int(own[0]), int(own[-1]) + 1) if len(own) else (0, 0)
    entries = rows.entries[:, first:stop]
    return StoredTimes.of(
        entries[tables.E_BROKER],
        entries[tables.E_PUBLISH],
        entries[tables.E_REPLICATED_LENGTH] >= 0,
        rows.ledger_ids[first:stop],
        own - first,
        no_time=tables.NO_TIME,
    )
