"""The compiled loop that reads plain JSON payloads into slots, and defers all others to Python.

It accepts a part of what `values` accepts, with the same result; whatever it does not expect, from
a wrong type to an escape in a key, is `DEFERRED`: the row stays NULL and `values` reads it. A few
problems are found here, because they are common in every message: a field too many, nanoseconds
in a column of microseconds, and bytes of which the form is not known.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.payload import shared_kernels as shared
from reader.payload.json import program, tokens
from reader.payload.json.double import double_bits
from reader.payload.json.forms import other_number, other_text, other_word, time_of_numbers

DEFERRED = -1
DOUBTFUL_BYTES = -2
"""Instead of a name's place in ``unknown``: the value at this node may be base64 or text."""
_TOO_LARGE = -2
# So many members are compared with a name before it is searched for.
_TRIED = 8
MAX_DEPTH = 64
_VALUE, _OPENED, _AFTER = 0, 1, 2
# Frame: 0 node, 1 items so far, 2 first of its keys, 3 member to expect, 4 its object's number,
# or -1 for an array, 5 where it starts.
FRAME = 6
_QUOTE, _COMMA, _COLON = 0x22, 0x2C, 0x3A
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 0x7B, 0x7D, 0x5B, 0x5D


@kernel
def _find(data: Any, pos: int, end: int, names: Any, members: Any, first: int, count: int,
          hint: int) -> int:  # fmt: skip
    """The member with this name (in quotes), or -1; the first ones are tried from ``hint`` on."""
    size = end - pos
    for step in range(min(count, _TRIED)):
        index = hint + step
        if index >= count:
            index -= count
        member = first + index
        if members[member, 1] == size and tokens.is_name(
            data, pos, end, names, members[member, 0], size
        ):
            return index
    low, high = 0, count if count > _TRIED else 0
    while low < high:
        middle = (low + high) // 2
        member = first + members[first + middle, 3]
        order = shared.compare_names(data, pos, size, names, members[member, 0], members[member, 1])
        if order == 0:
            return int(members[first + middle, 3])
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return int(_find_key(data, pos + 1, end - 1, names, members, first, count, hint))


@kernel
def _find_key(data: Any, pos: int, end: int, names: Any, members: Any, first: int, count: int,
              hint: int) -> int:  # fmt: skip
    """The member with this name (without quotes) in another case, -1, or -2: not known."""
    for i in range(pos, end):
        if data[i] >= 0x80:
            return -2
    if hint < count and _compare_key(data, pos, end, names, members, first + hint) == 0:
        return hint
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        index = members[first + middle, 6]
        order = _compare_key(data, pos, end, names, members, first + index)
        if order == 0:
            return int(index)
        if order < 0:
            high = middle
        else:
            low = middle + 1
    return -1


@kernel
def _compare_key(data: Any, pos: int, end: int, names: Any, members: Any, member: int) -> int:
    """As `compare_names`, of a name in lower case and the key of a member."""
    size, start = members[member, 5], members[member, 4]
    if end - pos != size:
        return -1 if end - pos < size else 1
    for i in range(size):
        byte = data[pos + i]
        if 0x41 <= byte <= 0x5A:
            byte += 0x20
        if byte != names[start + i]:
            return -1 if byte < names[start + i] else 1
    return 0


@kernel
def _put_json(
    data: Any, start: int, end: int, slot: int, element: int, memory: shared.SlotArrays, side: Any,
    counters: Any,
) -> None:  # fmt: skip
    """Write the JSON value ``data[start:end]`` as compact text."""
    if slot < 0:
        return
    for i in range(start, end):
        if data[i] <= 0x20 or data[i] == 0x5C:
            to = counters[1]
            counters[1] = tokens.json_text(data, start, end, side, to)
            shared.put_span(memory, slot, element, ~to, counters[1] - to)
            return
    shared.put_span(memory, slot, element, start, end - start)


