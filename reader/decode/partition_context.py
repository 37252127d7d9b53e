"""What a decoder asks of a partition outside of the entries that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reader.errors import UnsupportedError

__all__ = ["Chunk", "NoContext", "PartitionContext"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunk ``chunk_id`` (from 0) of the ``num_chunks`` of a message, in entry (ledger, entry).

    ``size``: bytes of its payload. ``publish_time``: µs since the epoch. ``encrypted``: no key
    opened it, so it is a row of its own.
    """

    ledger: int
    entry: int
    chunk_id: int
    num_chunks: int
    size: int
    publish_time: int
    encrypted: bool = False


class PartitionContext(Protocol):
    """The rest of the partition: what lies outside of the entries that a decoder is given."""

    def aborted(self, most: int, least: int) -> bool:
        """Whether the transaction with this id (two signed 64-bit halves) was aborted.

        Asked for committed and aborted transactions only. Raises UnsupportedError where this cannot
        be found out.
        """

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        """Chunks of the message in the entries before the first given one, in log order.

        At least those from its latest chunk 0 on, or from the lookback position on.
        """

    def entry(self, ledger: int, entry: int) -> bytes:
        """The bytes of an entry that was given, or that ``chunks_before`` has named."""


class NoContext:
    """The partition has no entries except those given."""

    def aborted(self, most: int, least: int) -> bool:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"the outcome of transaction ({most},{least}) is not known")

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        """None."""
        return ()

    def entry(self, ledger: int, entry: int) -> bytes:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"entry {ledger}:{entry} is not available")
