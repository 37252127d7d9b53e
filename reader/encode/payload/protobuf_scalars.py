"""Protobuf's scalar types: columns as the values of one field, before their tag.

Source: protobuf.dev, "Encoding" and "Language Guide", scalar value types.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import FieldDescriptor

from reader.encode.payload.arrow_columns import leaves
from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Spans
from reader.payload.protobuf.schema import enum_of, message_of

VARINT, I64, DELIMITED, _START, _END, I32 = range(6)
"""Wire types."""

_F = FieldDescriptor
_UINT32 = (0, (1 << 32) - 1)
_INTEGERS = {
    _F.TYPE_INT32: (k.VARINT, VARINT, leaves.limits(32), np.int64),
    _F.TYPE_INT64: (k.VARINT, VARINT, leaves.limits(64), np.int64),
    _F.TYPE_UINT32: (k.VARINT, VARINT, _UINT32, np.int64),
    _F.TYPE_SINT32: (k.ZIGZAG, VARINT, leaves.limits(32), np.int64),
    _F.TYPE_SINT64: (k.ZIGZAG, VARINT, leaves.limits(64), np.int64),
    _F.TYPE_FIXED32: (k.RAW, I32, _UINT32, np.uint32),
    _F.TYPE_SFIXED32: (k.RAW, I32, leaves.limits(32), np.int32),
    _F.TYPE_SFIXED64: (k.RAW, I64, leaves.limits(64), np.int64),
}
_NAMES = {getattr(_F, name): name[5:].lower() for name in dir(_F) if name.startswith("TYPE_")}


@dataclass(frozen=True, slots=True)
class Scalar:
    """Values of one field: the ``kind`` of part that writes them, their wire type."""

    kind: int
    wire: int
    values: Spans | npt.NDArray[Any]

    def set(self) -> npt.NDArray[np.bool_]:
        """Which are not the type's default; -0.0 is not."""
        if isinstance(self.values, Spans):
            return self.values.ends > self.values.starts
        bits = self.values.view(f"u{self.values.itemsize}")
        found: npt.NDArray[np.bool_] = bits != 0
        return found


def field_type(field: FieldDescriptor) -> str:
    """As a .proto file names it, one value of a repeated field."""
    if field.message_type is not None:
        return f"message {message_of(field).full_name}"
    if field.enum_type is not None:
        return f"enum {enum_of(field).full_name}"
    return str(_NAMES[field.type])


def scalar(field: FieldDescriptor, elements: Elements) -> Scalar:
    """Of any field that is no message."""
    name = field_type(field)
    if field.type in _INTEGERS:
        kind, wire, (low, high), dtype = _INTEGERS[field.type]
        return Scalar(kind, wire, leaves.integers(elements, name, low, high).astype(dtype))
    match field.type:
        case _F.TYPE_BOOL:
            return Scalar(k.RAW, VARINT, leaves.booleans(elements, name))
        case _F.TYPE_UINT64:
            return Scalar(k.VARINT, VARINT, leaves.unsigned(elements, name))
        case _F.TYPE_FIXED64:
            return Scalar(k.RAW, I64, leaves.unsigned(elements, name))
        case _F.TYPE_FLOAT:
            return Scalar(k.RAW, I32, leaves.floats(elements, name))
        case _F.TYPE_DOUBLE:
            return Scalar(k.RAW, I64, leaves.doubles(elements, name))
        case _F.TYPE_STRING:
            return Scalar(k.SIZED, DELIMITED, leaves.text(elements, name))
        case _F.TYPE_BYTES:
            return Scalar(k.SIZED, DELIMITED, leaves.binary(elements, name))
    symbols = enum_of(field).values
    places = leaves.indices(elements, [symbol.name for symbol in symbols], name)
    numbers = np.array([symbol.number for symbol in symbols], np.int64)
    return Scalar(k.VARINT, VARINT, numbers[places])


def map_key(field: FieldDescriptor, names: Elements) -> Scalar:
    """The keys of a map, which are text in its column."""
    name = f"a map's key of type {field_type(field)}"
    if field.type == _F.TYPE_STRING:
        return scalar(field, names)
    if field.type == _F.TYPE_BOOL:
        return Scalar(
            k.RAW, VARINT, leaves.indices(names, ["false", "true"], name).astype(np.uint8)
        )
    if field.type in (_F.TYPE_UINT64, _F.TYPE_FIXED64):
        return scalar(field, names)
    kind, wire, (low, high), dtype = _INTEGERS[field.type]
    return Scalar(kind, wire, leaves.texts_of_integers(names, name, low, high).astype(dtype))
