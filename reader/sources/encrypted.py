"""Encrypted entries that a table holds as they are, decrypted when they are read.

Such a row (``RowKind.ENCRYPTED``) has all of its entry: the metadata in
``__encryptionContext``, the payload in ``__rescued``. So the entry is made again and decoded like
one from a bookie. That gives the same rows, also where it is a whole batch or a chunk of a message.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reader.decode import Chunk, Transactions, chunk_headers, opened_part, plain_entry
from reader.errors import NotFoundError
from reader.model import EntryBlock, Partition, Position, TransactionId
from reader.model.columns import TIMESTAMP, rows_between
from reader.model.row_kinds import RowKind, is_kind
from reader.plan import EncryptedRead
from reader.sources.lookback import Lookback
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from reader.sources.source_clients import SourceClients
from reader.table import TopicTable

_PUBLISHED = "__brokerPublishTime"
_COLUMNS = ("__ledgerId", "__entryId", _PUBLISHED, "__index", "__encryptionContext", "__rescued")
# Each row may be of Pulsar's largest message.
_BATCH_ROWS = 64
_END = Position((1 << 63) - 1, 0)


def read_encrypted(
    clients: SourceClients, read: EncryptedRead, rows: RowFormat
) -> Iterator[pa.RecordBatch]:
    """Yield a partition's encrypted entries as decrypted rows; what no key opens as it is stored.

    Messages that were given up are rescued rows. Rows are in the order of the log within a batch
    only. Raises NotFoundError if the table, or an entry with a chunk of a message, is gone.
    """
    partition, within = read.partition, read.within
    table = read.table or TopicTable.open(clients.storage, partition.topic, read.version)
    if table is None:
        raise NotFoundError(
            f"the table of {partition.topic} was deleted since the query was planned"
        )
    decryption = clients.decryption(partition.topic)
    where = rows_between(partition.index, *(within or (None, None)))
    stored = _StoredEntries(table, partition)
    lookback = Lookback(stored, partition, end=_END, decryption=decryption)
    builder = RowBuilder(partition, rows)
    has_chunks = False

    def decoded(block: EntryBlock, *, rescue_incomplete: bool = False) -> Iterator[pa.RecordBatch]:
        nonlocal has_chunks
        decoder = builder.entry_decoder(
            lookback.before(Position(block.ledger_id, int(block.entry_ids[0]))),
            decryption=decryption,
            rescue_incomplete=rescue_incomplete,
        )
        for messages in decoder.decode(block):
            yield from builder.build(messages)
        has_chunks |= bool(decoder.incomplete_chunks)

    for found in _stored(table, where):
        for block in _blocks(found):
            yield from decoded(block)
    if has_chunks:
        for last in _given_up(table, partition, lookback, read.given_up_to or _END):
            if within is None or within[0] <= Position(last.ledger, last.entry) <= within[1]:
                for block in _blocks(stored.rows_at(last.ledger, [last.entry])):
                    yield from decoded(block, rescue_incomplete=True)


def _given_up(
    table: TopicTable, partition: Partition, lookback: Lookback, upto: Position
) -> list[Chunk]:
    """Of each message that is not complete, that nobody waits for, and that begins at ``upto`` or
    before, the last chunk that is no row of its own."""
    waited_for = table.numbers(partition).lookback
    given_up = [
        opened_part(chunks)
        for chunks in lookback.incomplete().values()
        if (begin := Position(chunks[0].ledger, chunks[0].entry)) <= upto
        and (waited_for is None or begin < waited_for)
    ]
    return [chunks[-1] for chunks in given_up if chunks]


def _stored(table: TopicTable, where: pc.Expression) -> Iterator[list[dict[str, Any]]]:
    for batch in table.batches(
        _COLUMNS, where & is_kind(RowKind.ENCRYPTED), batch_rows=_BATCH_ROWS
    ):
        if batch.num_rows:
            # As an integer, which entries have.
            at = batch.schema.get_field_index(_PUBLISHED)
            micros = batch.column(at).cast(TIMESTAMP).cast(pa.int64())
            yield batch.set_column(at, _PUBLISHED, micros).to_pylist()


def _blocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[EntryBlock]:
    """A block a ledger, entries ascending; with chunks, one for each run of entries without a gap.

    What is missing in a gap may be in another file, and a chunk of the same message.
    """
    order = sorted(rows, key=lambda row: (row["__ledgerId"], row["__entryId"]))
    for ledger, ours in groupby(order, key=lambda row: int(row["__ledgerId"])):
        entries = {int(row["__entryId"]): _entry(row) for row in ours}
        block = EntryBlock.of(ledger, entries)
        if not chunk_headers(block, Transactions(lambda ledger_id, unknown: ())):
            yield block
            continue
        for _, run in groupby(enumerate(entries), key=lambda one: one[1] - one[0]):
            yield EntryBlock.of(ledger, {entry: entries[entry] for _, entry in run})


def _entry(row: Mapping[str, Any]) -> bytes:
    metadata = row["__encryptionContext"]["metadata"]
    return plain_entry(row[_PUBLISHED], row["__index"], metadata, row["__rescued"] or b"")


@dataclass(frozen=True, slots=True)
class _StoredEntries:
    """The partition's encrypted entries: ``PartitionEntries``; none of aborted transactions."""

    table: TopicTable
    partition: Partition

    def has_ledger(self, ledger_id: int) -> bool:
        return True

    def windows(
        self, end: Position, first: Position, *, forwards: bool = False
    ) -> Iterator[Iterable[EntryBlock]]:
        """One portion, as the files are read in whatever order they have; forwards one a ledger."""
        where = rows_between(self.partition.index, first, end.before)
        parts = [where]
        if forwards:
            ids: set[int] = set()
            for batch in self.table.batches(["__ledgerId"], where & is_kind(RowKind.ENCRYPTED)):
                ids.update(pc.unique(batch.column(0)).to_pylist())
            parts = [where & (pc.field("__ledgerId") == ledger) for ledger in sorted(ids)]
        for part in parts:
            yield (block for rows in _stored(self.table, part) for block in _blocks(rows))

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        return ()

    def pick(self, ledger_id: int, entries: Sequence[int]) -> Iterator[EntryBlock]:
        rows = sorted(self.rows_at(ledger_id, entries), key=lambda row: int(row["__entryId"]))
        yield EntryBlock.of(ledger_id, {int(row["__entryId"]): _entry(row) for row in rows})

    def rows_at(self, ledger_id: int, entries: Sequence[int]) -> list[dict[str, Any]]:
        """The one row of each entry. Raises NotFoundError when the table does not have it."""
        where = (pc.field("__partition") == self.partition.index) & (
            (pc.field("__ledgerId") == ledger_id) & pc.field("__entryId").isin(list(entries))
        )
        found = [row for rows in _stored(self.table, where) for row in rows]
        numbers = Counter(row["__entryId"] for row in found)
        for entry in entries:
            if numbers[entry] != 1:
                raise NotFoundError(
                    f"the table does not have exactly one row of entry {ledger_id}:{entry} of "
                    f"{self.partition}",
                    hint="it is needed to decrypt a message; rows may have expired",
                )
        return found
