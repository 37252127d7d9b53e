"""What a decoder may have to ask about entries that it is not given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reader.errors import UnsupportedError

__all__ = ["Alone", "Around", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """One chunk of a message: entry (ledger, entry) has chunk ``chunk`` of ``chunks``.

    ``size``: bytes of payload; ``published``: µs since the epoch. ``sealed``: encrypted, and so a
    row of its own.
    """

    ledger: int
    entry: int
    chunk: int
    chunks: int
    size: int
    published: int
    sealed: bool = False


class Around(Protocol):
    """The rest of the partition, as seen from the entries that a decoder is given."""

    def aborted(self, most: int, least: int) -> bool:
        """Whether the transaction of this id (two signed 64-bit halves) was aborted.

        Asked only for decided ones. Raises UnsupportedError where nobody can tell.
        """

    def parts_before(self, uuid: bytes) -> Sequence[Part]:
        """Chunks of the message in the entries before the first given one, in log order.

        From its latest chunk 0 on at least, or from as far back as a message may reach.
        """

    def entry(self, ledger: int, entry: int) -> bytes:
        """The bytes of an entry that was given or named by ``parts_before`` earlier."""


class Alone:
    """Nothing but the entries given."""

    def aborted(self, most: int, least: int) -> bool:
        raise UnsupportedError(f"nobody can tell how transaction ({most},{least}) ended")

    def parts_before(self, uuid: bytes) -> Sequence[Part]:
        return ()

    def entry(self, ledger: int, entry: int) -> bytes:
        raise UnsupportedError(f"entry {ledger}:{entry} is not at hand")
