"""Hadoop's SequenceFile, version 6: its header, how it is compressed, and whole small files.

Source: the documentation of ``org.apache.hadoop.io.SequenceFile``. Numbers are big endian; vint is
``WritableUtils.writeVInt``, text a vint and UTF-8.

    "SEQ" 3 · version 6 1 · key class text · value class text · compressed 1 · by blocks 1 ·
    codec class text, if compressed · pairs of metadata 4, each two texts · sync marker 16

Without compression, and with values compressed one by one, there follow records

    record length 4 · key length 4 · key · value

and now and then, instead of a length, -1 4 · sync marker 16. Compressed by blocks:

    -1 4 · sync marker 16 · records vint · four times: length vint, compressed:
    lengths of the keys (vints), keys, lengths of the values (vints), values

A LongWritable is 8 bytes, a BytesWritable a length 4 and its bytes.
"""

import bz2
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from reader.errors import CorruptError, UnsupportedError

LONG, BYTES = "org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.BytesWritable"
SYNC = 20
"""Bytes of an escape and its marker."""
MOST_INFLATED = 512 << 20
"""Bytes that what is compressed may become; as of a message's payload."""

_VERSION = 6
_MOST_PAIRS = 1 << 22  # of an index, each for 128 entries: more than any ledger has

Inflate = Callable[[bytes, int], bytes]
"""(what is compressed, how many bytes it may become) to the bytes. Raises one of ``_DAMAGED``."""


def _inflate(new: Callable[[], Any], data: bytes, most: int) -> bytes:
    inflating = new()
    found: bytes = inflating.decompress(data, most + 1)
    if not inflating.eof or len(found) > most:
        raise ValueError(f"it is cut off, or more than {most} bytes")
    return found


_CODECS: dict[str, Inflate] = {
    # The offloader asks for no codec, and so gets the first, which is zlib's format.
    "DefaultCodec": partial(_inflate, zlib.decompressobj),
    "DeflateCodec": partial(_inflate, zlib.decompressobj),
    "GzipCodec": partial(_inflate, partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)),
    "BZip2Codec": partial(_inflate, bz2.BZ2Decompressor),
}
_DAMAGED = (zlib.error, OSError, EOFError, ValueError)


class Compression(Enum):
    """What is compressed together."""

    NONE = "nothing"
    RECORD = "each value"
    BLOCK = "blocks of records"


@dataclass(frozen=True, slots=True)
class Header:
    """``size``: its bytes; ``sync``: the file's marker; ``inflate``: decompresses."""

    size: int
    value_class: str
    compression: Compression
    inflate: Inflate | None
    sync: bytes


def vint(data: bytes, at: int) -> tuple[int, int]:
    """(number, position after it). Raises IndexError where it is cut off."""
    lead = data[at]
    if lead < 0x80 or lead >= 0x90:  # -112 to 127
        return lead - 256 if lead >= 0x80 else lead, at + 1
    negative = lead < 0x88  # -128 to -121
    size = 0x88 - lead if negative else 0x90 - lead
    if at + 1 + size > len(data):
        raise IndexError
    value = int.from_bytes(data[at + 1 : at + 1 + size], "big")
    return ~value if negative else value, at + 1 + size


def parse_header(data: bytes) -> Header:
    """Raises CorruptError for what is none, UnsupportedError for one of another kind.

    ``data``: the file, or enough of its beginning.
    """
    if data[:3] != b"SEQ":
        raise CorruptError(f"not a SequenceFile: it begins with {bytes(data[:4]).hex()}")
    try:
        if data[3] != _VERSION:
            raise UnsupportedError(f"a SequenceFile of version {data[3]}")
        key_class, at = _text(data, 4)
        value_class, at = _text(data, at)
        compressed, blocks = data[at], data[at + 1]
        at += 2
        if compressed > 1 or blocks > compressed:
            raise CorruptError(f"a SequenceFile with compression {compressed}, {blocks}")
        codec = ""
        if compressed:
            codec, at = _text(data, at)
        pairs = int.from_bytes(data[at : at + 4], "big", signed=True)
        if pairs < 0 or pairs > len(data):
            raise CorruptError(f"a SequenceFile with {pairs} pairs of metadata")
        at += 4
        for _ in range(2 * pairs):
            _, at = _text(data, at)
    except IndexError:
        raise CorruptError("the header of a SequenceFile ends too early") from None
    if len(data) < at + 16:
        raise CorruptError("the header of a SequenceFile ends too early")
    if key_class != LONG or value_class not in (LONG, BYTES):
        raise UnsupportedError(f"a SequenceFile of {key_class} and {value_class}")
    inflate = _CODECS.get(codec.removeprefix("org.apache.hadoop.io.compress."))
    if compressed and inflate is None:
        raise UnsupportedError(f"a SequenceFile compressed by {codec}")
    kinds = (Compression.NONE, Compression.RECORD, Compression.BLOCK)
    return Header(
        at + 16, value_class, kinds[compressed + blocks], inflate, bytes(data[at : at + 16])
    )


def inflated(header: Header, data: bytes, most: int = MOST_INFLATED) -> bytes:
    """Raises CorruptError for bytes that the file's codec did not write, and for more than
    ``most``.
    """
    assert header.inflate is not None
    try:
        return header.inflate(data, most)
    except _DAMAGED as error:
        raise CorruptError(f"what is compressed in a SequenceFile is damaged: {error}") from error


def long_pairs(data: bytes) -> Iterator[tuple[int, int]]:
    """The pairs of a whole file of LongWritables, in their order. Raises as ``parse_header``."""
    header = parse_header(data)
    if header.value_class != LONG or header.compression is not Compression.BLOCK:
        raise UnsupportedError(
            f"an index of {header.value_class}, with {header.compression.value} compressed"
        )
    at, left = header.size, _MOST_PAIRS
    try:
        while at < len(data):
            if data[at : at + SYNC] != b"\xff" * 4 + header.sync:
                raise CorruptError(f"no sync marker at {at} of the index")
            count, at = vint(data, at + SYNC)
            if not 1 <= count <= left:
                raise CorruptError(f"the index says {count} pairs in a block")
            left -= count
            parts = []
            for width in (1, 8, 1, 8):
                size, at = vint(data, at)
                if size < 0 or size > len(data) - at:
                    raise IndexError
                parts.append(inflated(header, data[at : at + size], width * count))
                at += size
            if parts[0] != b"\x08" * count or parts[2] != b"\x08" * count:
                raise CorruptError("the index has something else than numbers of 8 bytes")
            if len(parts[1]) != 8 * count or len(parts[3]) != 8 * count:
                raise CorruptError("the index has a block that is not whole")
            for i in range(0, 8 * count, 8):
                yield _long(parts[1], i), _long(parts[3], i)
    except IndexError:
        raise CorruptError("the index ends too early") from None


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "big", signed=True)


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = vint(data, at)
    if size < 0 or at + size > len(data):
        raise IndexError
    return bytes(data[at : at + size]).decode(errors="replace"), at + size
