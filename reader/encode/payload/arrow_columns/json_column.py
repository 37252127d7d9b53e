"""Columns that hold JSON text, for what no column type can: parsed one by one, in Python."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.leaves import text
from reader.encode.payload.row_writer.blocks import Spans


def converted(elements: Elements, convert: Callable[[str], bytes]) -> Spans:
    """Each text that is written by ``convert``; a ValueError of it says what is wrong."""
    text(elements, "JSON text")
    present = elements.present()
    offsets = np.zeros(len(elements) + 1, np.int64)
    content = bytearray()
    for i, value in enumerate(elements.array.to_pylist()):
        if value is not None and (present is None or present[i]):
            try:
                content += convert(value)
            except (ValueError, RecursionError) as error:
                why = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
                elements.fail(i, f"is not JSON text of its field: {why[:200]}")
        offsets[i + 1] = len(content)
    return Spans.between(np.frombuffer(bytes(content), np.uint8), offsets)


def parsed(value: str) -> Any:
    """Return the JSON ``value``, its numbers exact (int, or the literal as `str` subclass).

    Raises ValueError if it is not JSON.
    """
    return json.loads(value, parse_float=Literal, parse_constant=_refuse,
                      object_pairs_hook=_object)  # fmt: skip


def parsed_object(value: str) -> dict[str, Any]:
    """As `parsed`, of a JSON object. Raises ValueError if it is anything else."""
    found = parsed(value)
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


class Literal(str):
    """A number with a fraction or an exponent, as it was written."""

    __slots__ = ()


def _refuse(token: str) -> None:
    raise ValueError(f"{token} is not a number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it has a key twice")
    return found
