"""BookKeeper's v3 protocol: frames, and the read of one entry. No I/O.

A frame is ``u32 size`` and that many bytes of protobuf (BookkeeperProtocol.proto):

    Request    header = 1 {version = 1, operation = 2, txnId = 3}, readRequest = 100
               {ledgerId = 1, entryId = 2}
    Response   header = 1, status = 2, readResponse = 100
               {status = 1, ledgerId = 2, entryId = 3, body = 4, maxLAC = 5}

No flag is ever set: a read with the fencing flag would stop the topic's writer.
"""

from typing import Any

import numpy as np

from reader.errors import CorruptError
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.compiling import inlined, kernel
from reader.kernels.protobuf_wire import field
from reader.kernels.unaligned import u32
from reader.wire import encoded

EOK, ENOLEDGER, ENOENTRY, EUA = 0, 402, 403, 502
READ_ENTRY = 1
VERSION_THREE = 3
# Bookies send at most nettyMaxFrameSizeBytes; anything larger is not the protocol.
MAX_FRAME = 512 << 20

REQUEST, STATUS, BODY, LENGTH = range(4)
_NOT_PROTOBUF, _NO_HEADER, _TOO_LONG = range(1, 4)
_NOT_PROTOCOL = {
    _NOT_PROTOBUF: "a bookie's answer is not protobuf, or ends too early",
    _NO_HEADER: "a bookie's answer has no header",
    _TOO_LONG: "a bookie sent a frame that is too long",
}


_MOST_REQUEST = 64  # bytes of a frame that requests an entry, at most


def encode_reads(ledger: int, entries: Int64s, requests: Int64s) -> Bytes:
    """Whole frames, each of which requests one of ``entries``, under the number beside it."""
    frames = np.empty(_MOST_REQUEST * len(entries), np.uint8)
    return frames[: _encode_reads(ledger, entries, requests, frames)]


def framed(operation: int, number: int, body: bytes, request: int = 0) -> bytes:
    """A whole frame with a request, whose ``body`` is the field ``number``."""
    header = encoded((1, VERSION_THREE), (2, operation), (3, request))
    message = encoded((1, header), (number, body))
    return len(message).to_bytes(4, "big") + message


def answer_table(size: int) -> Int64s:
    """Return a table for all answers that ``size`` bytes may have."""
    # No answer is shorter than its size, a header with a number, and a status.
    return np.empty((4, size // 8 + 1), np.int64)


def split_answers(buffer: Bytes, end: int, table: Int64s) -> tuple[Int64s, int]:
    """Decode the whole answers at the start of ``buffer[:end]``, and return the bytes they take.

    The answers are the first columns of ``table``, with the rows ``REQUEST``, ``STATUS``, ``BODY``
    and ``LENGTH``: the body is ``buffer[BODY : BODY + LENGTH]``, the entry after BookKeeper's
    header and digest; -1 without any. Raises CorruptError for what is not the protocol.
    """
    count, used = _split_answers(buffer, end, table)
    if used < 0:
        raise CorruptError(_NOT_PROTOCOL[-used])
    return table[:, :count], used


def first_size(buffer: Bytes, end: int) -> int:
    """Bytes of the first frame and its size; 4 where that is not known yet."""
    return 4 if end < 4 else 4 + int.from_bytes(buffer[:4].tobytes(), "big")


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


@kernel
def _answer(buf: Any, at: Any, end: Any, found: Any) -> Any:
    """One frame into ``found``; 0, or what is wrong, negative."""
    found[REQUEST] = -1
    found[STATUS] = -1
    found[BODY] = -1
    found[LENGTH] = -1
    while at < end:
        tag, value, inside, at = field(buf, at, end)
        if at < 0:
            return np.int64(-_NOT_PROTOBUF)
        if tag == 16:
            found[STATUS] = value
        elif tag == 10 or tag == 802:
            while inside < at:
                inner, value, begin, inside = field(buf, inside, at)
                if inside < 0:
                    return np.int64(-_NOT_PROTOBUF)
                if tag == 10:
                    if inner == 24:
                        found[REQUEST] = value
                elif inner == 8:
                    found[STATUS] = value
                elif inner == 34:
                    found[BODY] = begin
                    found[LENGTH] = value
    return np.int64(0) if found[REQUEST] >= 0 and found[STATUS] >= 0 else np.int64(-_NO_HEADER)


@kernel
def _split_answers(buf: Any, end: int, answers: Any) -> Any:
    at = np.int64(0)
    count = 0
    while end - at >= 4:
        size = u32(buf, at)
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
