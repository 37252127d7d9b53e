"""Entries as they are staged: bytes that are sent the same, however often they are sent.

One after the other, each ``u32 messages, u32 chunk, u32 metadata size, u32 payload size``
(little-endian), the metadata without what is known when it is sent, and the payload as it is
stored (``docs/formats.md``). Entries of one partition stand together in *runs*, chunks of one
message in the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reader.encode import EncodedEntry
from reader.errors import CorruptError

__all__ = ["Run", "ShownSchema", "StagedFile", "read_entries", "staged_entry"]

_HEAD = struct.Struct("<IIII")


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
    head = _HEAD.pack(entry.messages, entry.chunk, len(entry.metadata), len(entry.payload))
    return head, entry.metadata, entry.payload


def read_entries(data: memoryview) -> Iterator[EncodedEntry]:
    """The entries of a run. Raises CorruptError for what is none."""
    at, end = 0, len(data)
    while at < end:
        if end - at < _HEAD.size:
            raise CorruptError("staged entries end too early")
        messages, chunk, metadata, payload = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if metadata + payload > end - at:
            raise CorruptError("staged entries end too early")
        behind = at + metadata
        yield EncodedEntry(messages, bytes(data[at:behind]), data[behind : behind + payload], chunk)
        at = behind + payload
