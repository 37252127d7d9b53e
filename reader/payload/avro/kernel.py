"""The one compiled loop that runs an Avro program over payloads and fills slots.

Hostile input is expected: every read is checked against the end of its own payload, a length is
never trusted before it has been compared with the bytes that are left, nesting is bounded by
`MAX_DEPTH`, and what comes out of a message, with the time for it, by a limit in bytes of columns.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import load64
from reader.kernels.utf8 import is_ascii, valid_utf8
from reader.model.columns import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS
from reader.payload import shared_kernels as shared
from reader.payload.avro import instructions
from reader.payload.avro.exact_numbers import exact_integer, rescaled, within

# Of arrays, maps and recursive records; it bounds the recursion of `text` as well.
MAX_DEPTH = 128
_TOO_LARGE = -10

ERRORS = {
    -1: "the payload ends too early",
    -2: "bytes follow the datum",
    -3: "not a boolean",
    -4: "not an integer of its size",
    -5: "a length is out of range",
    -6: "not UTF-8",
    -7: "no such enum symbol or union branch",
    -8: "a block does not have its stated size",
    -9: "nested too deeply",
    -10: "too many values, or too large ones, for its size",
    -11: "a map has a duplicate key",
}

_INT64_MAX = np.iinfo(np.int64).max
_INT64_MIN = np.iinfo(np.int64).min
# Frame: 0 instruction, 1 items left in the block, 2 end of the block or -1, 3 items so far,
# 4 first of its keys. A call: 0 return address, 1 start of the value, 2 slot, 3 element,
# 4 converter.
FRAME = 5


@kernel
def _long_varint(data: Any, pos: int, end: int) -> Any:
    value = np.uint64(0)
    shift = np.uint64(0)
    for i in range(10):
        if pos + i >= end:
            return np.int64(0), np.int64(-1)
        byte = np.uint64(data[pos + i])
        if i == 9 and byte > 1:
            return np.int64(0), np.int64(-2)
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
        if byte < 0x80:
            half = np.int64(value >> np.uint64(1))
            return half ^ -np.int64(value & np.uint64(1)), np.int64(pos + i + 1)
    return np.int64(0), np.int64(-2)


@inlined
def _varint(data: Any, pos: int, end: int) -> Any:
    """(zigzag-decoded int64, position after it); position -1: too early, -2: not 64 bits."""
    if pos < end and data[pos] < 0x80:
        half = np.int64(data[pos] >> 1)
        return half ^ -np.int64(data[pos] & 1), np.int64(pos + 1)
    return _long_varint(data, pos, end)


@kernel
def _block(data: Any, pos: int, end: int) -> Any:
    """(items, bytes of them or -1, position after both); a negative position is an error."""
    count, after = _varint(data, pos, end)
    if after < 0:
        return 0, 0, (-1 if after == -1 else -4)
    if count >= 0:
        return count, -1, after
    if count == _INT64_MIN:
        return 0, 0, -5
    size, after = _varint(data, after, end)
    if after < 0:
        return 0, 0, (-1 if after == -1 else -4)
    if size < 0 or size > end - after:
        return 0, 0, -5
    return -count, size, after


@kernel
def _int128(data: Any, pos: int, size: int) -> Any:
    """(low, high, fits) of a big-endian two's complement number of any length."""
    if size == 0:
        return np.uint64(0), np.uint64(0), False
    sign = np.uint64(0xFF) if data[pos] & 0x80 else np.uint64(0)
    while size > 16:
        if np.uint64(data[pos]) != sign:
            return np.uint64(0), np.uint64(0), False
        pos += 1
        size -= 1
    fill = np.uint64(0xFFFFFFFFFFFFFFFF) if sign else np.uint64(0)
    low, high = fill, fill
    for i in range(size):
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(data[pos + i])
    # Cutting sign bytes must not have cut the sign.
    fits = (high >> np.uint64(63) != 0) == (sign != 0)
    return low, high, fits


