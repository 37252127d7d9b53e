"""Encrypted entries that a table holds as they are, decrypted when they are read.

Such a row (``reader.model.columns.IS_CIPHERTEXT``) has all of its entry: the metadata in
``__encryptionContext``, the payload in ``__rescued``. So the entry is made again and decoded like
one from a bookie. That gives the same rows, also where it is a whole batch or a chunk of a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reader.config import ReadConfig
from reader.decode import (
    Chunk,
    ChunkSequence,
    Decryption,
    Transactions,
    add_chunk,
    chunk_headers,
    is_incomplete,
    plain_entry,
)
from reader.errors import NotFoundError
from reader.model import EntryBlock, Partition, Position
from reader.model.columns import IS_CIPHERTEXT
from reader.private_keys import open_decryption
from reader.sources.rows import RowBuilder, RowFormat
from reader.table import TopicTable

__all__ = ["read_ciphertext"]

_COLUMNS = (
    "__ledgerId",
    "__entryId",
    "__brokerPublishTime",
    "__index",
    "__encryptionContext",
    "__rescued",
)
# Each row may be of Pulsar's largest message.
_BATCH_ROWS = 64


def read_ciphertext(
    config: ReadConfig,
    table: TopicTable,
    partition: Partition,
    rows: RowFormat,
    ledger: int | None = None,
    entries: tuple[int, int] | None = None,
    *,
    publish_range: tuple[int | None, int | None] = (None, None),
) -> Iterator[pa.RecordBatch]:
    """The partition's encrypted entries as decrypted rows; what no key opens as it is stored.

    ``ledger``, ``entries``: only those of one ledger, and first to last (inclusive) of it.
    ``publish_range`` (µs, inclusive) drops entries early. Rows are in the order of the log within a
    batch only.
    """
    place = pc.field("__partition") == partition.index
    if ledger is not None:
        place &= pc.field("__ledgerId") == ledger
    if entries is not None:
        place &= (pc.field("__entryId") >= entries[0]) & (pc.field("__entryId") <= entries[1])
    decryption = open_decryption(config.encryption)
    rest = _Rest(table, partition, decryption)
    builder = RowBuilder(partition, rows)

    def decoded(block: EntryBlock, *, rescue_incomplete: bool = False) -> Iterator[pa.RecordBatch]:
        rest.start = Position(block.ledger_id, int(block.entry_ids[0]))
        decoder = builder.entry_decoder(
            rest,
            decryption=decryption,
            publish_range=publish_range,
            rescue_incomplete=rescue_incomplete,
        )
        for messages in decoder.decode(block):
            yield builder.build(messages)
        rest.has_chunks |= bool(decoder.chunk_sequences)

    for found in _stored(table, place):
        for block in _blocks(found):
            yield from decoded(block)
    if rest.has_chunks:
        for last in rest.given_up():
            inside = ledger is None or last.ledger == ledger
            inside &= entries is None or entries[0] <= last.entry <= entries[1]
            if inside:
                for block in _blocks(rest.rows_at(last.ledger, last.entry)):
                    yield from decoded(block, rescue_incomplete=True)


def _stored(table: TopicTable, place: pc.Expression) -> Iterator[list[dict[str, Any]]]:
    for batch in table.batches(_COLUMNS, place & IS_CIPHERTEXT, batch_rows=_BATCH_ROWS):
        if batch.num_rows:
            yield batch.to_pylist()


def _blocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[EntryBlock]:
    """A block a ledger, entries ascending."""
    order = sorted(rows, key=lambda row: (row["__ledgerId"], row["__entryId"]))
    for ledger, ours in groupby(order, key=lambda row: int(row["__ledgerId"])):
        yield EntryBlock.of(ledger, {row["__entryId"]: _entry(row) for row in ours})


def _entry(row: Mapping[str, Any]) -> bytes:
    published, payload = row["__brokerPublishTime"], row["__rescued"] or b""
    micros = None if published is None else pa.scalar(published, pa.timestamp("us", "UTC")).value
    return plain_entry(micros, row["__index"], row["__encryptionContext"]["metadata"], payload)


@dataclass
class _Rest:
    """The partition's other encrypted rows, as a decoder asks about them: ``PartitionContext``."""

    table: TopicTable
    partition: Partition
    decryption: Decryption | None
    start: Position = field(default_factory=lambda: Position(-1, -1))
    has_chunks: bool = False
    _chunks: list[tuple[bytes, Chunk]] | None = None

    def aborted(self, most: int, least: int) -> bool:
        """None of those are in a table."""
        return False

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        return [
            chunk
            for name, chunk in self._all()
            if name == uuid and Position(chunk.ledger, chunk.entry) < self.start
        ]

    def entry(self, ledger: int, entry: int) -> bytes:
        (row,) = self.rows_at(ledger, entry)
        return _entry(row)

    def rows_at(self, ledger: int, entry: int) -> list[dict[str, Any]]:
        place = (pc.field("__partition") == self.partition.index) & (
            (pc.field("__ledgerId") == ledger) & (pc.field("__entryId") == entry)
        )
        found = [row for rows in _stored(self.table, place) for row in rows]
        if len(found) != 1:
            raise NotFoundError(
                f"the table has not the one row of {ledger}:{entry} of {self.partition}",
                hint="a message needs it that is decrypted; have rows expired?",
            )
        return found

    def given_up(self) -> list[Chunk]:
        """The last chunk of each message that is not complete, and that nobody waits for."""
        states: dict[bytes, ChunkSequence] = {}
        for uuid, chunk in self._all():
            states[uuid] = add_chunk(states.get(uuid, ()), chunk)[0]
        reach = self.table.lookback(self.partition)
        return [
            state[-1]
            for state in states.values()
            if is_incomplete(state)
            and (reach is None or Position(state[0].ledger, state[0].entry) < reach)
        ]

    def _all(self) -> list[tuple[bytes, Chunk]]:
        """Every chunk, in the order of the log."""
        if self._chunks is None:
            found = []
            place = pc.field("__partition") == self.partition.index
            for rows in _stored(self.table, place):
                for block in _blocks(rows):
                    found += chunk_headers(block, Transactions(self.aborted), self.decryption)
            self._chunks = sorted(found, key=lambda one: (one[1].ledger, one[1].entry))
        return self._chunks
