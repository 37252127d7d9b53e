"""What a source is: the interfaces of whatever gives entries or rows, and their contract.

A *row source* gives Arrow batches of a split; there is one behind each tier. Where a store keeps
entries as Pulsar wrote them, it is enough to write an *entry source*: ``entry_rows.EntryRows``
makes rows of it. Which source a split is read from, and from which it goes on after an error,
``fallback`` says. ``tests/contract/kit.py`` is this contract as tests that every source subclasses.

Sources are given what they need (clients, settings) and open nothing themselves
(``source_clients``).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from reader.decode import ChunkSequence
from reader.errors import CorruptError
from reader.model import EntryBlock, Partition, Position, Split, TransactionId

_FIRST_WINDOW = 32
MOST_ENTRIES = 8192
_MOST_GAP = 8
"""Entries that differ by so much are read as one range: a request costs more than a few entries."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """All rows of the split up to entry ``entry`` (inclusive) have been given.

    ``chunks``: how far each chunked message has come of which the source saw a chunk since the
    last ``Delivered``, by uuid.
    """

    entry: int
    chunks: Mapping[bytes, ChunkSequence] = field(default_factory=dict)


Step: TypeAlias = pa.RecordBatch | Delivered


class RowSource(ABC):
    """Rows of splits, of one format, which the source was made for."""

    ordered: ClassVar[bool] = True
    """Whether rows come in the order of the log; if not, there is one ``Delivered``, the last."""

    @abstractmethod
    def read(self, split: Split, first: int) -> Generator[Step]:
        """The rows of entries ``first`` to ``split.last_entry`` (inclusive) of the split's ledger.

        - Columns are exactly those of the format, in its order, with its types; what the source
          cannot give is NULL. A batch may have no rows.
        - Each row comes once, ascending by (entry, batch index) where the source is ``ordered``.
          A chunked message belongs to the entry of its last chunk.
        - A ``Delivered`` comes after the rows that it speaks for and before all later ones; entry
          ids ascend, and the last one is ``split.last_entry``. Reading again from the entry after
          it, here or in another source, gives the rest.
        - An error of those below is raised with no row given since the last ``Delivered``, so that
          reading can go on elsewhere. One that comes after a row ends the read, as any other error
          does: from an unordered source it may.
        - Entries published outside of the source's publish range may be left out, those inside not.
        - An empty range (``first`` above the last entry) gives no rows.

        Raises NotFoundError when the ledger is not here, or no longer (LedgerGoneError: one in
        which a message begins that ends in the split), UnavailableError when nobody answers,
        CorruptError when entries are there that cannot be right, and UnsupportedError when there
        are entries which this source cannot give. Never fewer rows without an error.
        """

    def read_all(self, splits: Sequence[Split]) -> Generator[tuple[int, Step]]:
        """``read`` of one split after the other: each step with the number of its split.

        A batch may have rows of several splits that were not delivered yet. Once something of a
        split is delivered, so is all of those before it. An error is that of the split which
        follows what was delivered.
        """
        for number, split in enumerate(splits):
            for step in self.read(split, split.first_entry):
                yield number, step


class PartitionEntries(Protocol):
    """Entries of a partition, as ``lookback`` walks through them."""

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether the ledger is there."""

    def windows(
        self, end: Position, first: Position, *, forwards: bool = False
    ) -> Iterator[Iterable[EntryBlock]]:
        """Return the entries from ``first`` on and before ``end``, in portions.

        The latest portion comes first, or ``forwards`` the earliest. Within a portion blocks may
        come in any order. Entries that are neither chunks nor parts of a transaction may be
        missing. Raises as ``pick`` does.
        """

    def pick(self, ledger_id: int, entries: Sequence[int]) -> Iterable[EntryBlock]:
        """The given entries of a ledger, which ascend, in blocks.

        Raises LedgerGoneError or NotFoundError when one is not there, CorruptError when its bytes
        are wrong, and UnavailableError when nobody answers.
        """

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """Which of the decided transactions that wrote to the ledger were aborted.

        Raises UnsupportedError where nobody can tell, LedgerGoneError where nobody can any more.
        """


