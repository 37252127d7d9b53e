"""Values of leaf columns: which forms of JSON each type is read from, in Python: the reference.

The first form is what Pulsar's Java client writes, except for dates and times, whose first form is
the integer of the schema. The other forms are read where they determine one value (docs/types.md).
A union of several branches is read by first forms alone: by the others, two branches might take
one value.
"""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from reader.model.columns import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS
from reader.payload.avro.text import number_text
from reader.payload.avro_schema import Enum, Fixed, Primitive
from reader.payload.column_types import TEXT_DIGITS, Leaf
from reader.payload.json import numbers
from reader.payload.json.time_forms import Cut, time_form

FACTORS = {"time-millis": 1000, "timestamp-millis": 1000, "local-timestamp-millis": 1000}
"""By logical type: how many of the column's units one of the schema's is."""
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Scalar:
    """Functions that return the column's value (or a `time_forms.Cut`), or None for any other JSON.

    ``other_forms`` is asked for what ``first_form`` does not take. ``failure``: how a problem
    describes what neither takes.
    """

    first_form: Read
    other_forms: Read
    failure: str


def scalar(node: Enum | Fixed | Primitive, layout: Leaf) -> Scalar:
    """The forms of ``node`` in a column of ``layout``."""
    if isinstance(node, Enum):
        return Scalar(_text, _integer_literal, "is not a string")
    if node.logical == "decimal":
        return _decimal(node, layout)
    if layout.tag == "text":
        form = node.json_form if isinstance(node, Primitive) else ""
        literals = {"integer": _integer_literal, "number": _any_literal}
        return Scalar(_text, literals.get(form, _none), "is not a string")
    if isinstance(node, Fixed) or node.kind == "bytes":
        if isinstance(node, Primitive) and node.json_form == "text":
            return Scalar(_text_bytes, _none, "is not a string")
        return Scalar(_base64_text, _none, "is not base64")
    if node.kind == "boolean":
        return Scalar(lambda v: v if type(v) is bool else None, _boolean, "is not a boolean")
    if layout.tag == "number" and str(layout.type) == "double":
        return Scalar(_double, _quoted_double, "is not a number of double range")
    return _integer(node)


