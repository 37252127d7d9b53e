"""Chunked messages: their chunks put together again, at the entry of the last one.

A producer cuts a message (compressed already) into entries of one uuid, chunk 0 to n - 1 in this
order; those of several producers interleave, and they may lie in several ledgers (PIP-37).
What a sequence of them means depends on the log alone, so that every reader of it agrees:

- chunk 0 begins the message, anew if it was begun before: the producer has sent it again;
- the next expected chunk continues it, the last one completes it: that entry is its row, and the
  metadata is that entry's;
- a chunk that is there already is a resend: no row;
- any other chunk is *stray*: it can never become a message. Its entry is a rescued row, with the
  payloads of the chunks so far and its own, joined;
- what is incomplete where the log ends is no row yet.

A chunk that is encrypted counts in the same way, but is a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from reader.decode.context import Around, Part
from reader.decode.encryption.decryption import Decryption
from reader.decode.encryption.headers import read_headers
from reader.decode.tables import (
    CHUNK,
    E_CHUNK,
    E_CHUNKS,
    E_KEY,
    E_KIND,
    E_METADATA,
    E_ORDERING,
    E_PAYLOAD,
    E_PAYLOAD_LENGTH,
    E_PRODUCER,
    E_PUBLISH,
    E_REASON,
    E_REPLICATED,
    E_UUID,
    E_UUID_LENGTH,
    ENCRYPTED,
    GIVEN_UP,
    HIDDEN,
    MAX_INFLATED,
    MESSAGES,
    STRAY,
    WHOLE,
)
from reader.decode.transactions import Transactions
from reader.model import EntryBlock

__all__ = ["Chunks", "State", "chunk_headers", "is_pending", "next_state"]

Fate = Literal["pending", "complete", "duplicate", "stray"]
State = tuple[Part, ...]
"""The chunks 0 to k of a message so far; all of them, once complete; () when it is broken."""

_OFFSETS = (E_PAYLOAD, E_PRODUCER, E_REPLICATED, E_KEY, E_ORDERING, E_METADATA, E_UUID)


def next_state(state: State, part: Part) -> tuple[State, Fate, State]:
    """(state after ``part``, what ``part`` is, the chunks that its row consists of)."""
    if part.chunk == 0:
        state = ()
    elif part.chunk < len(state):
        return state, "duplicate", ()
    elif not is_pending(state):
        state = ()
    parts = (*state, part)
    fits = part.chunk == len(state) and part.chunks == parts[0].chunks
    if not fits or sum(one.size for one in parts) > MAX_INFLATED:
        return (), "stray", parts
    return parts, "complete" if len(parts) == part.chunks else "pending", parts


def is_pending(state: State) -> bool:
    """Whether a message has begun and is not complete yet."""
    return bool(state) and len(state) < state[0].chunks


class Chunks:
    """Follows the chunked messages of a run of entries.

    ``give_up``: what the given entries leave incomplete will stay so, and is rescued.
    """

    def __init__(
        self, around: Around, *, give_up: bool = False, decryption: Decryption | None = None
    ) -> None:
        self._around = around
        self._decryption = decryption
        self._give_up = give_up
        self._states: dict[bytes, State] = {}

    @property
    def states(self) -> Mapping[bytes, State]:
        """The state of every message of which a chunk was given, by uuid."""
        return self._states

    def join(
        self, block: EntryBlock, arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64]
    ) -> tuple[EntryBlock, npt.NDArray[np.uint8]]:
        """Decide each CHUNK of ``entries``.

        A last chunk's entry becomes one with the whole payload, behind the others in the arena.
        """
        offsets, lengths = block.offsets.copy(), block.lengths.copy()
        tails: list[npt.NDArray[np.uint8]] = []
        end = len(arena)
        for i in _chunks(entries):
            uuid, part = _part(block, arena, entries, i)
            if uuid not in self._states and part.chunk:
                state: State = ()
                for one in self._around.parts_before(uuid):
                    state = next_state(state, one)[0]
                self._states[uuid] = state
            state, fate, parts = next_state(self._states.get(uuid, ()), part)
            self._states[uuid] = state
            if part.sealed:
                continue
            entries[E_KIND, i] = HIDDEN
            if fate == "pending" and self._give_up:
                fate = "stray"
            if fate not in ("complete", "stray"):
                continue
            start, header = int(offsets[i]), int(entries[E_PAYLOAD, i])
            whole = [arena[start:header]]
            whole += [self._payload(one, block, arena, entries) for one in parts]
            tails += whole
            size = sum(len(piece) for piece in whole)
            entries[list(_OFFSETS), i] += end - start
            entries[E_PAYLOAD_LENGTH, i] = size - (header - start)
            entries[E_KIND, i] = MESSAGES if fate == "complete" else WHOLE
            if fate == "stray":
                entries[E_REASON, i] = GIVEN_UP if self._give_up else STRAY
            offsets[i], lengths[i] = end, size
            end += size
        if not tails:
            return block, arena
        joined = np.concatenate([arena, *tails])
        return replace(block, offsets=offsets, lengths=lengths, arena=joined), joined

    def _payload(
        self,
        part: Part,
        block: EntryBlock,
        arena: npt.NDArray[np.uint8],
        entries: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint8]:
        i = int(np.searchsorted(block.entry_ids, part.entry))
        if part.ledger != block.ledger_id or i == len(block) or block.entry_ids[i] != part.entry:
            raw = self._around.entry(part.ledger, part.entry)
            other = EntryBlock.of(part.ledger, {part.entry: raw})
            _, other, entries = read_headers(other, self._decryption)
            arena, i = other.arena, 0
        at = int(entries[E_PAYLOAD, i])
        return arena[at : at + part.size]


def chunk_headers(
    block: EntryBlock, transactions: Transactions, decryption: Decryption | None = None
) -> list[tuple[bytes, Part]]:
    """(uuid, part) of every chunk in the block, in log order; those of aborted ones left out."""
    seen, block, entries = read_headers(block, decryption)
    transactions.hide_aborted(seen, entries)
    return [_part(block, block.arena, entries, i) for i in _chunks(entries)]


def _chunks(entries: npt.NDArray[np.int64]) -> list[int]:
    sealed = (entries[E_KIND] == WHOLE) & (entries[E_REASON] == ENCRYPTED)
    sealed &= entries[E_CHUNKS] > 1
    return np.flatnonzero((entries[E_KIND] == CHUNK) | sealed).tolist()


def _part(
    block: EntryBlock, arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64], i: int
) -> tuple[bytes, Part]:
    at = int(entries[E_UUID, i])
    uuid = arena[at : at + int(entries[E_UUID_LENGTH, i])].tobytes()
    return uuid, Part(
        ledger=block.ledger_id,
        entry=int(block.entry_ids[i]),
        chunk=int(entries[E_CHUNK, i]),
        chunks=int(entries[E_CHUNKS, i]),
        size=int(entries[E_PAYLOAD_LENGTH, i]),
        published=int(entries[E_PUBLISH, i]),
        sealed=int(entries[E_KIND, i]) == WHOLE,
    )
