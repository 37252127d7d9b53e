"""Decimals: as two's complement, big-endian, as Avro stores them, and as plain text."""

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.leaves import is_text, text
from reader.encode.payload.row_writer.blocks import Spans
from reader.kernels.array_types import Bytes
from reader.payload.avro.text import number_text
from reader.payload.avro_schema import Fixed, Primitive

_WIDEST = 38
_PLAIN = re.compile(r"([+-]?)([0-9]+)(?:\.([0-9]+))?")

DecimalNode = Primitive | Fixed


def exact_decimals(elements: Elements, node: DecimalNode) -> pa.Array:
    """Of a column of decimals or integers, as the field's decimal of 38 digits at most."""
    array, takes = elements.array, pa.decimal128(node.precision, node.scale)
    if pa.types.is_signed_integer(elements.type):
        array = array.cast(pa.decimal128(19, 0))
    elif not pa.types.is_decimal128(elements.type):
        raise elements.refuse(_name(node), takes)
    if array.type == takes:
        return array
    try:
        return array.cast(takes)
    except pa.ArrowInvalid:
        present = elements.present()
        some = np.ones(len(array), np.bool_) if present is None else present.view(np.bool_)
        for i in np.flatnonzero(some).tolist():
            try:
                array.slice(i, 1).cast(takes)
            except pa.ArrowInvalid:
                elements.fail(i, f"{array[i].as_py()} is not exact as {_name(node)}")
        # What does not fit is not to be written.
        return pc.if_else(pa.array(some), array, pa.scalar(None, array.type)).cast(takes)


def decimal_bytes(elements: Elements, node: DecimalNode) -> Spans:
    """The fewest bytes of each, as Java's BigInteger gives them."""
    if node.precision > _WIDEST:
        numbers = [b"" if one is None else signed_bytes(one) for one in _wide(elements, node)]
        return _spans(numbers)
    raw = _big_endian(exact_decimals(elements, node))
    sign = raw[:, 0] >> 7
    same = (raw[:, :15] == (sign * 255)[:, None]) & (raw[:, 1:] >> 7 == sign[:, None])
    starts = np.cumprod(same, axis=1, dtype=np.int64).sum(axis=1)
    ends = np.arange(1, len(raw) + 1, dtype=np.int64) * 16
    return Spans(raw.reshape(-1), ends - 16 + starts, ends)


def signed_bytes(number: int) -> bytes:
    """Two's complement, big-endian, the fewest bytes."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def decimal_fixed(elements: Elements, node: Fixed) -> Bytes:
    """Shape (elements, size of the field)."""
    size = node.size
    if node.precision > _WIDEST:
        wide = _wide(elements, node)
        limit = 1 << (8 * size - 1) if size else 0
        bad = np.array([not -limit <= (one or 0) < max(limit, 1) for one in wide], np.bool_)
        elements.fail_if(bad, lambda i: f"{wide[i]} has more than {size} bytes")
        written = [(one or 0).to_bytes(size, "big", signed=True) for one in wide]
        return np.frombuffer(b"".join(written), np.uint8).reshape(len(wide), size)
    raw = _big_endian(exact_decimals(elements, node))
    filled = np.repeat((raw[:, :1] >> 7) * 255, max(size - 16, 0), axis=1)
    if size < 16:
        lost = (raw[:, : 16 - size] != (raw[:, 16 - size : 17 - size] >> 7) * 255).any(axis=1)
        elements.fail_if(lost, lambda i: f"{elements.array[i]} has more than {size} bytes")
    return np.ascontiguousarray(np.concatenate([filled, raw[:, max(16 - size, 0) :]], axis=1))


def decimal_text(elements: Elements, node: DecimalNode) -> Spans:
    """All digits of the scale, without an exponent."""
    if node.precision > _WIDEST:
        return _spans(
            [
                b"" if one is None else number_text(one, node.scale).encode()
                for one in _wide(elements, node)
            ]
        )
    array = exact_decimals(elements, node)
    # The same numbers without a point: Arrow's text of a decimal may have an exponent.
    whole = pa.Array.from_buffers(
        pa.decimal128(_WIDEST, 0), len(array), array.buffers(), array.null_count, array.offset
    )
    found = whole.cast(pa.string())
    if node.scale:
        negative = pc.starts_with(found, "-")
        digits = pc.utf8_lpad(pc.utf8_ltrim(found, "-"), node.scale + 1, "0")
        sign = pc.if_else(negative, "-", "")
        left = pc.utf8_slice_codeunits(digits, 0, -node.scale)
        right = pc.utf8_slice_codeunits(digits, -node.scale)
        number = pc.binary_join_element_wise(left, right, ".")
        found = pc.binary_join_element_wise(sign, number, "")
    return Elements(found, "").spans()


def _big_endian(array: pa.Array) -> Bytes:
    """Shape (elements, 16)."""
    raw = Elements(array, "").numbers("V16").view(np.uint8).reshape(-1, 16)
    return np.ascontiguousarray(raw[:, ::-1])


def _wide(elements: Elements, node: DecimalNode) -> list[int | None]:
    """Unscaled numbers, one by one: of texts, decimals and integers; None where not written."""
    real = elements.type
    if is_text(real):
        text(elements, _name(node))
    elif not (pa.types.is_decimal128(real) or pa.types.is_signed_integer(real)):
        raise elements.refuse(_name(node), pa.string())
    present = elements.present()
    found: list[int | None] = []
    for i, value in enumerate(elements.array.to_pylist()):
        written = value is not None and (present is None or bool(present[i]))
        plain = f"{value:f}" if isinstance(value, Decimal) else str(value)
        number = _unscaled(plain, node) if written else None
        if written and number is None:
            elements.fail(i, f"{str(value)[:80]!r} is not exact as {_name(node)}")
        found.append(number)
    return found


def _unscaled(value: str, node: DecimalNode) -> int | None:
    parts = _PLAIN.fullmatch(value) if len(value) <= 2 * node.precision + 3 else None
    if parts is None:
        return None
    sign, whole, fraction = parts[1], parts[2].lstrip("0"), (parts[3] or "").rstrip("0")
    if len(fraction) > node.scale or len(whole) + node.scale > node.precision:
        return None
    number = int(whole + fraction.ljust(node.scale, "0") or "0")
    return -number if sign == "-" else number


def _spans(values: list[bytes]) -> Spans:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return Spans.between(np.frombuffer(b"".join(values), np.uint8), offsets)


def _name(node: DecimalNode) -> str:
    return f"decimal({node.precision},{node.scale})"