def utf8(text: str) -> str | None:
    """``text``, if UTF-8 can encode it: an escape may give half of a surrogate pair."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return text


def _none(value: Any) -> None:
    return None


def _text(value: Any) -> str | None:
    return utf8(value) if type(value) is str else None


def _integer_literal(value: Any) -> str | None:
    """The digits of an integer: of one value there is one text."""
    if type(value) is not numbers.Number or not value.text.removeprefix("-").isdigit():
        return None
    return None if value.text == "-0" else value.text


def _any_literal(value: Any) -> str | None:
    return (
        value.text if type(value) is numbers.Number and value.text not in numbers.SPECIAL else None
    )


def _boolean(value: Any) -> bool | None:
    if type(value) is str and value in (*_TRUE, *_FALSE):
        return value in _TRUE
    return value.text == "1" if type(value) is numbers.Number and value.text in ("0", "1") else None


def _double(value: Any) -> float | None:
    if type(value) is str:
        return numbers.SPECIAL.get(value)
    return numbers.exact_double(value.text) if type(value) is numbers.Number else None


def _quoted_double(value: Any) -> float | None:
    return numbers.exact_double(value) if type(value) is str and numbers.is_number(value) else None


def bounds(node: Primitive) -> tuple[int, int]:
    """The least and the greatest value of the column of a number, date or time."""
    match node.logical:
        case "date":
            return FIRST_DAY, LAST_DAY
        case "timestamp-millis" | "timestamp-micros":
            return FIRST_MICROS, LAST_MICROS
        case "time-millis":
            return -1000 << 31, 1000 * ((1 << 31) - 1)
    return -(1 << 63), (1 << 63) - 1


def _integer(node: Primitive) -> Scalar:
    bits = 32 if node.logical in ("date", "time-millis") else 64
    factor = FACTORS.get(node.logical or "", 1)
    least, greatest = bounds(node)
    form = time_form(node)

    def first_form(value: Any) -> int | None:
        found = numbers.exact_integer(value.text, bits) if type(value) is numbers.Number else None
        if found is None or not least <= found * factor <= greatest:
            return None
        return found * factor

    if form is not None:

        def other_forms(value: Any) -> int | Cut | None:
            found = form.read(value)
            number = found.value if isinstance(found, Cut) else found
            return found if number is not None and least <= number <= greatest else None

        return Scalar(first_form, other_forms, f"is not certain to be {_TIMES[form.kind]}")
    failure = f"is not an integer of {bits} bits"
    return Scalar(first_form, _char if node.json_form == "character" else _whole, failure)


_TIMES = {
    "date": "a date of the years 1 to 9999",
    "time": "a time of day",
    "instant": "a point in time of the years 1 to 9999",
    "local": "a local time",
}


def _whole(value: Any) -> int | None:
    if type(value) is numbers.Number:
        return numbers.exact_whole(value.text)
    return numbers.exact_whole(value) if type(value) is str and numbers.is_number(value) else None


def _char(value: Any) -> int | None:
    """The number of a character; a digit in quotes is a character, too, and no number."""
    if type(value) is numbers.Number:
        return numbers.exact_whole(value.text)
    short = type(value) is str and len(value) == 1 and utf8(value) is not None
    return ord(value) if short and ord(value) < 1 << 16 else None


def _decimal(node: Fixed | Primitive, layout: Leaf) -> Scalar:
    """Return the forms of a decimal, whose column may be of another scale or of integers."""
    scale = node.scale
    connect = isinstance(node, Primitive) and node.connect
    real = layout.type if pa.types.is_decimal128(layout.type) else None
    digits = real.precision if real and real.scale == scale else max(node.precision, TEXT_DIGITS)
    # Computed once: of 4,000 digits it takes longer than any literal.
    limit = 10**digits
    own = (digits, scale) if real is None else (real.precision, real.scale)
    what = f"is not a decimal of {own[0]} digits, {own[1]} after the point"
    if layout.tag != "decimal":
        what = "is not an integer of 64 bits"

    def shown(unscaled: int) -> Decimal | str:
        text = number_text(unscaled, own[1])
        return text if real is None else Decimal(text)

    def column(text: str) -> Decimal | str | int | None:
        if layout.tag != "decimal":
            return numbers.exact_whole(text)
        unscaled = numbers.exact_unscaled(text, *own)
        return None if unscaled is None else shown(unscaled)

    def first_form(value: Any) -> Decimal | str | int | None:
        if type(value) is numbers.Number:
            return column(value.text)
        unscaled = _unscaled(value, digits, limit) if connect and type(value) is str else None
        if unscaled is None:
            return None
        same = layout.tag == "decimal" and own[1] == scale
        return shown(unscaled) if same else column(number_text(unscaled, scale))

    def quoted(value: Any) -> Decimal | str | int | None:
        # Some digits are base64 as well, and it may be the number of these bytes.
        if type(value) is not str or not numbers.is_number(value) or _base64(value) is not None:
            return None
        return column(value)

    return Scalar(first_form, _none if connect else quoted, what)


def _text_bytes(value: Any) -> bytes | None:
    text = _text(value)
    return None if text is None else text.encode()


def _base64_text(value: Any) -> bytes | None:
    return _base64(value) if type(value) is str else None


def _base64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _unscaled(text: str, precision: int, limit: int) -> int | None:
    """The integer whose two's complement ``text`` is in base64, if less than ``limit``.

    ``limit`` is 10 to the power of ``precision``.
    """
    raw = _base64(text)
    if not raw or len(raw) > precision:
        return None
    value = int.from_bytes(raw, "big", signed=True)
    return value if abs(value) < limit else None