@kernel
def _is_indented(data: Any, start: int, end: int) -> bool:
    """Whether a payload begins as those of Python's client do: `values.INDENTED`."""
    return bool(tokens.has_bytes(data, start, end, _OPEN_BRACE, 0x0A, 0x20, _QUOTE))


@inlined
def _scalar(
    data: Any, pos: int, end: int, start: int, nodes: Any, node: int, element: int,
    memory: shared.SlotArrays, side: Any, counters: Any, number: Any, note: Any,
) -> Any:  # fmt: skip
    """Read the string, number or literal at ``pos`` as ``node`` wants it.

    The position after it, or -1: deferred.
    """
    kind = nodes[node, 0]
    slot = nodes[node, 1]
    byte = data[pos]
    if byte == _QUOTE:
        close, escapes = tokens.string_end(data, pos, end)
        if close < 0:
            return -1
        begin = pos + 1
        size = close - begin
        if escapes:
            to = counters[1]
            after = tokens.unescape(data, begin, close, side, to)
            if after < 0 or kind not in (program.STRING, program.ANY, program.JSON):
                return -1
            begin = ~to
            size = after - to
            if kind == program.STRING:
                counters[1] = after
        if kind == program.STRING:
            shared.put_span(memory, slot, element, begin, size)
        elif kind == program.BASE64:
            if not tokens.is_base64(data, begin, close):
                return -1
            if nodes[node, 5] and size and _is_indented(data, start, end):
                if note[0] < 0:
                    note[0], note[1], note[2] = node, DOUBTFUL_BYTES, DOUBTFUL_BYTES
            else:
                shared.put_span(memory, slot, element, begin, size | (1 << 32))
        elif kind == program.JSON and escapes:
            if nodes[node, 3]:
                return -1
            _put_json(data, pos, close + 1, slot, element, memory, side, counters)
        elif kind != program.ANY and not other_text(
            data, begin, close, nodes, node, element, memory, number, note
        ):
            return -1
        return close + 1
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        if kind == program.INTEGER:
            value, close = tokens.short_integer(data, pos, end)
            if close >= 0 and nodes[node, 7] <= value <= nodes[node, 4]:
                shared.put(memory, slot, element, value * nodes[node, 3])
                return close
        elif kind == program.DOUBLE:
            value, places, close = tokens.short_decimal(data, pos, end)
            if close >= 0:
                sign = np.int64(byte == 0x2D) << 63
                shared.put(memory, slot, element, double_bits(value, -places, False) | sign)
                return close
        return other_number(data, pos, end, nodes, node, element, memory, number, note)
    if tokens.has_bytes(data, pos, end, 0x6E, 0x75, 0x6C, 0x6C):
        return pos + 4
    if kind in (program.BOOLEAN, program.ANY):
        if tokens.has_bytes(data, pos, end, 0x74, 0x72, 0x75, 0x65):
            if kind == program.BOOLEAN:
                shared.put(memory, slot, element, 1)
            return pos + 4
        if byte == 0x66 and tokens.has_bytes(data, pos + 1, end, 0x61, 0x6C, 0x73, 0x65):
            if kind == program.BOOLEAN:
                shared.put(memory, slot, element, 0)
            return pos + 5
    return other_word(data, pos, end, nodes, node, element, memory)


