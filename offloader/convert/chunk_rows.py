"""Rows of chunks that would be in no row: of messages that are given up, or that ended sealed.

A chunk that a key opened was no row where it lay, as its message would have it. Each reader of a
message asks for its keys anew (a task, another commit, the driver), so the next may be refused what
the last was given. What counts then is neither's word, but whether the chunk has a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from offloader.convert.incomplete_chunks import ChunkSequences, stored_decryption
from offloader.convert.stored_entries import Source, stored_entries
from offloader.output import WrittenFile
from reader.clients import Clients
from reader.decode import NO_CHUNKS, Chunk, ChunkSequence, Decryption, Transactions, chunk_headers
from reader.errors import UnavailableError
from reader.model import Partition, Position
from reader.sources import EntrySource, Lookback, RowBuilder, RowFormat
from reader.table import TopicTable

_PLACE = ("__ledgerId", "__entryId")
# Rows that are read and decoded at once: so many, and so many bytes of chunks, which one row may
# exceed.
_RUN_ROWS = 1024
_RUN_BYTES = 32 << 20


def unfinished_rows(
    clients: Clients,
    partition: Partition,
    rows: RowFormat,
    *,
    given_up: ChunkSequences,
    ended: ChunkSequences,
    table: TopicTable | None,
    files: Sequence[WrittenFile],
    source: Source,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(ledger id, rows) in the order of the log.

    Of each message of ``given_up`` a rescued row, at the last of its chunks that is opened and no
    row yet. Of these, and of ``ended``, a row of each chunk that stays encrypted and is none yet,
    in ``table`` or the ``files`` that this commit adds. Raises LedgerGoneError and NotFoundError
    where a chunk has left BookKeeper, and what else ``EntrySource.read`` raises.
    """
    entries = stored_entries(clients, partition, source)
    decryption = stored_decryption(clients, partition)
    chunks = [one for sequence in (*given_up.values(), *ended.values()) for one in sequence]
    if decryption is None:
        there = {_position(one) for one in chunks if one.encrypted}
    else:
        there = _with_row(clients, partition, chunks, table, files)
    wanted = _sealed_rows(ended, there)
    for uuid, sequence in given_up.items():
        now = _as_read_now(entries, sequence, decryption)
        wanted += _sealed_rows({uuid: now}, there)
        ends = [i for i, one in enumerate(now) if not one.encrypted and _position(one) not in there]
        if ends:
            wanted.append(
                _Wanted(
                    at=_position(now[ends[-1]]), known={uuid: now[: ends[-1]]}, opens=decryption
                )
            )
    builder = RowBuilder(partition, rows)
    for run in _runs(sorted(wanted, key=lambda one: one.at)):
        yield from _rows_of(run, entries, partition, builder)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A row's place, the chunks that it has besides (of one message), and what opens them."""

    at: Position
    known: ChunkSequences
    opens: Decryption | None = None

    @property
    def size(self) -> int:
        """Bytes of the chunks' payloads, as far as they are known."""
        return sum(chunks.size for chunks in self.known.values())


def _runs(wanted: Iterable[_Wanted]) -> Iterator[list[_Wanted]]:
    """Rows of one ledger that are read and decoded together, each of another message."""
    run: list[_Wanted] = []
    size = 0
    uuids: set[bytes] = set()
    for one in wanted:
        together = (
            run
            and (one.at.ledger, one.opens) == (run[0].at.ledger, run[0].opens)
            and len(run) < _RUN_ROWS
            and size + one.size <= _RUN_BYTES
            and uuids.isdisjoint(one.known)
        )
        if run and not together:
            yield run
            run, size, uuids = [], 0, set()
        run.append(one)
        size += one.size
        uuids |= one.known.keys()
    if run:
        yield run


def _rows_of(
    run: Sequence[_Wanted], entries: EntrySource, partition: Partition, builder: RowBuilder
) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = run[0].at
    # The other chunks are known, so that nothing has to be looked for.
    known = {uuid: chunks for one in run for uuid, chunks in one.known.items()}
    lookback = Lookback(entries, partition, end=first, first=first, known=known)
    decoder = builder.entry_decoder(lookback, decryption=run[0].opens, rescue_incomplete=True)
    for block in entries.pick(first.ledger, [one.at.entry for one in run]):
        for messages in decoder.decode(block):
            for batch in builder.build(messages):
                yield first.ledger, batch


def _sealed_rows(sequences: ChunkSequences, there: set[Position]) -> list[_Wanted]:
    return [
        _Wanted(_position(one), {uuid: NO_CHUNKS})
        for uuid, sequence in sequences.items()
        for one in sequence
        if one.encrypted and _position(one) not in there
    ]


def _as_read_now(
    entries: EntrySource, sequence: ChunkSequence, decryption: Decryption | None
) -> ChunkSequence:
    """The chunks as the row will have them: a task may have been given other keys."""
    if decryption is None:
        return sequence
    found = []
    for ledger, chunks in groupby(sequence, key=lambda one: one.ledger):
        for block in entries.pick(ledger, sorted({one.entry for one in chunks})):
            headers = chunk_headers(block, Transactions(lambda ledger_id, unknown: ()), decryption)
            found += [chunk for _, chunk in headers]
    return ChunkSequence(found)


def _with_row(
    clients: Clients,
    partition: Partition,
    chunks: Sequence[Chunk],
    table: TopicTable | None,
    files: Sequence[WrittenFile],
) -> set[Position]:
    """Where the table or the files have rows of the chunks' ledgers."""
    ledgers = {one.ledger for one in chunks}
    where = pc.field("__partition") == partition.index
    where &= pc.field("__ledgerId").isin(sorted(ledgers))
    where &= pc.field("__entryId").isin(sorted({one.entry for one in chunks}))
    found: set[Position] = set()
    for batch in table.batches(_PLACE, where) if table else ():
        found |= _places(batch)
    filesystem, directory = clients.storage.directory(partition.topic)
    for file in files:
        if ledgers & {one.ledger for one in file.ledgers}:
            try:
                rows = pq.read_table(
                    f"{directory}/{file.path}",
                    filesystem=filesystem,
                    columns=[*_PLACE],
                    filters=where,
                )
            except OSError as error:
                raise UnavailableError(f"cannot read {file.path}: {error}") from error
            found |= _places(rows)
    return found


def _places(rows: pa.Table | pa.RecordBatch) -> set[Position]:
    ledgers, entries = (rows.column(name).to_pylist() for name in _PLACE)
    return set(map(Position, ledgers, entries))


def _position(chunk: Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
