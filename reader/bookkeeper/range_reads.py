"""Entries by the range: v2 batch reads, a few of them in flight, each answer one block.

Only where every bookie of the ensemble holds every entry. Where anything fails (an entry that is
missing or fails its digest, an error, a bookie that fails or does not support batch reads), the
range is read by ``EntryReads``, and the ranges after it go on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reader.bookkeeper.connection import RangeAnswer, RangeConnection, timed_out
from reader.bookkeeper.digest import HEADER, code_length, verify
from reader.bookkeeper.entry_reads import EntryReads
from reader.bookkeeper.pool import BookiePool
from reader.bookkeeper.v2 import (
    EBADREQ,
    EBADVERSION,
    MOST_BYTES,
    encode_batch_read,
    split_entries,
)
from reader.bookkeeper.v3 import EOK
from reader.errors import CorruptError, PulsarLakeError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["RangeReads"]

_IN_FLIGHT = 4
_MOST_ENTRIES = 16_376


@dataclass(slots=True)
class _Range:
    """Entries first..last: requested from ``bookie``, or ``block``; neither: for entry reads.

    ``block`` may end before ``last``. The answer comes on the ``connection`` of the request.
    """

    first: int
    last: int
    request: int = 0
    bookie: str | None = None
    connection: RangeConnection | None = None
    block: EntryBlock | None = None


class RangeReads:
    """Entries first..last (inclusive) of a ledger that is not striped."""

    def __init__(
        self,
        pool: BookiePool,
        ledger: LedgerMetadata,
        first: int,
        last: int,
        block_bytes: int,
    ) -> None:
        self._pool = pool
        self._ledger = ledger
        self._next_asked = first
        self._last = last
        self._block_bytes = min(block_bytes, MOST_BYTES)
        self._ranges: deque[_Range] = deque()  # ascending, without gap
        self._mean = 0  # bytes of an entry, in the last answer
        self._verified = False

    def blocks(self) -> Iterator[EntryBlock]:
        """As ``BookKeeperClient.read``."""
        while self._ranges or self._next_asked <= self._last:
            self._ask()
            head = self._ranges[0]
            if head.block is not None:
                self._ranges.popleft()
                self._ask_for_rest(head, int(head.block.entry_ids[-1]) + 1)
                yield head.block
            elif head.bookie is not None and head.connection is not None:
                self._wait(head, head.bookie, head.connection)
            else:
                self._ranges.popleft()
                yield from self._by_entries(head)

    def abandon(self) -> None:
        """Close connections with outstanding answers, which the next run would read."""
        for one in self._ranges:
            if one.bookie is not None:
                self._pool.hang_up(one.bookie)
        self._ranges.clear()

    def _by_entries(self, one: _Range) -> Iterator[EntryBlock]:
        run = EntryReads(
            self._pool, self._ledger, one.first, one.last, self._block_bytes, self._verified
        )
        try:
            for block in run.blocks():
                self._verified = True
                yield block
        finally:
            run.abandon()

    # -- requests ------------------------------------------------------------------------------

    def _ask(self) -> None:
        # Before the first answer, how many entries make a block is not known.
        most = _IN_FLIGHT if self._mean else 1
        while len(self._ranges) < most and self._next_asked <= self._last:
            count = min(_MOST_ENTRIES, max(1, self._block_bytes // max(self._mean, 1)))
            first = self._next_asked
            # A range ends with its ensemble.
            ends = [at - 1 for at, _ in self._ledger.ensembles if at > first]
            asked = _Range(first, min(first + count - 1, self._last, *ends))
            self._ranges.append(asked)
            self._send(asked)
            self._next_asked = asked.last + 1

    def _ask_for_rest(self, given: _Range, first: int) -> None:
        """Of a range whose answer was full, or ended before a missing entry."""
        if first > given.last:
            return
        if not self._ranges:
            self._next_asked = first
            return
        rest = _Range(first, given.last)
        self._ranges.appendleft(rest)
        self._send(rest)

    def _send(self, one: _Range) -> None:
        while True:
            # All of them hold it: the one with the fewest outstanding answers.
            replicas = sorted(self._ledger.replicas(one.first), key=self._owes)
            bookie = self._pool.best_for_ranges(replicas)
            if bookie is None:
                return
            one.request = self._pool.next_request()
            count = one.last - one.first + 1
            frame = encode_batch_read(
                one.request, self._ledger.ledger_id, one.first, count, self._block_bytes
            )
            try:
                one.connection = self._pool.connect_for_ranges(bookie)
                one.connection.send(frame)
            except UnavailableError as error:
                self._failed(bookie, error)
                continue
            one.bookie = bookie
            return

    def _owes(self, bookie: str) -> int:
        return sum(one.bookie == bookie for one in self._ranges)

    def _failed(self, bookie: str, error: PulsarLakeError) -> None:
        """The bookie failed: its ranges are for entry reads, or are requested from it again."""
        once_more = self._pool.drop(bookie, error.message, silent=timed_out(error))
        for one in self._ranges:
            if one.bookie == bookie:
                one.bookie = None
                if once_more:
                    self._send(one)

    # -- answers -------------------------------------------------------------------------------

    def _wait(self, head: _Range, bookie: str, connection: RangeConnection) -> None:
        """Take one answer of the bookie that the first range was requested from."""
        if not self._pool.is_open(bookie, connection):
            # Entry reads have dropped the bookie meanwhile, and this connection with it.
            head.bookie = None
            return
        try:
            answer = connection.receive()
        except (UnavailableError, CorruptError) as error:
            if connection.ended and not connection.answered:
                # As an older bookie does. One that is down or silent is no older one.
                self._pool.avoid_range_reads(bookie)
            self._failed(bookie, error)
            return
        header = answer.header
        for one in self._ranges:
            if one.request == header.request and one.bookie == bookie:
                one.bookie = None
                if header.status == EOK:
                    one.block = self._block(one, answer)
                elif header.status in (EBADREQ, EBADVERSION):
                    self._pool.avoid_range_reads(bookie)

    def _block(self, one: _Range, answer: RangeAnswer) -> EntryBlock | None:
        """The entries of the answer; None if one of them fails its digest."""
        ledger, arena = self._ledger, answer.content
        try:
            offsets, lengths = split_entries(arena, one.last - one.first + 1)
        except CorruptError:
            return None
        if not len(offsets):
            return None
        entries = np.arange(one.first, one.first + len(offsets), dtype=np.int64)
        password = self._pool.password_of(ledger)
        if not verify(
            ledger.digest_type, password, arena, offsets, lengths, ledger.ledger_id, entries
        ).all():
            return None
        self._verified = True
        self._mean = max(1, len(arena) // len(entries))
        front = HEADER + code_length(ledger.digest_type)
        return EntryBlock(ledger.ledger_id, entries, offsets + front, lengths - front, arena)