@inlined
def _message(
    payloads: shared.Payloads, row: int, nodes: Any, members: Any, names: Any,
    memory: shared.SlotArrays, seen: Any, side: Any, counters: Any, number: Any, note: Any,
    limit: Any,
) -> Any:  # fmt: skip
    """Read one payload: DONE, DEFERRED, GROW_KEYS, or _TOO_LARGE: more bytes than ``limit``.

    ``counters``: 0 objects so far, 1 bytes of ``side`` in use, 2 bytes of columns of this one
    besides those that each row takes. ``note`` is of the first problem: node, and start and end of
    an unknown field's name or what else there is; node -1 if there is none.
    """
    data, start, end, root = (
        payloads.data, payloads.starts[row], payloads.ends[row], payloads.entries[row],
    )  # fmt: skip
    at, stack, keys = payloads.at, payloads.stack, payloads.keys
    pos = tokens.skip_space(data, start, end)
    if pos >= end or (data[pos] != _OPEN_BRACE and data[pos] != _OPEN_BRACKET):
        return DEFERRED
    depth = 0
    used_keys = 0
    cost = np.int64(0)
    node = root
    state = _VALUE
    at[0] = row
    while True:
        pos = tokens.skip_space(data, pos, end)
        if pos >= end:
            return DEFERRED
        byte = data[pos]
        if state == _VALUE:
            element = at[nodes[node, 2]]
            if byte == _OPEN_BRACE or byte == _OPEN_BRACKET:  # noqa: SIM109
                kind = nodes[node, 0]
                if depth == MAX_DEPTH:
                    return DEFERRED
                if byte == _OPEN_BRACE and kind == program.OBJECT:
                    counters[0] += 1
                    shared.mark(memory, nodes[node, 1], element)
                elif kind == program.INTEGER and byte == _OPEN_BRACKET:
                    pos = time_of_numbers(
                        data, pos, end, nodes, node, element, memory, number, note
                    )
                    if pos < 0:
                        return DEFERRED
                    state = _AFTER
                    continue
                elif kind == program.JSON:
                    if byte == _OPEN_BRACKET and nodes[node, 3]:
                        return DEFERRED
                elif kind not in (
                    program.ANY,
                    program.PAIRS,
                    program.MAP if byte == _OPEN_BRACE else program.ARRAY,
                ):
                    return DEFERRED
                stack[depth, 0] = node
                stack[depth, 1] = 0
                stack[depth, 2] = used_keys
                stack[depth, 3] = 0
                stack[depth, 4] = counters[0] if byte == _OPEN_BRACE else -1
                stack[depth, 5] = pos
                depth += 1
                pos += 1
                state = _OPENED
            else:
                pos = _scalar(
                    data, pos, end, start, nodes, node, element, memory, side, counters, number,
                    note,
                )  # fmt: skip
                if pos < 0:
                    return DEFERRED
                state = _AFTER
            continue

        top = depth - 1
        holder = stack[top, 0]
        kind = nodes[holder, 0]
        braces = stack[top, 4] >= 0
        if byte == (_CLOSE_BRACE if braces else _CLOSE_BRACKET):
            pos += 1
            if used_keys - stack[top, 2] > 1:
                if 4 * (used_keys - stack[top, 2]) > len(payloads.key_table):
                    return shared.GROW_KEYS
                if shared.has_twice(data, keys, stack[top, 2], used_keys, payloads.key_table):
                    return DEFERRED
            used_keys = stack[top, 2]
            if program.ARRAY <= kind <= program.MAP:
                shared.put(memory, nodes[holder, 1], at[nodes[holder, 2]], stack[top, 1])
            elif kind == program.JSON:
                to = at[nodes[holder, 2]]
                _put_json(data, stack[top, 5], pos, nodes[holder, 1], to, memory, side, counters)
            depth -= 1
            if depth == 0:
                counters[2] = cost
                return shared.DONE if tokens.skip_space(data, pos, end) == end else DEFERRED
            state = _AFTER
            continue
        if state == _AFTER:
            if byte != _COMMA:
                return DEFERRED
            pos = tokens.skip_space(data, pos + 1, end)
        state = _VALUE
        node = 0
        if kind == program.JSON:
            node = program.TEXT_PART
        elif kind == program.ANY:
            node = holder
        elif program.ARRAY <= kind <= program.MAP:
            node = nodes[holder, 3]
            stack[top, 1] += 1
            inner = nodes[holder, 5]
            cost += nodes[holder, 6]
            if cost > limit:
                return _TOO_LARGE
            if inner >= 0:
                shared.next_element(memory, at, inner)
        if not braces:
            continue
        index = -1
        close = pos
        if kind == program.OBJECT:
            first, count = nodes[holder, 3], nodes[holder, 4]
            index = stack[top, 3]
            if index < count:
                size = members[first + index, 1]
                if tokens.is_name(data, pos, end, names, members[first + index, 0], size):
                    close = pos + size - 1
                else:
                    index = -1
            else:
                index = -1
        if index < 0:
            if pos >= end or data[pos] != _QUOTE:
                return DEFERRED
            close, escapes = tokens.string_end(data, pos, end)
            if close < 0 or escapes:
                return DEFERRED
        pos += 1
        if kind == program.OBJECT:
            if index < 0:
                index = _find(data, pos - 1, close + 1, names, members, first, count, stack[top, 3])
            if index >= 0:
                if seen[first + index] == stack[top, 4]:
                    return DEFERRED
                seen[first + index] = stack[top, 4]
                stack[top, 3] = index + 1
                node = members[first + index, 2]
            elif index < -1:
                return DEFERRED
            elif note[0] < 0:
                note[0], note[1], note[2] = holder, pos, close
        if index < 0:
            if used_keys == len(keys):
                return shared.GROW_KEYS
            keys[used_keys, 0] = pos
            keys[used_keys, 1] = close
            used_keys += 1
            if kind == program.MAP:
                shared.put_span(
                    memory, nodes[holder, 4], at[max(nodes[holder, 5], 0)], pos, close - pos
                )
            elif kind == program.PAIRS:
                # The item is an object of two members, the key and the value.
                element = at[nodes[node, 2]]
                shared.mark(memory, nodes[node, 1], element)
                first = nodes[node, 3]
                key = members[first, 2]
                if not other_text(data, pos, close, nodes, key, element, memory, number, note):
                    return DEFERRED
                node = members[first + 1, 2]
        pos = tokens.skip_space(data, close + 1, end)
        if pos >= end or data[pos] != _COLON:
            return DEFERRED
        pos += 1


