"""Chunked messages that a commit leaves incomplete: what is known of them.

Tasks say how far each message has come of which they saw a chunk; that is put together, in the
order of the log, with what was incomplete at the watermark. What still is, is the next commit's;
what has waited for too long (``turn/chunk_timeouts.py``) becomes a rescued row of this one
(``chunk_rows.py``).
"""

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from offloader.convert.stored_entries import Source, stored_entries
from reader.clients import Clients
from reader.decode import Chunk, ChunkSequence, Decryption, Transactions, add_chunk, chunk_headers
from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers
from reader.sources import Lookback

ChunkSequences = Mapping[bytes, ChunkSequence]
"""By uuid: the chunks of a message so far."""


def incomplete_at(
    clients: Clients, partition: Partition, watermark: int, lookback: Position, source: Source
) -> ChunkSequences:
    """The messages that are incomplete at the end of ledger ``watermark``.

    They are read from ``lookback`` on. Raises as ``Lookback.incomplete`` does.
    """
    return Lookback(
        stored_entries(clients, partition, source),
        partition,
        end=Position(watermark + 1, 0),
        first=lookback,
        decryption=stored_decryption(clients, partition),
    ).incomplete()


def stored_decryption(clients: Clients, partition: Partition) -> Decryption | None:
    """What opens entries for the table; None where it holds ciphertext."""
    plaintext = clients.settings.encryption.store_plaintext
    return clients.decryption(partition.topic) if plaintext else None


def begins_at(chunks: ChunkSequence) -> Position:
    """Where a message begins."""
    return _position(chunks[0])


def lookback_of(sequences: ChunkSequences) -> Position | None:
    """Where the first of the messages begins."""
    return min(map(begins_at, sequences.values()), default=None)


@dataclass(frozen=True, slots=True)
class LogEnd:
    """What the rest of the log makes of a message.

    ``chunks``: how far it has come at the log's end, if it was not completed before; of a message
    that was begun anew, since then. ``undecided``: a chunk there that an open transaction hides,
    or, as no broker shows those, the first of the entries behind it.
    """

    chunks: ChunkSequence
    complete: bool = False
    undecided: Position | None = None

    @property
    def kept(self) -> bool:
        """Whether the log completes it, or may do so without growing."""
        return self.complete or self.undecided is not None


def look_ahead(
    clients: Clients, listing: PartitionLedgers, upto: int, begun: ChunkSequences, source: Source
) -> dict[bytes, LogEnd]:
    """What comes of messages that are incomplete at the end of ledger ``upto``, by the whole log.

    ``begun``: in their order. Headers are read up to the last confirmed entry, or until the first
    message is found to be kept: of the others nothing is said then. Raises as ``EntrySource.read``.
    """
    ends = {uuid: LogEnd(chunks) for uuid, chunks in begun.items()}
    oldest = next(iter(begun))
    with closing(_chunks_after(clients, listing, upto, source)) as following:
        for uuid, chunk in following:
            end = ends.get(uuid)
            if end is None or end.kept:
                continue
            if _position(chunk) > listing.max_read:
                ends[uuid] = replace(end, undecided=_position(chunk))
            else:
                chunks, outcome, _ = add_chunk(end.chunks, chunk)
                ends[uuid] = LogEnd(chunks, complete=outcome == "complete")
            if ends[oldest].kept:
                break
    if source == "broker" and listing.max_read < listing.last_confirmed:
        behind = Position(listing.max_read.ledger, listing.max_read.entry + 1)
        ends = {u: end if end.kept else replace(end, undecided=behind) for u, end in ends.items()}
    return ends


def _chunks_after(
    clients: Clients, listing: PartitionLedgers, upto: int, source: Source
) -> Generator[tuple[bytes, Chunk]]:
    """(uuid, chunk) of all chunks behind ledger ``upto``; from the bookies, those of open
    transactions included.
    """
    partition = listing.partition
    known = {one.ledger_id: one.stored for one in listing.ledgers if one.stored is not None}
    entries = stored_entries(clients, partition, source, known)
    decryption = stored_decryption(clients, partition)
    decided, open_ones = Transactions(entries.aborted), Transactions(lambda ledger_id, open_now: ())
    for ledger in listing.ledgers:
        if ledger.ledger_id <= upto:
            continue
        last, readable = listing.last_entry(ledger), listing.max_read
        visible = last
        if Position(ledger.ledger_id, last) > readable:
            visible = readable.entry if readable.ledger == ledger.ledger_id else -1
        for first, end, transactions in (0, visible, decided), (visible + 1, last, open_ones):
            if first > end or (transactions is open_ones and source == "broker"):
                continue
            with closing(entries.read(ledger.ledger_id, first, end)) as blocks:
                for block in blocks:
                    yield from chunk_headers(block, transactions, decryption)


def _position(chunk: Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
