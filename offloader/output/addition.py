"""What an append adds to a table: files, watermarks, and what is said of each ledger."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pyarrow as pa

from offloader.output.files import LEAST_MAX_AGE_MS, WrittenFile
from reader.model import Partition, Position, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.table import OffloadedLedger, PartitionNumbers, TopicNumbers


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
    def transactions(self) -> dict[str, int]:
        """The numbers of the log that the step sets, version by ``appId``."""
        one, fields = self.partition, PartitionNumbers
        found = fields.lookback.set(one, self.lookback)
        if self.given_up is not None:
            found |= fields.given_up.set(one, self.given_up)
        if self.adds_ledgers:
            found |= fields.watermark.set(one, self.upto)
            found |= fields.expected.set(one, self.expected)
            found |= fields.open_ledger.set(one, self.open_ledger)
            found |= fields.added.set(one, self.added)
            if self.first is not None:
                first, missing = self.first
                found |= fields.first.set(one, first) | fields.missing.set(one, missing)
            if self.closed is not None:
                at, ledger = self.closed
                found |= fields.closed_at.set(one, at) | fields.closed_ledger.set(one, ledger)
        return found


def _or_behind(lookback: Position | None, watermark: int) -> Position:
    """Return where messages may be incomplete: behind the watermark if none is."""
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
    def transactions(self) -> dict[str, int]:
        """The numbers of the log that the commit sets, version by ``appId``."""
        found: dict[str, int] = {}
        entries = {(one.partition, one.ledger): one.entries for one in self.ledgers}
        for step in self.advances:
            found |= step.transactions
            if step.adds_ledgers:
                last = entries[step.partition.index, step.upto]
                found |= PartitionNumbers.entries.set(step.partition, last)
        if any(file.ciphertexts for file in self.files):
            upto = max(step.upto for step in self.advances)
            found |= TopicNumbers.ciphertext.set(self.topic, upto)
        for partition, ledger in self._losses.items():
            found |= PartitionNumbers.data_loss.set(partition, ledger)
        if self._losses:
            found |= TopicNumbers.data_loss.set(self.topic, max(self._losses.values()))
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