@kernel
def run_json(
    payloads: shared.Payloads, first: int, nodes: Any, members: Any, names: Any,
    memory: shared.SlotArrays, seen: Any, side: Any, counters: Any, number: Any, unknown: Any,
) -> Any:  # fmt: skip
    """Read rows ``first``, ... by the program.

    (rows done, DONE, GROW_... or FULL): after growing, call again with the row. ``status`` is DONE
    or DEFERRED; ``unknown[row]`` is the ``note`` of `_message`. A row of more bytes of columns than
    one may have is deferred.

    Where groups are too small all rows are read first, to count: then the cursors say what is
    needed, and ``before``, ``counters`` and ``spent[0]`` are as they were before the row. Working
    memory: ``seen`` (a member) and ``number`` (9).
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
        used_side = counters[1]
        unknown[row, 0] = -1
        outcome = np.int64(_message(
            payloads, row, nodes, members, names, memory, seen, side, counters, number,
            unknown[row], limit,
        ))  # fmt: skip
        if outcome == shared.DONE:
            shared.end_row(payloads, memory, row, counters[2], used_side)
            status[row] = shared.DONE
            row += 1
            continue
        shared.take_back(memory, row, payloads.before[len(memory.cursor) :])
        counters[1] = used_side
        if outcome == shared.GROW_KEYS or (outcome == _TOO_LARGE and limit < most):
            break
        status[row] = DEFERRED
        outcome = np.int64(shared.DONE)
        row += 1
    if spent[1] >= 0:
        spent[0], counters[1] = spent[2], spent[3]
        return spent[1], np.int64(shared.GROW_GROUPS)
    if outcome == _TOO_LARGE:
        return row, np.int64(shared.FULL)
    return row, outcome
