"""Entries as they are staged: bytes that are sent the same, however often they are sent.

One after the other, each ``u32 messages, u32 chunk, u32 codec, u32 batch size, u32 metadata size,
u32 payload size`` (little-endian), the metadata without what is known when it is sent, and the
payload (``docs/formats.md``): as it is stored where codec is 0. Else it is a block of LZ4 of a
batch, which is numbered when it is sent, and compressed by the CompressionType codec - 1. Entries
of one partition stand together in *runs*, chunks of one message in the same.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reader.encode import Compression, EncodedEntry, lz4_block, lz4_bytes
from reader.errors import CorruptError

_HEAD = struct.Struct("<IIIIII")
_MOST_BATCH = 64 << 20
"""As ``SinkOptions.batch_bytes`` has it at most."""


@dataclass(frozen=True, slots=True)
class Run:
    """Entries of one partition: so many bytes from ``offset`` on, with so many sequence ids."""

    offset: int
    size: int
    ids: int


class ShownSchema(NamedTuple):
    """What producers show. ``message``: the Schema message; None: the topic has none.

    ``version``: by which messages name it; None: of a manifest that does not say.
    """

    message: bytes | None
    version: bytes | None


@dataclass(frozen=True, slots=True)
class StagedFile:
    """What one task has staged: runs by the full name of their partition, in order.

    ``path``: of the file, below the staging directory; "": the bytes are ``inline``. ``rows``: of
    the task. ``schemas``: by partition.
    """

    path: str
    inline: bytes
    runs: Mapping[str, Sequence[Run]]
    rows: int
    schemas: Mapping[str, ShownSchema]


def staged_entry(entry: EncodedEntry) -> tuple[bytes, bytes, bytes | memoryview]:
    """Pieces of the entry as it is staged, in order."""
    codec, size, payload = 0, 0, entry.payload
    if entry.codec is not None:
        codec, size, payload = 1 + entry.codec, len(payload), lz4_block(payload)
    sizes = len(entry.metadata), len(payload)
    return _HEAD.pack(entry.messages, entry.chunk, codec, size, *sizes), entry.metadata, payload


def read_entries(data: memoryview) -> Iterator[EncodedEntry]:
    """The entries of a run. Raises CorruptError for what is none."""
    at, end = 0, len(data)
    while at < end:
        if end - at < _HEAD.size:
            raise CorruptError("staged entries end too early")
        messages, chunk, codec, size, metadata, payload = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if metadata + payload > end - at:
            raise CorruptError("staged entries end too early")
        behind = at + metadata
        found = data[behind : behind + payload]
        if not codec:
            yield EncodedEntry(messages, bytes(data[at:behind]), found, chunk)
        elif codec > len(Compression) or size > _MOST_BATCH:
            raise CorruptError("a staged entry is no batch")
        else:
            batch, kind = lz4_bytes(found, size), Compression(codec - 1)
            yield EncodedEntry(messages, bytes(data[at:behind]), batch, chunk, kind)
        at = behind + payload
