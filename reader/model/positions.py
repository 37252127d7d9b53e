"""Positions of entries in a partition, and ids of the transactions that wrote them."""

from __future__ import annotations

from dataclasses import dataclass

TransactionId = tuple[int, int]
"""Its most and least significant 64 bits, both signed, as the admin REST takes them."""


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

    @property
    def before(self) -> Position:
        """The position one entry earlier in the same ledger."""
        return Position(self.ledger, self.entry - 1)


BEFORE_ALL = Position(-1, -1)
"""The position before all entries of a partition."""
