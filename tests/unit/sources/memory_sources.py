"""Sources that hold everything in memory."""

from collections.abc import Collection, Generator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from reader.errors import CorruptError, LedgerGoneError, NotFoundError, UnavailableError
from reader.model import EntryBlock, Partition, Split, TransactionId
from reader.sources.base import Delivered, EntrySource, RowSource, Step
from reader.sources.row_format import RowFormat, conform


class MemoryRows(RowSource):
    """Rows of one ledger (``table``: with all columns), a batch for every ``each`` entries."""

    def __init__(
        self,
        table: pa.Table,
        rows: RowFormat,
        *,
        each: int = 3,
        silent: bool = False,
        fails_at: int | None = None,
    ) -> None:
        self.ledger_id = table["__ledgerId"][0].as_py()
        self._table = table
        self._rows = rows
        self._each = each
        self._silent = silent
        self._fails_at = fails_at

    def read(self, split: Split, first: int) -> Generator[Step]:
        if self._silent:
            raise UnavailableError("nobody answers")
        if split.ledger_id != self.ledger_id:
            raise NotFoundError(f"no ledger {split.ledger_id}")
        for low in range(first, split.last_entry + 1, self._each):
            high = min(low + self._each - 1, split.last_entry)
            if self._fails_at is not None and low <= self._fails_at <= high:
                raise UnavailableError("interrupted")
            yield self.batch(low, high)
            yield Delivered(high)

    def batch(self, low: int, high: int) -> pa.RecordBatch:
        """The rows of entries low..high."""
        entries = self._table["__entryId"].to_pylist()
        times = self._table["__publishTime"].cast(pa.int64()).to_pylist()
        first, last = self._rows.publish_range
        kept = [
            row
            for row, (entry, time) in enumerate(zip(entries, times, strict=True))
            if low <= entry <= high
            and (first is None or time >= first)
            and (last is None or time <= last)
        ]
        found = self._table.take(pa.array(kept, pa.int64())).combine_chunks()
        batches = found.to_batches() or [pa.RecordBatch.from_pylist([], found.schema)]
        return conform(batches[0], self._rows.columns)


class MemoryEntries(EntrySource):
    """Ledgers as lists of entries, given in blocks of ``each``, without those in ``hidden``."""

    def __init__(
        self,
        partition: Partition,
        found: Mapping[int, Sequence[bytes]],
        *,
        each: int = 4,
        silent: bool = False,
        aborted: bool = False,
        fails_at: int | None = None,
        hidden: Collection[int] = (),
    ) -> None:
        super().__init__(partition)
        self._hidden = hidden
        self._found = found
        self._each = each
        self._silent = silent
        self._aborted = aborted
        self._fails_at = fails_at
        self.asked: list[tuple[int, int, int]] = []

    def ledgers(self) -> Mapping[int, int]:
        return {ledger_id: len(entries) - 1 for ledger_id, entries in self._found.items()}

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        self.asked.append((ledger_id, first, last))
        if self._silent:
            raise UnavailableError("nobody answers")
        if ledger_id not in self._found:
            raise LedgerGoneError(f"no ledger {ledger_id}")
        entries: Any = self._found[ledger_id]
        if last >= len(entries):
            raise CorruptError(f"no entry {ledger_id}:{last}")
        for low in range(first, last + 1, self._each):
            high = min(low + self._each - 1, last)
            if self._fails_at is not None and low <= self._fails_at <= high:
                raise UnavailableError("interrupted")
            given = {n: entries[n] for n in range(low, high + 1) if n not in self._hidden}
            if given:
                yield EntryBlock.of(ledger_id, given)

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        return transactions if self._aborted else ()
