"""Messages that are read one by one in Python: to Arrow arrays, a slice at a time."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from reader.payload.budget import Decoded

# Python's values of one slice take about so many bytes.
SLICE_BYTES = 32 << 20

# What a row takes at least.
_ROW_BYTES = 256

Read = Callable[[int], tuple[Mapping[str, Any] | None, str | None, int]]


def read_rows(fields: Sequence[pa.Field], count: int, read: Read, room: int) -> Decoded:
    """Messages 0, 1, … by ``read(i)``: (value by column, or None; problem or None; bytes of them).

    Columns that are not ``fields`` are left out. After about ``room`` bytes of columns it stops,
    with one message at least. Whatever is raised for a message is its problem.
    """
    parts: list[list[pa.Array]] = [[] for _ in fields]
    problems: dict[int, str] = {}
    unread: set[int] = set()
    first = 0
    while first < count and (not first or room > 0):
        values: list[Mapping[str, Any]] = []
        weight = 0
        while first + len(values) < count and (not values or weight < min(SLICE_BYTES, room)):
            row = first + len(values)
            found, problem, size = _one(read, row)
            if problem is not None:
                problems[row] = problem
                if found is None:
                    unread.add(row)
            values.append(found or {})
            weight += size + _ROW_BYTES
        for part, array in zip(
            parts, _arrays(fields, values, first, problems, unread), strict=True
        ):
            part.append(array)
            room -= array.nbytes
        first += len(values)
    arrays = {
        field.name: pa.concat_arrays(part) if part else pa.array([], field.type)
        for field, part in zip(fields, parts, strict=True)
    }
    return Decoded(first, arrays, problems, unread)


def _one(read: Read, row: int) -> tuple[Mapping[str, Any] | None, str | None, int]:
    try:
        return read(row)
    except Exception as error:  # noqa: BLE001 - one message must not stop the others
        return None, _unreadable(error), 0


def _arrays(
    fields: Sequence[pa.Field],
    values: Sequence[Mapping[str, Any]],
    first: int,
    problems: dict[int, str],
    unread: set[int],
) -> list[pa.Array]:
    try:
        return [pa.array([value.get(f.name) for value in values], f.type) for f in fields]
    except Exception as error:  # noqa: BLE001 - the one message that it is about is not known
        if len(values) == 1:
            problems.setdefault(first, _unreadable(error))
            unread.add(first)
            return [pa.nulls(1, field.type) for field in fields]
    alone = [
        _arrays(fields, [value], first + i, problems, unread) for i, value in enumerate(values)
    ]
    return [pa.concat_arrays(parts) for parts in zip(*alone, strict=True)]


def _unreadable(error: Exception) -> str:
    return f"cannot be read: {type(error).__name__} {error}"
