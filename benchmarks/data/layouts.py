"""The kinds of cluster that topics are published to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cluster keeps ledgers; write and ack quorum are 2.

    ensemble: of every ledger, and how many bookies there are.
    read_buffer: of the bookies, in bytes (`readBufferSizeBytes`); None: Pulsar's default.
    """

    name: str
    ensemble: int = 2
    read_buffer: int | None = None


WHOLE = Layout("whole")
"""Pulsar's own defaults: each of two bookies has every entry."""

STRIPED = Layout("striped", ensemble=3)
"""Each of three bookies has two of three entries, in turn."""

TUNED = Layout("tuned", read_buffer=65_536)
"""As `WHOLE`, with what docs/operations.md advises for bookies that are read fast."""
