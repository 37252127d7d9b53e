"""The end of the daemon, as whoever waits for it sees it."""

from __future__ import annotations

from reader.errors import PulsarLakeError

__all__ = ["StoppedError"]


class StoppedError(PulsarLakeError):
    """The offloader stops; what was asked for has not begun, and is for the next run."""
