"""Where a compiled decoder puts values, and how Arrow arrays are made of them.

A *slot* holds the values of one node of the wanted columns: of each leaf, and of each struct, list
and map for its own validity. Slots belong to *groups* of as many *elements*: group 0 has one element
a row, and the items of each list or map are a group of their own. Nothing has to be written for
NULL: ``valid`` starts as zeros, which mean NULL, whatever the words are.

The words (int64) of one element of a slot:

| type | words | meaning |
| --- | --- | --- |
| struct | 0 | |
| list, map | 1 | number of items, which follow those of the element before |
| bigint, timestamp, date, boolean | 1 | the value |
| double | 1 | its bits |
| decimal | 2 | the 128-bit two's complement, low half first |
| string, binary | 2 | start in the payload buffer (or ~start in the side buffer); length, and above bit 32 the number of the converter that makes the value of these bytes |
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.errors import UnsupportedError
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.memory import empty_bytes, empty_int64s
from reader.payload.column_types import Layout, ListOf, MapOf, Missing, Struct
from reader.payload.shared_kernels import (
    GROW_GROUPS,
    GROW_KEYS,
    Payloads,
    SlotArrays,
    copy_spans,
    span_offsets,
)

Converter = Callable[[bytes], bytes]
_LENGTH_MASK = (1 << 32) - 1
_AT_A_TIME = 4096
_SAMPLE = 256


@dataclass(frozen=True, slots=True)
class Output:
    """A node of a column. ``slot`` -1: NULL everywhere, or not wanted.

    ``group`` is the slot's own, ``inner`` that of a list's or map's items. ``children``: members,
    item, or key and value.
    """

    type: pa.DataType
    slot: int
    group: int
    inner: int = -1
    children: tuple[Output, ...] = ()


@dataclass(slots=True)
class Slots:
    """Assigns slots and groups to the nodes of columns."""

    widths: list[int] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    group_count: int = 1

    def add(
        self, real: pa.DataType, layout: Layout | None, group: int = 0, *, wanted: bool = True
    ) -> Output:
        """The node for values of ``layout`` in a column of type ``real``; None: always NULL.

        What is not ``wanted`` has a node, which tells its type, but no slots.
        """
        if layout is None or isinstance(layout, Missing):
            return Output(real, -1, group)
        if isinstance(layout, Struct):
            slot = self._slot(0, group) if wanted else -1
            by_column = {member.column: member.layout for member in layout.members}
            fields = [real.field(i) for i in range(real.num_fields)]
            members = tuple(
                self.add(f.type, by_column.get(f.name), group, wanted=wanted) for f in fields
            )
            return Output(real, slot, group, -1, members)
        if isinstance(layout, ListOf | MapOf):
            slot, inner, items = -1, -1, group
            if wanted:
                slot, inner = self._slot(1, group), self.group_count
                self.group_count += 1
                items = inner
            if isinstance(layout, ListOf):
                item = self.add(real.value_type, layout.item, items, wanted=wanted)
                return Output(real, slot, group, inner, (item,))
            key = Output(real.key_type, self._slot(2, items) if wanted else -1, items)
            value = self.add(real.item_type, layout.value, items, wanted=wanted)
            return Output(real, slot, group, inner, (key, value))
        return Output(real, self._slot(self._width(real), group) if wanted else -1, group)

    def sample(self, rows: int) -> int:
        """How many of the first ``rows`` to decode before, to expect as many items; 0: none.

        Where there are more items than expected, a kernel reads all the other rows twice.
        """
        return _SAMPLE if self.group_count > 1 and rows >= 16 * _SAMPLE else 0

    def _width(self, real: pa.DataType) -> int:
        return 2 if real in (pa.string(), pa.binary()) or pa.types.is_decimal(real) else 1

    def _slot(self, width: int, group: int) -> int:
        self.widths.append(width)
        self.groups.append(group)
        return len(self.widths) - 1


class SlotMemory:
    """The memory behind the slots, for one call of a decoder.

    ``words`` and ``valid`` are flat; slot s starts at ``word_base[s]`` and ``valid_base[s]``.
    Group g has room for ``capacity[g]`` elements, and one that is never read; ``cursor[g]`` of them
    are used, or would be if there was room. ``room``: about how many bytes all groups may take
    before anything has been counted; ``items``: elements a row to expect in each group.
    """

    def __init__(
        self, slots: Slots, rows: int, room: int, items: npt.NDArray[np.float64] | None
    ) -> None:
        self.widths = np.array(slots.widths, np.int64)
        self.groups = np.array(slots.groups, np.int64)
        # Most lists are short.
        expected = np.full(slots.group_count, 2.0) if items is None else np.maximum(items, 2.0)
        self.capacity = (expected * rows).astype(np.int64) + 16
        # Slots that begin 5 or 10 cache lines apart do not compete for the same cache sets.
        self.capacity[0] = rows + (40 - rows) % 512
        inner = self.groups > 0
        if int((self.capacity[self.groups[inner]] * (1 + 8 * self.widths[inner])).sum()) > room:
            share = room // int((1 + 8 * self.widths[inner]).sum())
            self.capacity[1:] = np.minimum(self.capacity[1:], 16 + share)
        self.cursor = np.zeros(slots.group_count, np.int64)
        self._allocate()

    def _allocate(self) -> None:
        room = self.capacity[self.groups] + 1
        self.valid_base = np.concatenate(([0], np.cumsum(room))).astype(np.int64)
        self.word_base = np.concatenate(([0], np.cumsum(room * self.widths))).astype(np.int64)
        self.valid = np.zeros(self.valid_base[-1], np.uint8)
        self.words = empty_int64s(int(self.word_base[-1]))

    @property
    def arrays(self) -> SlotArrays:
        return SlotArrays(
            self.words, self.word_base, self.valid, self.valid_base, self.groups, self.capacity,
            self.cursor,
        )  # fmt: skip

    def grow(self, row: int, used: Int64s) -> None:
        """Make room for as many elements as the cursors say.

        Rows before ``row`` stay, which have ``used`` elements in each group.
        """
        valid, words = self.valid, self.words
        valid_base, word_base = self.valid_base, self.word_base
        more = self.cursor > self.capacity
        more[0] = False
        self.capacity[more] = self.cursor[more] + 16
        self._allocate()
        kept = np.where(self.groups == 0, row, used[self.groups])
        for slot, count in enumerate(kept.tolist()):
            _move(valid, self.valid, valid_base[slot], self.valid_base[slot], count)
            size = count * int(self.widths[slot])
            _move(words, self.words, word_base[slot], self.word_base[slot], size)
        self.cursor[:] = used

    def fill(self, payloads: Payloads, run: Callable[[Payloads, int], tuple[int, int]]) -> int:
        """How many rows ``run`` has read, from a row on, once all that it needs has grown."""
        row, outcome = 0, GROW_GROUPS
        while outcome in (GROW_GROUPS, GROW_KEYS):
            row, outcome = run(payloads, row)
            if outcome == GROW_GROUPS:
                self.grow(row, payloads.before[: len(payloads.at)])
            elif outcome == GROW_KEYS:
                payloads = payloads.with_more_keys()
        return row

    def slot(self, out: Output, count: int) -> tuple[Bytes, Int64s]:
        """Validity (uint8) and words of the first ``count`` elements."""
        valid = self.valid_base[out.slot]
        words, width = self.word_base[out.slot], self.widths[out.slot]
        return self.valid[valid : valid + count], self.words[words : words + count * width]


def _move(
    old: npt.NDArray[np.generic], new: npt.NDArray[np.generic], start: int, to: int, size: int
) -> None:
    new[to : to + size] = old[start : start + size]


@dataclass(frozen=True, slots=True)
class _Assembly:
    """Arrow arrays out of ``memory``."""

    memory: SlotMemory
    data: Bytes
    side: Bytes
    converters: Sequence[Converter]

    def array(self, out: Output, count: int) -> pa.Array:
        """The first ``count`` elements of ``out``."""
        if out.slot < 0:
            return pa.nulls(count, out.type)
        valid, words = self.memory.slot(out, count)
        nulls = count - int(np.count_nonzero(valid))
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        if pa.types.is_struct(out.type):
            children = [self.array(child, count) for child in out.children]
            return pa.Array.from_buffers(out.type, count, [bitmap], nulls, 0, children)
        if out.children:
            inner = int(self.memory.cursor[out.inner])
            offsets = _offsets(np.where(valid, words, 0))
            items = [self.array(child, inner) for child in out.children]
            if pa.types.is_map(out.type):
                entry = pa.struct([out.type.key_field, out.type.item_field])
                items = [pa.Array.from_buffers(entry, inner, [None], 0, 0, items)]
            buffers = [bitmap, pa.py_buffer(offsets)]
            return pa.Array.from_buffers(out.type, count, buffers, nulls, 0, items)
        if not count:
            return pa.array([], out.type)
        if out.type in (pa.string(), pa.binary()):
            offsets, content = self._spans(valid, words)
            buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(content)]
            return pa.Array.from_buffers(out.type, count, buffers, nulls)
        values: npt.NDArray[Any] = words
        if nulls:  # the memory is not initialised
            values = np.where(np.repeat(valid, len(words) // count), words, 0)
        if pa.types.is_boolean(out.type):
            values = np.packbits(values.astype(np.uint8), bitorder="little")
        elif pa.types.is_date32(out.type):
            values = values.astype(np.int32)
        return pa.Array.from_buffers(out.type, count, [bitmap, pa.py_buffer(values)], nulls)

    def _spans(self, valid: Bytes, words: Int64s) -> tuple[npt.NDArray[np.int32], Bytes]:
        offsets = np.empty(len(valid) + 1, np.int32)
        total, converted = span_offsets(words, valid, offsets)
        data = self.data
        if converted:
            packed = np.where(valid, words[1::2], 0)
            data, words = _converted(words[::2], packed, data, self.side, self.converters)
            total, _ = span_offsets(words, valid, offsets)
        _check_size(total)
        content = empty_bytes(total)
        copy_spans(data, self.side, words, offsets, content)
        return offsets, content


def assemble(
    columns: Mapping[str, Output],
    memory: SlotMemory,
    count: int,
    data: Bytes,
    side: Bytes,
    converters: Sequence[Converter],
) -> dict[str, pa.Array]:
    """The Arrow arrays, of exactly their types, of the first ``count`` elements of ``columns``."""
    assembly = _Assembly(memory, data, side, converters)
    return {name: assembly.array(out, count) for name, out in columns.items()}


def _converted(
    starts: Int64s, packed: Int64s, data: Bytes, side: Bytes, converters: Sequence[Converter]
) -> tuple[Bytes, Int64s]:
    """The values again, each converted, as spans of a new buffer."""
    content = bytearray()
    words = np.zeros(2 * len(starts), np.int64)
    some = np.flatnonzero(packed)
    # Python's integers take four times the memory of numpy's.
    for part in np.split(some, range(_AT_A_TIME, len(some), _AT_A_TIME)):
        rows = zip(part.tolist(), starts[part].tolist(), packed[part].tolist(), strict=True)
        for i, start, word in rows:
            length = word & _LENGTH_MASK
            source, at = (data, start) if start >= 0 else (side, ~start)
            value = source[at : at + length].tobytes()
            if word >> 32:
                value = converters[word >> 32](value)
            words[2 * i], words[2 * i + 1] = len(content), len(value)
            content += value
    return np.frombuffer(content, np.uint8), words


def _offsets(lengths: Int64s) -> npt.NDArray[np.int32]:
    total = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=total[1:])
    _check_size(total[-1])
    return total.astype(np.int32)


def _check_size(total: int) -> None:
    if total > np.iinfo(np.int32).max:
        raise UnsupportedError(
            "a column of one batch would be larger than 2 GiB", hint="decode fewer messages a batch"
        )


def column_outputs(
    slots: Slots, fields: pa.Schema, layout: Struct, wanted: Collection[str]
) -> dict[str, Output]:
    """The columns of ``fields``; those that are wanted with slots for their nodes in ``layout``."""
    by_column = {member.column: member.layout for member in layout.members}
    return {
        f.name: slots.add(f.type, by_column.get(f.name), wanted=f.name in wanted) for f in fields
    }