@inlined
def _message(
    payloads: shared.Payloads, row: int, code: Any, table: Any, memory: shared.SlotArrays,
    found: Any, limit: Any,
) -> Any:  # fmt: skip
    """Read one payload. (status, detail): DONE; GROW_KEYS, 0; negative error, instruction.

    ``payloads.at[g]`` is the current element of group g. ``found[0]`` becomes the first message of
    a problem that does not end the row, ``found[1]`` the bytes of columns, at most ``limit``,
    besides those that each row takes.
    """
    data, start, end, pc = (
        payloads.data, payloads.starts[row], payloads.ends[row], payloads.entries[row],
    )  # fmt: skip
    at, stack, keys = payloads.at, payloads.stack, payloads.keys
    pos = start
    depth = 0
    used_keys = 0
    cost = np.int64(0)
    at[0] = row
    while True:
        op = code[pc, 0]
        slot = code[pc, 1]
        element = at[code[pc, 2]]
        if op in (instructions.INT, instructions.LONG):
            value, after = _varint(data, pos, end)
            if after < 0:
                return (-1 if after == -1 else -4), pc
            if op == instructions.INT and (value != np.int64(np.int32(value)) or after - pos > 5):
                return -4, pc
            pos = after
            factor, kind = code[pc, 3], code[pc, 5]
            good: Any = True
            if factor != 1:
                good = -(_INT64_MAX // factor) <= value <= _INT64_MAX // factor
                if good:
                    value *= factor
            elif kind == instructions.AS_OTHER:
                double = np.float64(value)
                good = double < 9223372036854775808.0 and np.int64(double) == value
                value = double.view(np.int64)
            elif 0 < kind < instructions.AS_OTHER:
                low, high, good = rescaled(
                    np.uint64(value), np.uint64(value >> 63), code[pc, 6], kind
                )
                if good:
                    shared.put_span(memory, slot, element, np.int64(low), np.int64(high))
            if kind == instructions.AS_DATE:
                good = FIRST_DAY <= value <= LAST_DAY
            elif kind == instructions.AS_TIMESTAMP and good:
                good = FIRST_MICROS <= value <= LAST_MICROS
            if good and (kind == 0 or kind >= instructions.AS_OTHER):
                shared.put(memory, slot, element, value)
            elif not good and found[0] == 0:
                found[0] = code[pc, 4]
            pc += 1
        elif op in (instructions.STRING, instructions.BYTES, instructions.KEY):
            size, after = _varint(data, pos, end)
            if after < 0:
                return (-1 if after == -1 else -4), pc
            if size < 0 or size > end - after:
                return -5, pc
            pos = after + size
            text = op != instructions.BYTES and not is_ascii(data, after, pos)
            if text and not valid_utf8(data, after, pos):
                return -6, pc
            shared.put_span(memory, slot, element, after, size)
            if op == instructions.KEY:
                if used_keys == len(keys):
                    return shared.GROW_KEYS, 0
                keys[used_keys, 0] = after
                keys[used_keys, 1] = pos
                used_keys += 1
            pc += 1
        elif op == instructions.UNION:
            value, after = _varint(data, pos, end)
            if after < 0:
                return (-1 if after == -1 else -4), pc
            if value < 0 or value >= code[pc, 4]:
                return -7, pc
            pos = after
            pc = table[code[pc, 3] + value]
        elif op == instructions.JUMP:
            pc = code[pc, 3]
        elif op in (instructions.DOUBLE, instructions.FLOAT):
            size = 8 if op == instructions.DOUBLE else 4
            if size > end - pos:
                return -1, pc
            if op == instructions.DOUBLE:
                bits = load64(data, pos)
            else:
                half = np.uint64(0)
                for i in range(4):
                    half |= np.uint64(data[pos + i]) << np.uint64(8 * i)
                bits = np.float64(np.uint32(half).view(np.float32)).view(np.uint64)
            number, good = np.int64(bits), True
            if code[pc, 5]:
                number, good = exact_integer(number)
            if good:
                shared.put(memory, slot, element, number)
            elif found[0] == 0:
                found[0] = code[pc, 4]
            pos += size
            pc += 1
        elif op == instructions.BOOL:
            if pos >= end:
                return -1, pc
            if data[pos] > 1:
                return -3, pc
            shared.put(memory, slot, element, data[pos])
            pos += 1
            pc += 1
        elif op == instructions.MARK:
            shared.mark(memory, slot, element)
            pc += 1
        elif op == instructions.ENUM:
            value, after = _varint(data, pos, end)
            if after < 0:
                return (-1 if after == -1 else -4), pc
            if value < 0 or value >= code[pc, 4]:
                return -7, pc
            pos = after
            entry = code[pc, 3] + 2 * value
            # Symbols take one byte in a message and any number in a column.
            cost += table[entry + 1]
            if cost > limit:
                return _TOO_LARGE, pc
            shared.put_span(memory, slot, element, ~table[entry], table[entry + 1])
            pc += 1
        elif op in (instructions.ARRAY, instructions.MAP, instructions.NEXT):
            if op != instructions.NEXT:
                if depth == MAX_DEPTH:
                    return -9, pc
                frame = stack[depth]
                depth += 1
                frame[0], frame[1], frame[2], frame[3], frame[4] = pc, 0, -1, 0, used_keys
            frame = stack[depth - 1]
            pc = frame[0]
            if frame[1] == 0:
                if frame[2] >= 0 and pos != frame[2]:
                    return -8, pc
                count, size, after = _block(data, pos, end)
                if after < 0:
                    return after, pc
                pos = after
                frame[2] = pos + size if size >= 0 else -1
                if count == 0:
                    if code[pc, 0] == instructions.MAP:
                        if 4 * (used_keys - frame[4]) > len(payloads.key_table):
                            return shared.GROW_KEYS, 0
                        if shared.has_twice(data, keys, frame[4], used_keys, payloads.key_table):
                            return -11, pc
                        used_keys = frame[4]
                    shared.put(memory, code[pc, 1], at[code[pc, 2]], frame[3])
                    depth -= 1
                    pc = code[pc, 3]
                    continue
                least = code[pc, 4]
                if least > 0 and count > (end - pos) // least:
                    return -5, pc
                if count > (limit - cost) // code[pc, 7]:
                    return _TOO_LARGE, pc
                cost += count * code[pc, 7]
                frame[1] = count
            frame[1] -= 1
            frame[3] += 1
            inner = code[pc, 5]
            if inner >= 0:
                shared.next_element(memory, at, inner)
            pc += 1
        elif op == instructions.END:
            if pos != end:
                return -2, pc
            found[1] = cost
            return shared.DONE, 0
        elif op == instructions.PROBLEM:
            if found[0] == 0:
                found[0] = code[pc, 3]
            pc += 1
        elif op == instructions.CALL:
            cost += code[pc, 7]
            if cost > limit:
                return _TOO_LARGE, pc
            if depth == MAX_DEPTH:
                return -9, pc
            frame = stack[depth]
            depth += 1
            frame[0], frame[1], frame[2] = pc + 1, pos, slot
            frame[3], frame[4] = element, code[pc, 5]
            pc = code[pc, 3]
        elif op == instructions.RETURN:
            depth -= 1
            frame = stack[depth]
            shared.put_span(
                memory, frame[2], frame[3], frame[1], (pos - frame[1]) | (frame[4] << 32)
            )
            pc = frame[0]
        else:  # FIXED, DECIMAL, CONVERT: a size that is known, or comes first
            size = code[pc, 3]
            if size < 0:
                size, after = _varint(data, pos, end)
                if after < 0:
                    return (-1 if after == -1 else -4), pc
                if size < 0 or size > end - after:
                    return -5, pc
                pos = after
            if size > end - pos:
                return -1, pc
            good = True
            if op == instructions.DECIMAL:
                low, high, good = _int128(data, pos, size)
                precision, shift = code[pc, 5], code[pc, 6]
                if good and precision == instructions.AS_OTHER:
                    low, high, good = rescaled(low, high, shift, 19)
                    good = good and np.int64(high) == np.int64(low) >> 63
                    if good:
                        shared.put(memory, slot, element, np.int64(low))
                elif good:
                    if shift:
                        low, high, good = rescaled(low, high, shift, precision)
                    else:
                        good = within(low, high, precision)
                    if good:
                        shared.put_span(memory, slot, element, np.int64(low), np.int64(high))
            elif op == instructions.FIXED:
                shared.put_span(memory, slot, element, pos, size)
            else:
                cost += code[pc, 7]
                if cost > limit:
                    return _TOO_LARGE, pc
                good = code[pc, 6] == 0 or 0 < size <= code[pc, 6]
                if good:
                    shared.put_span(memory, slot, element, pos, size | (code[pc, 5] << 32))
            if not good and found[0] == 0:
                found[0] = code[pc, 4]
            pos += size
            pc += 1


@kernel
def run_avro(
    payloads: shared.Payloads, first: int, code: Any, table: Any, memory: shared.SlotArrays,
    found: Any, detail: Any,
) -> Any:  # fmt: skip
    """Read rows ``first``, ... by the program.

    (rows done, DONE, GROW_... or FULL): after growing, call again with the row. ``status`` is 0, a
    message (> 0) or an error (< 0, at instruction ``detail``).

    Where groups are too small all rows are read first, to count: then the cursors say what is
    needed, and ``before`` and ``spent[0]`` are as they were before the row. Working memory:
    ``found`` (2).
    """
    spent, status = payloads.spent, payloads.status
    spent[1] = -1
    outcome: Any = np.int64(shared.DONE)
    row = first
    while row < len(payloads.starts):
        if payloads.entries[row] < 0:
            row += 1
            continue
        limit, most = shared.begin_row(payloads, memory, row)
        found[0] = 0
        outcome, what = _message(payloads, row, code, table, memory, found, limit)
        if outcome == shared.DONE:
            shared.end_row(payloads, memory, row, found[1], 0)
            status[row] = found[0]
            row += 1
            continue
        shared.take_back(memory, row, payloads.before[len(memory.cursor) :])
        if outcome == shared.GROW_KEYS or (outcome == _TOO_LARGE and limit < most):
            break
        status[row] = outcome
        detail[row] = what
        outcome = np.int64(shared.DONE)
        row += 1
    if spent[1] >= 0:
        spent[0] = spent[2]
        return spent[1], np.int64(shared.GROW_GROUPS)
    if outcome == _TOO_LARGE:
        return row, np.int64(shared.FULL)
    return row, np.int64(outcome)
