"""Chunked messages that a commit leaves incomplete: what is known of them, and giving them up.

Tasks say how far each message has come of which they saw a chunk; here that is put together, in
the order of the log, with what was incomplete at the watermark. What still is, is the next
commit's; what has waited for too long becomes a rescued row of this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from reader.clients import Clients
from reader.decode import Chunk, ChunkSequence, Decryption, add_chunk, is_incomplete
from reader.errors import NotFoundError
from reader.model import Partition, Position
from reader.pulsar.ledgers import PartitionLedgers
from reader.sources.lookback import Surroundings
from reader.sources.rows import RowBuilder, RowFormat

__all__ = ["States", "given_up", "reach_of", "split_by_age", "states_at"]

States = Mapping[bytes, ChunkSequence]
"""By uuid: the chunks so far."""


def states_at(clients: Clients, partition: Partition, watermark: int, reach: Position) -> States:
    """The messages that are incomplete at the end of ledger ``watermark``, read from ``reach``."""
    found: dict[bytes, ChunkSequence] = {}
    end = Position(watermark + 1, 0)
    with Surroundings(
        clients.settings, partition, end, reach, stored_decryption(clients)
    ) as context:
        for uuid, chunk in context.all_chunks():
            found[uuid] = add_chunk(found.get(uuid, ()), chunk)[0]
    return {uuid: state for uuid, state in found.items() if is_incomplete(state)}


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
    ledgers = {one.ledger_id: one.metadata for one in listing.ledgers}
    builder = RowBuilder(listing.partition, rows)
    known = [state for state in states.values() if not state[-1].encrypted]
    order = sorted(known, key=lambda state: (state[-1].ledger, state[-1].entry))
    decryption = stored_decryption(clients)
    for state in order:
        last = state[-1]
        metadata = ledgers.get(last.ledger)
        if metadata is None:
            raise NotFoundError(f"ledger {last.ledger} of {listing.partition} is gone")
        first = Position(state[0].ledger, state[0].entry)
        at = Position(last.ledger, last.entry)
        with (
            Surroundings(clients.settings, listing.partition, at, first, decryption) as context,
            clients.bookies() as bookies,
        ):
            decoder = builder.entry_decoder(
                _Known(context, state[:-1]), decryption=decryption, rescue_incomplete=True
            )
            for block in bookies.read(metadata, last.entry, last.entry):
                for messages in decoder.decode(block):
                    yield last.ledger, builder.build(messages)


@dataclass(frozen=True, slots=True)
class _Known:
    """The surroundings of a last chunk whose others are known."""

    inner: Surroundings
    chunks: Sequence[Chunk]

    def aborted(self, most: int, least: int) -> bool:
        return self.inner.aborted(most, least)

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        return self.chunks

    def entry(self, ledger: int, entry: int) -> bytes:
        return self.inner.entry(ledger, entry)
