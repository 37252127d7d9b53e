"""What a commit says of the ledgers that it added: one value of its ``commitInfo``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

__all__ = ["LEDGERS_KEY", "LOST", "OffloadedLedger", "decode_ledgers", "encode_ledgers"]

LEDGERS_KEY = "pulsarlake.ledgers"

LOST = "lost"
"""In place of the tier that a ledger was read from: it was deleted before."""


@dataclass(frozen=True, slots=True)
class OffloadedLedger:
    """What a commit says of one ledger that it added.

    ``partition``: index; ``tier``: where it was read from, or ``LOST``; times: µs since the epoch,
    None without rows. A ledger that Pulsar had already deleted as empty has 0 entries.
    """

    partition: int
    ledger: int
    entries: int
    rows: int
    bytes: int
    tier: str
    min_publish_time: int | None = None
    max_publish_time: int | None = None


def encode_ledgers(ledgers: Iterable[OffloadedLedger]) -> str:
    """The commit's metadata value for ``LEDGERS_KEY``."""
    return json.dumps([asdict(one) for one in ledgers], separators=(",", ":"))


def decode_ledgers(text: str) -> list[OffloadedLedger]:
    """What ``encode_ledgers`` wrote."""
    return [OffloadedLedger(**one) for one in json.loads(text)]
