"""Chunked messages: their chunks joined, at the entry of the last one.

A producer cuts a message (compressed already) into entries with one uuid, chunk 0 to n - 1 in this
order; those of several producers interleave, and they may lie in several ledgers (PIP-37).
What a sequence of chunks means depends on the log alone, so that every reader of it agrees:

- chunk 0 begins the message, anew if it was begun before: the producer has sent it again;
- the next expected chunk continues it, the last one completes it: that entry is its row, and the
  metadata is that entry's;
- a chunk that is there already is a resend: no row;
- any other chunk is *stray*: it can never become a message. Its entry is a rescued row, with the
  payloads of the chunks so far and its own, joined;
- a message that is incomplete where the log ends is no row yet.

Memory is bounded (``ChunkMemory``): where more messages are incomplete than any working producers
leave so, the next chunk that would leave one is stray. Of messages that ended long before, a chunk
that is sent again is stray, too. Beyond these bounds alone, two readers may differ: each counts
from where it begins.

A chunk that stays encrypted counts in the same way, but is a row of its own; a message with such a
chunk is never a message's row. If it ends with one, and others were opened, all are a stray chunk's
row, as the opened ones would be in none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from reader.decode import chunk_sequence, tables
from reader.decode.aborted_transactions import Transactions
from reader.decode.encryption.decryption import Decryption
from reader.decode.encryption.headers import read_headers
from reader.decode.partition_context import PartitionContext
from reader.kernels.array_types import Bytes, Int64s
from reader.model import EntryBlock

KEPT_BYTES = 32 << 20
_KEPT_OVERHEAD = 300  # bytes of Python's objects for a payload

_OFFSETS = (
    tables.E_PAYLOAD,
    tables.E_PRODUCER,
    tables.E_REPLICATED,
    tables.E_KEY,
    tables.E_ORDERING,
    tables.E_METADATA,
    tables.E_UUID,
)


class ChunkJoiner:
    """Follows the chunked messages of consecutive entries.

    ``rescue_incomplete``: a message that the given entries leave incomplete will stay so, and
    becomes a rescued row.
    """

    def __init__(
        self,
        context: PartitionContext,
        *,
        rescue_incomplete: bool = False,
        decryption: Decryption | None = None,
    ) -> None:
        self._context = context
        self._decryption = decryption
        self._rescue_incomplete = rescue_incomplete
        self._sequences = chunk_sequence.ChunkMemory()
        self._kept = _KeptPayloads()
        self._changed: dict[bytes, chunk_sequence.ChunkSequence] = {}

    @property
    def incomplete(self) -> Mapping[bytes, chunk_sequence.ChunkSequence]:
        """The messages that the given entries leave incomplete, by uuid."""
        return self._sequences.incomplete

    def take_changes(self) -> Mapping[bytes, chunk_sequence.ChunkSequence]:
        """Those that have changed since this was last asked for."""
        changed, self._changed = self._changed, {}
        return changed

    def join(self, block: EntryBlock, arena: Bytes, entries: Int64s) -> tuple[EntryBlock, Bytes]:
        """Decide each CHUNK of ``entries``.

        A last chunk's entry is replaced by one with the whole payload, at the end of the arena.
        """
        joins: list[tuple[int, chunk_sequence.ChunkSequence]] = []
        for i in _chunk_entries(entries):
            uuid, chunk = _chunk(block, arena, entries, i)
            before = self._sequences.get(uuid)
            if before is None:
                before = (
                    self._context.sequence_before(uuid)
                    if chunk.chunk_id
                    else chunk_sequence.NO_CHUNKS
                )
            has_room = self._sequences.has_room(chunk)
            sequence, outcome, chunks = chunk_sequence.add_chunk(before, chunk, has_room=has_room)
            self._sequences.put(uuid, sequence)
            self._changed[uuid] = sequence
            if outcome == "incomplete":
                self._kept.put(chunk, _payload(arena, entries, i))
            ends = outcome in ("complete", "stray")
            if chunk.encrypted and not (ends and chunk_sequence.opened_part(chunks)):
                continue
            entries[tables.E_KIND, i] = tables.HIDDEN
            if outcome == "incomplete" and self._rescue_incomplete:
                outcome = "stray"
            if outcome == "complete" and any(one.encrypted for one in chunks):
                outcome = "stray"  # what it would begin with is ciphertext
            if outcome not in ("complete", "stray"):
                continue
            entries[tables.E_KIND, i] = tables.MESSAGES if outcome == "complete" else tables.WHOLE
            if outcome == "stray":
                entries[tables.E_REASON, i] = (
                    tables.NEVER_COMPLETED if self._rescue_incomplete else tables.STRAY
                )
            entries[tables.E_BEGIN_LEDGER, i], entries[tables.E_BEGIN_ENTRY, i] = (
                chunks[0].ledger,
                chunks[0].entry,
            )
            joins.append((i, chunks))
        if not joins:
            return block, arena
        return self._joined(block, arena, entries, joins)

    def _joined(
        self,
        block: EntryBlock,
        arena: Bytes,
        entries: Int64s,
        joins: Sequence[tuple[int, chunk_sequence.ChunkSequence]],
    ) -> tuple[EntryBlock, Bytes]:
        """Put the chunks of each (entry, its chunks) together at the end of the arena."""
        payloads = self._payloads([one for _, chunks in joins for one in chunks], block)
        wholes = []
        for i, chunks in joins:
            whole = [arena[int(block.offsets[i]) : int(entries[tables.E_PAYLOAD, i])]]
            for one in chunks:
                found = payloads.get((one.ledger, one.entry))
                if found is None:
                    at = int(np.searchsorted(block.entry_ids, one.entry))
                    found = _payload(arena, entries, at)
                whole.append(found)
            wholes.append(whole)
        offsets, lengths = block.offsets.copy(), block.lengths.copy()
        end = len(arena)
        for (i, _), whole in zip(joins, wholes, strict=True):
            size = sum(map(len, whole))
            entries[list(_OFFSETS), i] += end - int(offsets[i])
            entries[tables.E_PAYLOAD_LENGTH, i] = size - len(whole[0])
            offsets[i], lengths[i] = end, size
            end += size
        joined = np.concatenate([arena, *(piece for whole in wholes for piece in whole)])
        return replace(block, offsets=offsets, lengths=lengths, arena=joined), joined

    def _payloads(
        self, chunks: Sequence[chunk_sequence.Chunk], block: EntryBlock
    ) -> dict[tuple[int, int], Bytes]:
        """The payloads of those chunks that are not in ``block``, by (ledger, entry)."""
        own = set(block.entry_ids.tolist())
        found = {}
        missing: dict[int, set[int]] = {}
        for one in chunks:
            if one.ledger == block.ledger_id and one.entry in own:
                continue
            kept = self._kept.take(one)
            if kept is not None:
                found[one.ledger, one.entry] = kept
            else:
                missing.setdefault(one.ledger, set()).add(one.entry)
        for ledger, wanted in missing.items():
            for raw in self._context.pick(ledger, sorted(wanted)):
                _, other, entries = read_headers(raw, self._decryption)
                for i, entry in enumerate(other.entry_ids.tolist()):
                    found[ledger, entry] = _payload(other.arena, entries, i)
        return found


class _KeptPayloads:
    """Payloads of the last chunks that were passed: most messages are complete soon after.

    What does not fit is read again when it is needed.
    """

    def __init__(self) -> None:
        self._payloads: dict[tuple[int, int], Bytes] = {}
        self._size = 0

    def put(self, chunk: chunk_sequence.Chunk, payload: Bytes) -> None:
        self._payloads[chunk.ledger, chunk.entry] = payload.copy()
        self._size += len(payload) + _KEPT_OVERHEAD
        while self._size > KEPT_BYTES:
            oldest = self._payloads.pop(next(iter(self._payloads)))
            self._size -= len(oldest) + _KEPT_OVERHEAD

    def take(self, chunk: chunk_sequence.Chunk) -> Bytes | None:
        found = self._payloads.pop((chunk.ledger, chunk.entry), None)
        if found is not None:
            self._size -= len(found) + _KEPT_OVERHEAD
        return found


def _payload(arena: Bytes, entries: Int64s, i: int) -> Bytes:
    at = int(entries[tables.E_PAYLOAD, i])
    return arena[at : at + int(entries[tables.E_PAYLOAD_LENGTH, i])]


def chunk_headers(
    block: EntryBlock, transactions: Transactions, decryption: Decryption | None = None
) -> list[tuple[bytes, chunk_sequence.Chunk]]:
    """(uuid, chunk) of every chunk in the block, in log order, except in aborted transactions."""
    seen, block, entries = read_headers(block, decryption)
    transactions.hide_aborted(seen, block.ledger_id, entries)
    return [_chunk(block, block.arena, entries, i) for i in _chunk_entries(entries)]


def _chunk_entries(entries: Int64s) -> list[int]:
    encrypted = (entries[tables.E_KIND] == tables.WHOLE) & (
        entries[tables.E_REASON] == tables.ENCRYPTED
    )
    encrypted &= entries[tables.E_CHUNKS] > 1
    return np.flatnonzero((entries[tables.E_KIND] == tables.CHUNK) | encrypted).tolist()


def _chunk(
    block: EntryBlock, arena: Bytes, entries: Int64s, i: int
) -> tuple[bytes, chunk_sequence.Chunk]:
    at = int(entries[tables.E_UUID, i])
    uuid = arena[at : at + int(entries[tables.E_UUID_LENGTH, i])].tobytes()
    return uuid, chunk_sequence.Chunk(
        ledger=block.ledger_id,
        entry=int(block.entry_ids[i]),
        chunk_id=int(entries[tables.E_CHUNK, i]),
        num_chunks=int(entries[tables.E_CHUNKS, i]),
        size=int(entries[tables.E_PAYLOAD_LENGTH, i]),
        publish_time=int(entries[tables.E_PUBLISH, i]),
        encrypted=int(entries[tables.E_KIND, i]) == tables.WHOLE,
    )
