"""What a commit says of the ledgers that it added: one value of its ``commitInfo``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from reader.errors import CorruptError, plain_text

LEDGERS_KEY = "pulsarlake.ledgers"

_LOST = "lost"  # stored in place of a tier (docs/formats.md): keep it


@dataclass(frozen=True, slots=True)
class OffloadedLedger:
    """What a commit says of one ledger that it added.

    ``partition``: index; ``tier``: where it was read from, of use only if not ``lost``; times: µs
    since the epoch, None without rows. A ledger that Pulsar had already deleted as empty has 0
    entries. ``closed_at``: by the broker's clock, ms since the epoch, None where unknown.
    ``declared_lost``: by an operator; each of its entries that could not be read is a rescued row.
    """

    partition: int
    ledger: int
    entries: int
    rows: int
    bytes: int
    tier: str
    min_publish_time: int | None = None
    max_publish_time: int | None = None
    closed_at: int | None = None
    declared_lost: bool = False

    @classmethod
    def lost_one(cls, partition: int, ledger: int) -> OffloadedLedger:
        """Of a ledger that was deleted before it was offloaded; nobody knows what it had."""
        return cls(partition, ledger, entries=0, rows=0, bytes=0, tier=_LOST)

    @property
    def lost(self) -> bool:
        """Whether it was deleted before it was offloaded, with whatever lay between it and the
        next ledger of the commit."""
        return self.tier == _LOST


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
