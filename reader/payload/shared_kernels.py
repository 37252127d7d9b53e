"""Numba functions that the decoders of more than one format need."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from reader.kernels.byte_spans import ByteSpans
from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import first_bit, move16, special32

# How a row ends: written, or taken back because the groups or the list of keys have to grow, or
# because the output is full.
DONE, GROW_GROUPS, GROW_KEYS, FULL = 0, 1, 2, 3
# So many a key before keys are taken to be made to collide.
PROBES = 8


class SlotArrays(NamedTuple):
    """The arrays of a `slots.SlotMemory`; see there for what they hold."""

    words: Any
    word_base: Any
    valid: Any
    valid_base: Any
    groups: Any
    capacity: Any
    cursor: Any


class Payloads(NamedTuple):
    """What is read into rows, how, and what came of it.

    The payload of a row is ``data[starts[row] : ends[row]]``, and ``entries[row]`` where its
    program begins; -1: it stays NULL. ``limits``: bytes of columns, of all rows together; of one;
    least that any has; and more for each byte of its payload. ``spent``: those so far; then of the
    first row for which groups were too small its number (-1: of none), ``spent`` before it, and
    ``used`` before it. Working memory: ``at`` and ``before`` (2 elements a group), ``stack``,
    ``keys`` and ``key_table``.
    """

    data: Any
    starts: Any
    ends: Any
    entries: Any
    status: Any
    limits: Any
    spent: Any
    at: Any
    before: Any
    stack: Any
    keys: Any
    key_table: Any

    @classmethod
    def of(
        cls, spans: ByteSpans, entries: Any, groups: int, stack: tuple[int, int],
        limits: Sequence[int],
    ) -> Self:  # fmt: skip
        """``stack``: frames, and what is in one."""
        sizes = (len(spans), 4, groups, 2 * groups, stack, (256, 2), 1024)
        status, spent, *work = (np.zeros(size, np.int64) for size in sizes)
        most = np.array(limits, np.int64)
        return cls(spans.data, spans.starts, spans.ends, entries, status, most, spent, *work)

    def with_more_keys(self) -> Self:
        more = np.zeros((4 * len(self.keys), 2), np.int64)
        return self._replace(keys=more, key_table=np.zeros(4 * len(self.key_table), np.int64))


@inlined
def mark(memory: SlotArrays, slot: int, element: int) -> None:
    """The value of ``element`` is not NULL; slot -1 is not wanted."""
    if slot >= 0:
        memory.valid[memory.valid_base[slot] + element] = 1


@inlined
def put(memory: SlotArrays, slot: int, element: int, value: Any) -> None:
    """Write a value of one word; slot -1 is not wanted."""
    if slot >= 0:
        memory.words[memory.word_base[slot] + element] = value
        memory.valid[memory.valid_base[slot] + element] = 1


@inlined
def put_span(memory: SlotArrays, slot: int, element: int, first: Any, second: Any) -> None:
    """Write a value of two words; slot -1 is not wanted."""
    if slot >= 0:
        at = memory.word_base[slot] + 2 * element
        memory.words[at] = first
        memory.words[at + 1] = second
        memory.valid[memory.valid_base[slot] + element] = 1


@inlined
def next_element(memory: SlotArrays, at: Any, group: int) -> None:
    """Another element of ``group``; those for which there is no room are only counted."""
    at[group] = min(memory.cursor[group], memory.capacity[group])
    memory.cursor[group] += 1


@kernel
def overflows(memory: SlotArrays) -> bool:
    """Whether a group has more elements than room."""
    for group in range(1, len(memory.cursor)):
        if memory.cursor[group] > memory.capacity[group]:
            return True
    return False


@kernel
def take_back(memory: SlotArrays, row: int, before: Any) -> None:
    """Make NULL all that ``row`` has written since the cursors were at ``before``."""
    for slot in range(len(memory.groups)):
        group = memory.groups[slot]
        low = row if group == 0 else before[group]
        high = row + 1 if group == 0 else min(memory.cursor[group], memory.capacity[group])
        base = memory.valid_base[slot]
        for element in range(low, high):
            memory.valid[base + element] = 0
    for group in range(len(before)):
        memory.cursor[group] = before[group]


@inlined
def begin_row(payloads: Payloads, memory: SlotArrays, row: int) -> Any:
    """(bytes of columns that the row may have here, or where it is the first one)."""
    limits, spent = payloads.limits, payloads.spent[0]
    for group in range(len(memory.cursor)):
        payloads.before[len(memory.cursor) + group] = memory.cursor[group]
    size = payloads.ends[row] - payloads.starts[row]
    most = min(limits[1], limits[2] + limits[3] * size)
    # The first that takes anything may take all that a message may.
    return (min(most, max(limits[0] - spent, 0)) if spent else most), most


@inlined
def end_row(payloads: Payloads, memory: SlotArrays, row: int, cost: Any, used: Any) -> None:
    """The row is read, of ``cost`` bytes; ``used``: of side memory, before it."""
    spent, groups = payloads.spent, len(memory.cursor)
    if spent[1] < 0 and overflows(memory):
        spent[1], spent[2], spent[3] = row, spent[0], used
        for group in range(groups):
            payloads.before[group] = payloads.before[groups + group]
    spent[0] += cost


@inlined
def plain_end(data: Any, start: int, end: int) -> Any:
    """The first position that is not an ASCII character that a JSON string may hold as such."""
    i = start
    while i < end and len(data) - i >= 32:
        special = special32(data, i)
        if special:
            return min(i + first_bit(special), end)
        i += 32
    while i < end:
        byte = data[i]
        if byte in (0x22, 0x5C) or byte < 0x20 or byte >= 0x80:
            return i
        i += 1
    return end


@inlined
def _copy_span(out: Any, to: int, source: Any, at: int, size: int) -> None:
    # Most values are short: 16 bytes are moved at a time, and bytes beyond the end are overwritten
    # by the values that follow.
    done = 0
    while done < size and len(source) - at - done >= 16 and len(out) - to - done >= 16:
        move16(out, to + done, source, at + done)
        done += 16
    while done < size:
        out[to + done] = source[at + done]
        done += 1


@kernel
def span_offsets(words: Any, valid: Any, offsets: Any) -> Any:
    """Fill Arrow offsets of a slot's values; (total size, whether any value has a converter).

    ``words`` are those of a slot, see `slots`. ``offsets`` are not valid where the size does not
    fit their type.
    """
    total = np.int64(0)
    above = np.int64(0)
    for i in range(len(valid)):
        offsets[i] = total
        if valid[i]:
            above |= words[2 * i + 1] >> 32
            total += words[2 * i + 1] & 0xFFFFFFFF
    offsets[len(valid)] = total
    return total, above != 0


@kernel
def copy_spans(data: Any, side: Any, words: Any, offsets: Any, out: Any) -> None:
    """Copy value i, ``offsets[i+1] - offsets[i]`` bytes long, to ``out[offsets[i]]``.

    It starts in ``data`` at ``words[2 * i]``, or if that is negative in ``side`` at its complement.
    """
    for i in range(len(offsets) - 1):
        to = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - to
        start = words[2 * i]
        if start >= 0:
            _copy_span(out, to, data, start, size)
        else:
            _copy_span(out, to, side, ~start, size)


@kernel
def compare_names(data: Any, at: int, size: int, other: Any, start: int, length: int) -> int:
    """Negative, 0 or positive, as ``data[at : at + size]`` is less, equal or greater.

    Shorter ones are less; of one length they are compared by bytes.
    """
    if size != length:
        return -1 if size < length else 1
    for i in range(size):
        if data[at + i] != other[start + i]:
            return -1 if data[at + i] < other[start + i] else 1
    return 0


@kernel
def _sorted_has_twice(data: Any, keys: Any, first: int, last: int, table: Any) -> bool:
    """As `has_twice`, by sorting: what decides where no hash does."""
    count = last - first
    for i in range(count):
        table[i] = first + i
    source, target = 0, count
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            a, b = low, middle
            for to in range(low, high):
                from_a = b >= high
                if a < middle and b < high:
                    one, two = table[source + a], table[source + b]
                    order = compare_names(
                        data, keys[one, 0], keys[one, 1] - keys[one, 0],
                        data, keys[two, 0], keys[two, 1] - keys[two, 0],
                    )  # fmt: skip
                    # Keys that are next to each other in the end have been compared.
                    if order == 0:
                        return True
                    from_a = order < 0
                if from_a:
                    table[target + to] = table[source + a]
                    a += 1
                else:
                    table[target + to] = table[source + b]
                    b += 1
        source, target = target, source
        width *= 2
    return False


@kernel
def has_twice(data: Any, keys: Any, first: int, last: int, table: Any) -> bool:
    """Whether two of the keys ``first`` … ``last - 1`` (start, end) are the same bytes.

    ``table`` is working memory of four times as many. Keys may be made to collide: after a few
    probes a key they are sorted instead.
    """
    count = last - first
    if count < 2:
        return False
    size = 4
    while size < 2 * count:
        size *= 2
    for i in range(size):
        table[i] = -1
    probes = PROBES * count
    for k in range(first, last):
        start, end = keys[k, 0], keys[k, 1]
        mark = np.uint64(14695981039346656037)
        for i in range(start, end):
            mark = (mark ^ np.uint64(data[i])) * np.uint64(1099511628211)
        at = np.int64((mark ^ (mark >> np.uint64(29))) & np.uint64(size - 1))
        while table[at] >= 0:
            other = table[at]
            if keys[other, 1] - keys[other, 0] == end - start:
                same = True
                for i in range(end - start):
                    if data[keys[other, 0] + i] != data[start + i]:
                        same = False
                        break
                if same:
                    return True
            probes -= 1
            if probes < 0:
                return bool(_sorted_has_twice(data, keys, first, last, table))
            at = (at + 1) & (size - 1)
        table[at] = k
    return False
