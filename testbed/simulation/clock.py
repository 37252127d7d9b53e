"""The time of a history: one true clock, which only the history moves."""

from __future__ import annotations

__all__ = ["START_MS", "Clock"]

START_MS = 1_790_000_000_000


class Clock:
    """``now_ms``: ms since the epoch, by the brokers."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def advance(self, ms: int) -> None:
        """Let time go by; nobody waits."""
        self.now_ms += ms

    def sleep(self, seconds: float) -> None:
        """What a client does that waits."""
        self.now_ms += int(seconds * 1000) + 1
