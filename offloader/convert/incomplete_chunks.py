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
from reader.pulsar.ledgers import PartitionLedgers
from reader.sources.bookkeeper import BookKeeperEntries
from reader.sources.lookback import Lookback
from reader.sources.rows import RowBuilder, RowFormat

__all__ = ["States", "given_up", "reach_of", "split_by_age", "states_at"]

States = Mapping[bytes, ChunkSequence]
"""By uuid: the chunks so far."""


def states_at(clients: Clients, partition: Partition, watermark: int, reach: Position) -> States:
    """The messages that are incomplete at the end of ledger ``watermark``, read from ``reach``."""
    return Lookback(
        BookKeeperEntries(clients, partition),
        partition,
        end=Position(watermark + 1, 0),
        first=reach,
        decryption=stored_decryption(clients),
    ).incomplete()


def stored_decryption(clients: Clients) -> Decryption | None:
    """What opens entries for the table; None where it holds ciphertext."""
    return clients.decryption if clients.settings.encryption.store_plaintext else None


def split_by_age(states: States, before_us: int) -> tuple[States, States]:
    """(those begun before a time in µs, the others)."""
    old = {uuid: state for uuid, state in states.items() if state[0].publish_time < before_us}
    return old, {uuid: state for uuid, state in states.items() if uuid not in old}


def reach_of(states: States) -> Position | None:
    """Where the first of the messages begins."""
    starts = [Position(state[0].ledger, state[0].entry) for state in states.values()]
    return min(starts, default=None)


def given_up(
    clients: Clients, listing: PartitionLedgers, states: States, rows: RowFormat
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """(ledger id, one rescued row) of each message, at the last of its chunks.

    None of those whose chunks are rows already, as ciphertext.
    """
    partition, builder = listing.partition, RowBuilder(listing.partition, rows)
    known = {uuid: state for uuid, state in states.items() if not state[-1].encrypted}
    decryption = stored_decryption(clients)
    entries = BookKeeperEntries(clients, partition)
    for uuid, state in sorted(known.items(), key=lambda one: _position(one[1][-1])):
        last = _position(state[-1])
        # The other chunks are known, so that nothing has to be looked for.
        lookback = Lookback(entries, partition, end=last, first=last, known={uuid: state[:-1]})
        decoder = builder.entry_decoder(lookback, decryption=decryption, rescue_incomplete=True)
        for block in entries.read(last.ledger, last.entry, last.entry):
            for messages in decoder.decode(block):
                yield last.ledger, builder.build(messages)


def _position(chunk: Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