class EntrySource(ABC):
    """The entries of one partition as Pulsar wrote them; satisfies ``PartitionEntries``."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition

    @abstractmethod
    def ledgers(self) -> Mapping[int, int]:
        """Each ledger of the partition, and its last entry (-1: none).

        Raises NotFoundError when there is no such partition, UnavailableError when nobody answers.
        """

    @abstractmethod
    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        """Entries first..last (inclusive) of a ledger, ascending, in blocks.

        Without a gap, except entries that the store hides from every reader: markers, and what
        aborted transactions wrote. A source from which one is missing knows that it is such.
        Any range that lies within ``ledgers`` may be read; one that is empty gives no blocks.
        Digests are verified: an entry of which no good copy is left is given all the same, and
        named in ``EntryBlock.damaged``. Closing the generator gives up what was asked for.

        Raises NotFoundError when the ledger is not here, or no longer (LedgerGoneError where the
        partition does not list it), UnavailableError when nobody answers, CorruptError when an
        entry of the range is not there, UnsupportedError when it is there and this source cannot
        give it, ConfigurationError for a wrong password or a missing permission. Blocks that were
        given before an error are good.
        """

    def read_all(self, ranges: Sequence[tuple[int, int, int]]) -> Generator[EntryBlock]:
        """``read`` of each (ledger, first, last), one after the other."""
        for one in ranges:
            with closing(self.read(*one)) as blocks:
                yield from blocks

    def pick(self, ledger_id: int, entries: Sequence[int]) -> Generator[EntryBlock]:
        """The given entries of a ledger, ascending, in blocks; neighbours are read together.

        ``entries``: entry ids, which ascend. Raises as ``read`` does.
        """
        wanted = np.array(entries, np.int64)
        cuts = np.flatnonzero(np.diff(wanted) > _MOST_GAP) + 1
        runs = [run for run in np.split(wanted, cuts) if len(run)]
        ranges = [(ledger_id, int(run[0]), int(run[-1])) for run in runs]
        with closing(self.read_all(ranges)) as blocks:
            for block in blocks:
                found = block.only(np.isin(block.entry_ids, wanted))
                if len(found):
                    yield found

    @abstractmethod
    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """See ``PartitionEntries``."""

    def has_ledger(self, ledger_id: int) -> bool:
        """See ``PartitionEntries``."""
        return ledger_id in self.ledgers()

    def windows(
        self, end: Position, first: Position, *, forwards: bool = False
    ) -> Iterator[Iterable[EntryBlock]]:
        """See ``PartitionEntries``. Portions grow: mostly what is looked for lies close by."""
        size = _FIRST_WINDOW
        for ledger_id, last in sorted(self.ledgers().items(), reverse=not forwards):
            if not first.ledger <= ledger_id <= end.ledger:
                continue
            lowest = first.entry if ledger_id == first.ledger else 0
            stop = min(last + 1, end.entry) if ledger_id == end.ledger else last + 1
            if forwards:
                for low in range(lowest, stop, MOST_ENTRIES):
                    yield self.read(ledger_id, low, min(low + MOST_ENTRIES, stop) - 1)
                continue
            while stop > lowest:
                low = max(lowest, stop - size)
                yield self.read(ledger_id, low, stop - 1)
                stop, size = low, min(size * 4, MOST_ENTRIES)

    def entry(self, ledger_id: int, entry: int) -> bytes:
        """Return the bytes of one entry. Raises as ``read`` does, and CorruptError for a damaged
        or hidden one."""
        blocks = list(self.read(ledger_id, entry, entry))
        if not blocks:
            raise CorruptError(f"entry {ledger_id}:{entry} of {self.partition} is hidden")
        (block,) = blocks
        if block.damaged:
            raise CorruptError(f"entry {ledger_id}:{entry} of {self.partition}: {block.damaged[0]}")
        at = int(block.offsets[0])
        return block.arena[at : at + int(block.lengths[0])].tobytes()
