"""What an append adds to a table: files, watermarks, and what is said of each ledger."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from deltalake import Transaction

from offloader.commit.file_age import LEAST_MAX_AGE_MS
from offloader.model import WrittenFile
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.table import (
    OffloadedLedger,
    ciphertext_key,
    data_loss_key,
    expected_key,
    lookback_keys,
)

__all__ = ["Addition", "Advance"]


@dataclass(frozen=True, slots=True)
class Advance:
    """One partition's step: from the watermark ``before`` (-1: none) to ledger ``upto``.

    ``created_at``: the managed ledger's creation time, as the admin REST prints it. ``lookback``:
    where the first chunked message begins that ``upto`` leaves incomplete; None: there is none.
    ``expected``: the first ledger above ``upto`` that has entries by now; None: none has.
    """

    partition: Partition
    before: int
    upto: int
    created_at: str
    lookback: Position | None = None
    expected: int | None = None

    @property
    def transactions(self) -> list[Transaction]:
        """The watermark first. The others are said where they are none, too: they may have been."""
        lookback = self.lookback or Position(self.upto + 1, 0)
        found = {self.partition.full_name: self.upto}
        found |= zip(lookback_keys(self.partition), (lookback.ledger, lookback.entry), strict=True)
        found[expected_key(self.partition)] = self.upto if self.expected is None else self.expected
        return [Transaction(name, version) for name, version in found.items()]


@dataclass(frozen=True, slots=True)
class Addition:
    """What one commit adds.

    ``fields``: the payload columns of ``files``, in the table's order. ``max_age_ms``: how old
    its files may be at the commit.
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

    @property
    def columns(self) -> pa.Schema:
        return pa.schema([*self.fields, *METADATA])

    @property
    def transactions(self) -> list[Transaction]:
        found = [one for step in self.advances for one in step.transactions]
        upto = max(step.upto for step in self.advances)
        if any(file.ciphertexts for file in self.files):
            found.append(Transaction(ciphertext_key(self.topic), upto))
        if any(one.lost for one in self.ledgers):
            found.append(Transaction(data_loss_key(self.topic), upto))
        return found
