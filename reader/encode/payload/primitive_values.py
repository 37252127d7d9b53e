"""Pulsar's primitive schemas: the column ``value`` as bytes, the inverse of
``reader.payload.primitive``; see there for the forms."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.encode.payload.arrow_columns import leaves
from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Block
from reader.kernels.array_types import Bytes, Int64s
from reader.payload.primitive import DAY_NS, PRIMITIVES

_BITS = {"INT8": 8, "INT16": 16, "INT32": 32, "INT64": 64}
_SECOND_NS = 1_000_000_000


def add_primitive(block: Block, kind: str, elements: Elements) -> None:
    """A value of the schema type ``kind`` for each element that the block writes."""
    elements = elements.typed(PRIMITIVES[kind].leaf.type)
    if kind == "STRING" or (kind == "BYTES" and leaves.is_text(elements.type)):
        block.add(k.SPAN, leaves.text(elements, kind))
    elif kind == "BYTES":
        block.add(k.SPAN, leaves.binary(elements, kind))
    else:
        block.add(k.RAW, np.ascontiguousarray(_fixed_width(kind, elements)))


def _fixed_width(kind: str, elements: Elements) -> npt.NDArray[Any]:
    """Shape (elements) or (elements, bytes)."""
    if kind in _BITS:
        values = leaves.integers(elements, kind, *leaves.limits(_BITS[kind]))
        return values.astype(f">i{_BITS[kind] // 8}")
    match kind:
        case "BOOLEAN":
            return leaves.booleans(elements, kind)
        case "FLOAT":
            return leaves.floats(elements, kind).astype(">f4")
        case "DOUBLE":
            return leaves.doubles(elements, kind).astype(">f8")
        case "DATE" if pa.types.is_date32(elements.type):
            return (elements.numbers(np.int32).astype(np.int64) * 86_400_000).astype(">i8")
        case "DATE" | "TIMESTAMP":
            return leaves.scaled(elements, "timestamp-millis", field=kind).astype(">i8")
        case "TIME":
            # A java.sql.Time: of any day.
            return (leaves.integers(elements, kind, *leaves.limits(64)) // 1000).astype(">i8")
        case "INSTANT":
            seconds, nanos = _divided(elements, kind, "timestamp-nanos", _SECOND_NS)
            return _joined(seconds.astype(">i8"), nanos.astype(">i4"))
        case "LOCAL_DATE":
            return leaves.scaled(elements, "date", field=kind).astype(">i8")
        case "LOCAL_TIME":
            return leaves.integers(elements, kind, 0, DAY_NS - 1).astype(">i8")
    days, nanos = _divided(elements, kind, "local-timestamp-nanos", DAY_NS)
    return _joined(days.astype(">i8"), nanos.astype(">i8"))


def _divided(elements: Elements, kind: str, logical: str, unit: int) -> tuple[Int64s, Int64s]:
    """(whole units, nanoseconds in the next one)."""
    values = leaves.scaled(elements, logical, field=kind)
    whole, part = np.divmod(values, unit)
    limit = np.iinfo(np.int64).max // unit - 1
    # Of the very first and last units readers could not give the sum again.
    bad = np.abs(whole) > limit
    elements.fail_if(bad, lambda i: f"{values[i]} is out of the range of {kind}")
    return whole, part


def _joined(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Bytes:
    parts = [one.view(np.uint8).reshape(len(one), one.itemsize) for one in (first, second)]
    return np.concatenate(parts, axis=1)
