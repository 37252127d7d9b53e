"""How much memory the columns of payloads may take, whatever the payloads say.

All is counted in bytes of columns: every value, NULL or not, takes what `value_bytes` says, strings
their own bytes besides. What is not counted (working memory of the decoders) is a small multiple
of it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# A row's part of what a decoder keeps by row, besides the columns.
ROW_BYTES = 128
# What a message may become by default.
MESSAGE_BYTES = 128 << 20
# What any message may become, and any byte of it. Few values take no byte (items of an Avro array
# of null) or a byte for thousands of columns (a record of which nearly all fields are left out).
LEAST_BYTES = 64 << 10
GROWTH = 4096
# The time that any message may take to find the branches of its unions, and any byte of it, in
# steps of some 20 to 40 ns.
LEAST_STEPS = 4096
STEPS = 32
# Each is one character, or an escape: no search for the next one ever goes back.
_MARKS = re.compile(r'\\.|["\[{\]},:]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class OutputBudget:
    """``batch``: bytes of columns of one call of a decoder, which stops before the message that
    goes beyond, except before the first. ``message``: of one message alone, which is rescued if it
    goes beyond.
    """

    batch: int = 64 << 20
    message: int = MESSAGE_BYTES

    @classmethod
    def for_payloads(cls, expanded_bytes: int) -> Self:
        """Return the budget where payloads of ``pulsar.expanded_bytes`` are decompressed.

        A larger setting than the default, 32 MiB, raises the bound of a message with it, up to
        1 GiB.
        """
        return cls(message=min(max(MESSAGE_BYTES, 4 * expanded_bytes), 1 << 30))

    def of_message(self, size: int) -> int:
        """The most that a message of ``size`` bytes may become, besides these bytes themselves."""
        return min(self.message, LEAST_BYTES + GROWTH * size)

    def steps(self, size: int) -> int:
        """The most steps in which a message of ``size`` bytes is read in Python."""
        return LEAST_STEPS + STEPS * size

    def limits(self, room: int) -> tuple[int, int, int, int]:
        """What a compiled loop needs to stop where ``room`` or `of_message` ends."""
        return room, self.message, LEAST_BYTES, GROWTH


UNBOUNDED = OutputBudget(batch=1 << 62, message=1 << 62)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The first ``count`` messages: their columns, and problems by index.

    ``unread``: the messages with a problem of which no value could be read.
    """

    count: int
    arrays: dict[str, pa.Array]
    problems: dict[int, str]
    unread: set[int] = field(default_factory=set)


def value_bytes(real: pa.DataType) -> int:
    """What one value of a column takes, with struct members, without list items and text."""
    if pa.types.is_struct(real):
        return 8 + sum(value_bytes(real.field(i).type) for i in range(real.num_fields))
    if real in (pa.string(), pa.binary()) or pa.types.is_decimal(real):
        return 24
    return 16


def text_bytes(data: bytes, *, enough: int, escapes: bool = False) -> int:
    """The most that Python takes for the text of UTF-8 ``data`` (PEP 393), or its parts.

    The widest character decides: 1, 2 or 4 bytes for each. ``escapes``: of JSON, which may write a
    wide character as ASCII. What is ``enough`` for the caller is not counted more exactly.
    """
    array = np.frombuffer(data, np.uint8)
    if 4 * len(array) <= enough or len(array) > enough:
        return len(array)
    width = _width(array)
    if escapes and width < 4:
        raw = array.tobytes()
        if b"\\u" in raw:
            width = 4 if b"\\ud" in raw or b"\\uD" in raw else 2
    return width * _characters(array)


def json_text_bytes(parts: Iterable[bytes | npt.NDArray[np.uint8]]) -> int:
    """As `text_bytes`, of what writing UTF-8 as JSON makes of it: ``\\u0001`` is six characters."""
    characters, width = 0, 1
    for part in parts:
        array = np.frombuffer(part, np.uint8)
        more = np.count_nonzero(array == 0x22) + np.count_nonzero(array == 0x5C)
        more += 5 * np.count_nonzero(array < 0x20)
        characters += _characters(array) + int(more)
        width = max(width, _width(array))
    return width * characters


def _characters(array: npt.NDArray[np.uint8]) -> int:
    return int(np.count_nonzero(array & 0xC0 != 0x80))


def _width(array: npt.NDArray[np.uint8]) -> int:
    widest = int(array.max(initial=0))
    return 1 if widest < 0xC4 else 2 if widest < 0xF0 else 4


def json_nesting(text: str) -> tuple[int, int]:
    """Return how deep JSON text is nested, and about how many values and keys it has.

    It takes linear time.
    """
    depth = deepest = values = 0
    inside = False
    for found in _MARKS.finditer(text):
        mark = found[0]
        if mark == '"':
            inside = not inside
        elif not inside:
            values += mark in "[{,:"
            if mark in "[{":
                depth += 1
                deepest = max(deepest, depth)
            elif mark in "]}":
                depth -= 1
    return deepest, values
