"""What an append adds to a table: files, watermarks, and what is said of each ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa
from deltalake import Transaction

from offloader.commit.file_age import LEAST_MAX_AGE_MS
from offloader.model import WrittenFile
from reader.model import Partition, Position, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.table import (
    OffloadedLedger,
    added_key,
    ciphertext_key,
    closed_keys,
    data_loss_key,
    expected_key,
    first_keys,
    given_up_keys,
    last_entry_key,
    lookback_keys,
    open_key,
)

__all__ = ["Addition", "Advance"]


@dataclass(frozen=True, slots=True)
class Advance:
    """One partition's step: from the watermark ``before`` (-1: none) to ledger ``upto``.

    ``created_at``: the managed ledger's creation time, as the admin REST prints it. ``lookback``:
    where the first chunked message begins that ``upto`` leaves incomplete; None: there is none.
    ``lookback_before``: the same of ``before``. ``expected``: the first ledger above ``upto`` that
    has entries by now; None: none has, and ``open_ledger`` is the one that is open; ``added``:
    entries that its broker had added by then, since it loaded the topic. ``closed``:
    the greatest close time of the ledgers up to ``upto``, ms since the epoch, and the last ledger
    that it covers; None: not known. ``given_up``: where the last message begins that it gives up;
    None: it gives up none. A step that gives up messages only stays at its watermark. ``first``:
    of the first step of a managed ledger, its first ledger, and how many entries had been deleted
    by then, of those written since the broker loaded the topic; None of any other step.
    """

    partition: Partition
    before: int
    upto: int
    created_at: str
    lookback: Position | None = None
    expected: int | None = None
    open_ledger: int | None = None
    added: int = 0
    lookback_before: Position | None = None
    closed: tuple[int, int] | None = None
    given_up: Position | None = None
    first: tuple[int, int] | None = None

    @property
    def adds_ledgers(self) -> bool:
        """Whether the watermark moves."""
        return self.upto > self.before

    @property
    def forward(self) -> bool:
        """Whether it says anything new: the watermark moves, or, where it stays, the lookback."""
        if self.upto != self.before:
            return self.upto > self.before
        return _or_behind(self.lookback, self.upto) > _or_behind(self.lookback_before, self.upto)

    @property
    def transactions(self) -> list[Transaction]:
        """The watermark first. The others are said where they are none, too: they may have been."""
        lookback = _or_behind(self.lookback, self.upto)
        found = {self.partition.full_name: self.upto} if self.adds_ledgers else {}
        found |= zip(lookback_keys(self.partition), (lookback.ledger, lookback.entry), strict=True)
        if self.given_up is not None:
            at = self.given_up
            found |= zip(given_up_keys(self.partition), (at.ledger, at.entry), strict=True)
        if self.adds_ledgers:
            for key, ledger in (
                (expected_key(self.partition), self.expected),
                (open_key(self.partition), self.open_ledger),
            ):
                found[key] = self.upto if ledger is None else ledger
            found[added_key(self.partition)] = self.added
            if self.first is not None:
                found |= zip(first_keys(self.partition), self.first, strict=True)
            if self.closed is not None:
                found |= zip(closed_keys(self.partition), self.closed, strict=True)
        return [Transaction(name, version) for name, version in found.items()]


def _or_behind(lookback: Position | None, watermark: int) -> Position:
    """As the log has it: behind the watermark where there is none."""
    return lookback or Position(watermark + 1, 0)


@dataclass(frozen=True, slots=True)
class Addition:
    """What one commit adds.

    ``fields``: the payload columns of ``files``, in the table's order. ``schemas``: the schema
    versions that the table remembers from now on. ``partitions``: creation times of the topic's
    managed ledgers, by partition index. ``max_age_ms``: how old its files may be at the commit.
    """

    topic: Topic
    advances: tuple[Advance, ...]
    files: tuple[WrittenFile, ...]
    ledgers: tuple[OffloadedLedger, ...]
    fields: pa.Schema
    source: str
    cluster: str = ""
    statistics: tuple[str, ...] = ()
    max_age_ms: int = LEAST_MAX_AGE_MS
    schemas: tuple[SchemaInfo, ...] = ()
    partitions: Mapping[int, str] = field(default_factory=dict)

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([*self.fields, *METADATA])

    @property
    def transactions(self) -> list[Transaction]:
        found = [one for step in self.advances for one in step.transactions]
        entries = {(one.partition, one.ledger): one.entries for one in self.ledgers}
        found += [
            Transaction(
                last_entry_key(step.partition), entries[step.partition.index, step.upto] - 1
            )
            for step in self.advances
            if step.adds_ledgers
        ]
        if any(file.ciphertexts for file in self.files):
            upto = max(step.upto for step in self.advances)
            found.append(Transaction(ciphertext_key(self.topic), upto))
        losses = self._losses
        if losses:  # of a topic without partitions the two names are the same
            named = {data_loss_key(self.topic): max(losses.values())}
            named |= {data_loss_key(one): upto for one, upto in losses.items()}
            found += [Transaction(name, upto) for name, upto in named.items()]
        return found

    @property
    def _losses(self) -> dict[Partition, int]:
        """The last ledger of each partition that follows a loss, or was declared lost."""
        found = {}
        for one, after in pairwise([*self.ledgers, None]):
            assert one is not None
            if one.lost and after is not None:
                found[Partition(self.topic, one.partition)] = after.ledger
            elif one.declared_lost:
                found[Partition(self.topic, one.partition)] = one.ledger
        return found
