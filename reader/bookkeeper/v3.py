"""BookKeeper's v3 protocol: frames, and the read of one entry. No I/O.

A frame is ``u32 size`` and that many bytes of protobuf (BookkeeperProtocol.proto):

    Request    header = 1 {version = 1, operation = 2, txnId = 3}, readRequest = 100
               {ledgerId = 1, entryId = 2}
    Response   header = 1, status = 2, readResponse = 100
               {status = 1, ledgerId = 2, entryId = 3, body = 4, maxLAC = 5}

No flag is ever set: a read with the fencing flag would stop the topic's writer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reader.errors import CorruptError
from reader.kernels.compiling import inlined, kernel

__all__ = [
    "BODY",
    "ENOENTRY",
    "ENOLEDGER",
    "EOK",
    "EUA",
    "LENGTH",
    "MAX_FRAME",
    "REQUEST",
    "STATUS",
    "encode_reads",
    "first_size",
    "split_answers",
]

EOK, ENOLEDGER, ENOENTRY, EUA = 0, 402, 403, 502
READ_ENTRY = 1
VERSION_THREE = 3
# Bookies send at most nettyMaxFrameSizeBytes; anything larger is not the protocol.
MAX_FRAME = 512 << 20

REQUEST, STATUS, BODY, LENGTH = range(4)
_CUT_OFF, _NOT_PROTOBUF, _NO_HEADER, _TOO_LONG = range(1, 5)
_NOT_PROTOCOL = {
    _CUT_OFF: "a bookie's answer ends too early",
    _NOT_PROTOBUF: "a bookie's answer is not protobuf",
    _NO_HEADER: "a bookie's answer has no header",
    _TOO_LONG: "a bookie sent a frame that is too long",
}


_MOST_REQUEST = 64  # bytes of a frame that requests an entry, at most

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


def encode_reads(ledger: int, entries: Int64s, requests: Int64s) -> Bytes:
    """Whole frames, each of which requests one of ``entries``, under the number beside it."""
    frames = np.empty(_MOST_REQUEST * len(entries), np.uint8)
    return frames[: _encode_reads(ledger, entries, requests, frames)]


def framed(operation: int, number: int, body: bytes, request: int = 0) -> bytes:
    """A whole frame with a request, whose ``body`` is the field ``number``."""
    header = b"\x08\x03\x10" + varint(operation) + b"\x18" + varint(request)
    message = b"\x0a" + varint(len(header)) + header
    message += varint(number << 3 | 2) + varint(len(body)) + body
    return len(message).to_bytes(4, "big") + message


def varint(value: int) -> bytes:
    """Of a number that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def split_answers(buffer: Bytes, end: int) -> tuple[Int64s, int]:
    """The whole answers at the start of ``buffer[:end]``, and how many bytes they take.

    A column each, with the rows ``REQUEST``, ``STATUS``, ``BODY`` and ``LENGTH``: the body is
    ``buffer[BODY : BODY + LENGTH]``, the entry after BookKeeper's header and digest; -1 without
    any. Raises CorruptError for what is not the protocol.
    """
    # No answer is shorter than its size, a header with a number, and a status.
    answers = np.empty((4, end // 8 + 1), np.int64)
    count, used = _split_answers(buffer, end, answers)
    if used < 0:
        raise CorruptError(_NOT_PROTOCOL[-used])
    return answers[:, :count], used


def first_size(buffer: Bytes, end: int) -> int:
    """Bytes of the first frame and its size; 4 where that is not known yet."""
    return 4 if end < 4 else 4 + int.from_bytes(buffer[:4].tobytes(), "big")


def fields(data: memoryview) -> list[tuple[int, int | memoryview]]:
    """(number, value) of each varint or length-delimited field.

    Raises IndexError where the message is cut off, CorruptError where it is not protobuf.
    """
    found: list[tuple[int, int | memoryview]] = []
    at, end = 0, len(data)
    while at < end:
        tag, at = _read_varint(data, at)
        match tag & 7:
            case 0:
                value, at = _read_varint(data, at)
                found.append((tag >> 3, value))
            case 1:
                at += 8
            case 2:
                size, at = _read_varint(data, at)
                if size > end - at:
                    raise IndexError
                found.append((tag >> 3, data[at : at + size]))
                at += size
            case 5:
                at += 4
            case _:
                raise CorruptError("a bookie's answer is not protobuf")
    return found


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise CorruptError("a bookie's answer has a number of more than 64 bits")


# --- kernels ---


@inlined
def _put(out: Any, at: Any, value: Any) -> Any:
    left = np.uint64(value)
    while left > np.uint64(0x7F):
        out[at] = np.uint8(left & np.uint64(0x7F)) | np.uint8(0x80)
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@kernel
def _encode_reads(ledger: int, entries: Any, requests: Any, out: Any) -> Any:
    at = np.int64(0)
    for i in range(len(entries)):
        begin = at
        out[at + 4] = 0x0A
        # The header: version 3, operation 1, and the request's number.
        header = at + 6
        out[header] = 0x08
        out[header + 1] = VERSION_THREE
        out[header + 2] = 0x10
        out[header + 3] = READ_ENTRY
        out[header + 4] = 0x18
        at = _put(out, header + 5, requests[i])
        out[header - 1] = at - header
        out[at] = 0xA2  # field 100, of a length
        out[at + 1] = 0x06
        read = at + 3
        out[read] = 0x08
        at = _put(out, read + 1, ledger)
        out[at] = 0x10
        at = _put(out, at + 1, entries[i])
        out[read - 1] = at - read
        size = at - begin - 4
        out[begin] = 0
        out[begin + 1] = 0
        out[begin + 2] = 0
        out[begin + 3] = size
    return at


@inlined
def _get(buf: Any, at: Any, end: Any) -> Any:
    """A varint, and where it ends; instead of that, what is wrong, negative."""
    value = np.uint64(0)
    shift = np.uint64(0)
    after = np.int64(-_CUT_OFF)
    while at < end:
        byte = np.uint64(buf[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            after = np.int64(at)
            break
        shift += np.uint64(7)
        if shift > np.uint64(63):
            after = np.int64(-_NOT_PROTOBUF)
            break
    return np.int64(value), after


@inlined
def _field(buf: Any, at: Any, end: Any) -> Any:
    """(tag, value or start, end of what is delimited, after it or what is wrong) of a field."""
    tag, at = _get(buf, at, end)
    value: Any = np.int64(0)
    stop: Any = np.int64(0)
    if at < 0:
        return tag, value, stop, at
    kind = tag & 7
    if kind == 0:
        value, at = _get(buf, at, end)
    elif kind == 1:
        at += 8
    elif kind == 2:
        size, at = _get(buf, at, end)
        if at >= 0:
            if size < 0 or size > end - at:
                at = np.int64(-_CUT_OFF)
            else:
                value = at
                at += size
                stop = at
    elif kind == 5:
        at += 4
    else:
        at = np.int64(-_NOT_PROTOBUF)
    return tag, value, stop, at


@kernel
def _answer(buf: Any, at: Any, end: Any, found: Any) -> Any:
    """One frame into ``found``; 0, or what is wrong, negative."""
    found[REQUEST] = -1
    found[STATUS] = -1
    found[BODY] = -1
    found[LENGTH] = -1
    while at < end:
        tag, value, stop, at = _field(buf, at, end)
        if at < 0:
            return at
        if tag == 16:
            found[STATUS] = value
        elif tag == 10 or tag == 802:
            inside = value
            while inside < stop:
                inner, value, last, inside = _field(buf, inside, stop)
                if inside < 0:
                    return inside
                if tag == 10:
                    if inner == 24:
                        found[REQUEST] = value
                elif inner == 8:
                    found[STATUS] = value
                elif inner == 34:
                    found[BODY] = value
                    found[LENGTH] = last - value
    return np.int64(0) if found[REQUEST] >= 0 and found[STATUS] >= 0 else np.int64(-_NO_HEADER)


@kernel
def _split_answers(buf: Any, end: int, answers: Any) -> Any:
    at = np.int64(0)
    count = 0
    while end - at >= 4:
        size = np.int64(0)
        for k in range(4):
            size = (size << 8) | np.int64(buf[at + k])
        if size > MAX_FRAME:
            return count, np.int64(-_TOO_LONG)
        if end - at - 4 < size:
            break
        found = answers[:, count]
        wrong = _answer(buf, at + 4, at + 4 + size, found)
        if wrong < 0:
            return count, wrong
        at += 4 + size
        count += 1
    return count, at
