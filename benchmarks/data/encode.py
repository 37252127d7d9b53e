"""Columns to payloads, a batch at a time: publishing must not wait for an encoder.

`tests/unit/benchmarks/test_events.py` reads both encodings back with `json` and `fastavro`.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def as_json(rows: pa.RecordBatch) -> pa.Array:
    """One compact JSON object a row. Texts must be plain: no quotes, backslashes or controls."""
    pieces: list[Any] = []
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        pieces.append(("," if pieces else "{") + json.dumps(name) + ":")
        if pa.types.is_string(column.type):
            column = pc.binary_join_element_wise('"', column, '"', "")
        pieces.append(pc.fill_null(column.cast(pa.string()), "null"))
    return pc.binary_join_element_wise(*pieces, "}", "").cast(pa.binary())


def as_avro(rows: pa.RecordBatch, schema: dict[str, Any]) -> pa.Array:
    """One Avro record a row. Knows long, double, string, and unions of null with one of them."""
    pieces: list[Any] = []
    for field, column in zip(schema["fields"], rows.columns, strict=True):
        nullable = isinstance(field["type"], list)
        value = _avro(column)
        if nullable:
            value = pc.binary_join_element_wise(pa.scalar(b"\x02"), value, b"")
            value = pc.fill_null(value, b"\x00")
        pieces.append(value)
    return pc.binary_join_element_wise(*pieces, b"")


def _avro(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        text = column.cast(pa.binary())
        length = _varints(np.asarray(pc.fill_null(pc.binary_length(text), 0), np.int64))
        return pc.binary_join_element_wise(length, text, b"")
    if pa.types.is_floating(column.type):
        values = np.asarray(column, "<f8")
        return pa.Array.from_buffers(
            pa.binary(8), len(values), [None, pa.py_buffer(values.tobytes())]
        ).cast(pa.binary())
    return _varints(np.asarray(column, np.int64))


def _varints(values: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Zigzag, then seven bits a byte, the lowest first."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    digits = [rest]
    while (rest := digits[-1] >> np.uint64(7)).any():
        digits.append(rest)
    used = np.ones(len(values), np.int64)
    for digit in digits[1:]:
        used += digit > 0
    ends = np.cumsum(used)
    data = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    starts = ends - used
    for place, digit in enumerate(digits):
        has = used > place
        more = np.where(used[has] > place + 1, 0x80, 0).astype(np.uint8)
        data[starts[has] + place] = (digit[has] & np.uint64(0x7F)).astype(np.uint8) | more
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
