"""BookKeeper's v3 protocol: frames, and the read of one entry. No I/O.

A frame is ``u32 size`` and that many bytes of protobuf (BookkeeperProtocol.proto):

    Request    header = 1 {version = 1, operation = 2, txnId = 3}, readRequest = 100
               {ledgerId = 1, entryId = 2}
    Response   header = 1, status = 2, readResponse = 100
               {status = 1, ledgerId = 2, entryId = 3, body = 4, maxLAC = 5}

No flag is ever set: a read with the fencing flag would stop the topic's writer.
"""

from __future__ import annotations

from dataclasses import dataclass

from reader.errors import CorruptError

__all__ = [
    "ENOENTRY",
    "ENOLEDGER",
    "EOK",
    "EUA",
    "MAX_FRAME",
    "Response",
    "decode_response",
    "encode_read",
    "frames",
]

EOK, ENOLEDGER, ENOENTRY, EUA = 0, 402, 403, 502
READ_ENTRY = 1
VERSION_THREE = 3
# Bookies send at most nettyMaxFrameSizeBytes; anything larger is not the protocol.
MAX_FRAME = 512 << 20


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a read; ``body`` is the entry after BookKeeper's header and digest, or None."""

    request: int
    status: int
    ledger: int
    entry: int
    body: memoryview | None


def encode_read(request: int, ledger: int, entry: int) -> bytes:
    """A whole frame that requests one entry."""
    read = b"\x08" + varint(ledger) + b"\x10" + varint(entry & 0xFFFFFFFFFFFFFFFF)
    return framed(READ_ENTRY, 100, read, request)


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


def frames(buffer: memoryview) -> tuple[list[memoryview], int]:
    """The whole frames at the start of ``buffer``, and how many bytes they and their sizes take.

    Raises CorruptError for a size above MAX_FRAME.
    """
    found, at = [], 0
    while len(buffer) - at >= 4:
        size = int.from_bytes(buffer[at : at + 4], "big")
        if size > MAX_FRAME:
            raise CorruptError(f"a bookie sent a frame of {size} bytes")
        if len(buffer) - at - 4 < size:
            break
        found.append(buffer[at + 4 : at + 4 + size])
        at += 4 + size
    return found, at


def decode_response(frame: memoryview) -> Response:
    """Decode a frame. Raises CorruptError for what is not the protocol."""
    try:
        request, status, ledger, entry, body = -1, -1, -1, -1, None
        for number, value in fields(frame):
            if number == 1 and isinstance(value, memoryview):
                for inner, found in fields(value):
                    if inner == 3 and isinstance(found, int):
                        request = found
            elif number == 2 and isinstance(value, int):
                status = value
            elif number == 100 and isinstance(value, memoryview):
                for inner, found in fields(value):
                    if inner == 1 and isinstance(found, int):
                        status = found
                    elif inner == 2 and isinstance(found, int):
                        ledger = found
                    elif inner == 3 and isinstance(found, int):
                        entry = found
                    elif inner == 4 and isinstance(found, memoryview):
                        body = found
    except IndexError as error:
        raise CorruptError("a bookie's answer ends too early") from error
    if request < 0 or status < 0:
        raise CorruptError("a bookie's answer has no header")
    return Response(request, status, ledger, entry, body)


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
