"""Positions of entries in a partition."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Position"]


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """(ledger id, entry id); entry -1 is "before the first entry"."""

    ledger: int
    entry: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read ``"12:345"`` as the admin REST writes it."""
        ledger, _, entry = text.partition(":")
        return cls(int(ledger), int(entry))

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"
