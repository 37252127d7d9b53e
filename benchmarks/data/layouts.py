"""The kinds of cluster that topics are published to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OFFLOADING", "ROLLING", "STRIPED", "TUNED", "WHOLE", "Layout"]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cluster keeps ledgers; write and ack quorum are 2.

    ensemble: of every ledger, and how many bookies there are.
    entries_per_ledger: after how many the broker ends one by itself; None: a ledger ends where its
        topic's spec says so.
    read_buffer: of the bookies, in bytes (`readBufferSizeBytes`); None: Pulsar's default.
    offloaders: whether the broker has those of Pulsar's own tiered storage.
    """

    name: str
    ensemble: int = 2
    entries_per_ledger: int | None = None
    read_buffer: int | None = None
    offloaders: bool = False


WHOLE = Layout("whole")
"""Pulsar's own defaults: each of two bookies has every entry."""

STRIPED = Layout("striped", ensemble=3)
"""Each of three bookies has two of three entries, in turn."""

ROLLING = Layout("rolling", entries_per_ledger=5)
"""As `WHOLE`, with very small ledgers: the broker ends one in some milliseconds, an admin's unload
takes a tenth of a second. It is a setting of the broker, so it takes a cluster of its own."""

TUNED = Layout("tuned", read_buffer=65_536)
"""As `WHOLE`, with what docs/operations.md advises for bookies that are read fast."""

OFFLOADING = Layout("offloading", offloaders=True)
"""As `WHOLE`, with Pulsar's own tiered storage."""
