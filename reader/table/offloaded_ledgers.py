"""What a commit says of the ledgers that it added: one value of its ``commitInfo``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from reader.errors import CorruptError, plain_text

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


_MEMBERS = frozenset(one.name for one in fields(OffloadedLedger))


def encode_ledgers(ledgers: Iterable[OffloadedLedger]) -> str:
    """The commit's metadata value for ``LEDGERS_KEY``."""
    return json.dumps([asdict(one) for one in ledgers], separators=(",", ":"))


def decode_ledgers(text: str) -> list[OffloadedLedger]:
    """What ``encode_ledgers`` wrote, here or in a newer version: unknown members are left out.

    Raises CorruptError for anything else.
    """
    try:
        return [
            OffloadedLedger(**{name: one[name] for name in one.keys() & _MEMBERS})
            for one in json.loads(text)
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise CorruptError(
            f"a commit's {LEDGERS_KEY} is not a list of ledgers: {plain_text(error)}"
        ) from error
