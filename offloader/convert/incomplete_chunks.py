"""Chunked messages that a commit leaves incomplete: what is known of them, and giving them up.

Tasks say how far each message has come of which they saw a chunk; here that is put together, in
the order of the log, with what was incomplete at the watermark. What still is, is the next
commit's; what has waited for too long becomes a rescued row of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from reader.clients import Clients
from reader.decode import Chunk, ChunkSequence, Decryption
from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers
from reader.sources import BookKeeperEntries, Lookback, RowBuilder, RowFormat

__all__ = ["ChunkSequences", "given_up_rows", "incomplete_at", "lookback_of", "split_by_age"]

ChunkSequences = Mapping[bytes, ChunkSequence]
"""By uuid: the chunks of a message so far."""


def incomplete_at(
    clients: Clients, partition: Partition, watermark: int, lookback: Position
) -> ChunkSequences:
    """The messages that are incomplete at the end of ledger ``watermark``.

    They are read from ``lookback`` on. Raises as ``Lookback.incomplete`` does.
    """
    return Lookback(
        BookKeeperEntries(clients, partition),
        partition,
        end=Position(watermark + 1, 0),
        first=lookback,
        decryption=stored_decryption(clients),
    ).incomplete()


def stored_decryption(clients: Clients) -> Decryption | None:
    """What opens entries for the table; None where it holds ciphertext."""
    return clients.decryption if clients.settings.encryption.store_plaintext else None


def split_by_age(
    sequences: ChunkSequences, before_us: int
) -> tuple[ChunkSequences, ChunkSequences]:
    """(those begun before a time in µs, the others)."""
    old = {uuid: chunks for uuid, chunks in sequences.items() if chunks[0].publish_time < before_us}
    return old, {uuid: chunks for uuid, chunks in sequences.items() if uuid not in old}


def lookback_of(sequences: ChunkSequences) -> Position | None:
    """Where the first of the messages begins."""
    starts = [Position(chunks[0].ledger, chunks[0].entry) for chunks in sequences.values()]
    return min(starts, default=None)


def given_up_rows(
    clients: Clients, listing: PartitionLedgers, sequences: ChunkSequences, rows: RowFormat
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(ledger id, one rescued row) of each message, at the last of its chunks.

    None of those whose chunks are rows already, as ciphertext. Raises LedgerGoneError and
    NotFoundError where a chunk has left BookKeeper, and what else ``EntrySource.read`` raises.
    """
    partition, builder = listing.partition, RowBuilder(listing.partition, rows)
    known = {uuid: chunks for uuid, chunks in sequences.items() if not chunks[-1].encrypted}
    decryption = stored_decryption(clients)
    entries = BookKeeperEntries(clients, partition)
    for uuid, chunks in sorted(known.items(), key=lambda one: _position(one[1][-1])):
        last = _position(chunks[-1])
        # The other chunks are known, so that nothing has to be looked for.
        lookback = Lookback(entries, partition, end=last, first=last, known={uuid: chunks[:-1]})
        decoder = builder.entry_decoder(lookback, decryption=decryption, rescue_incomplete=True)
        for block in entries.read(last.ledger, last.entry, last.entry):
            for messages in decoder.decode(block):
                yield last.ledger, builder.build(messages)


def _position(chunk: Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
