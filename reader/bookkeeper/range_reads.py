"""Entries by the range: a piece is one v2 batch read, its answer is the block.

Only where every bookie of the ensemble holds every entry. Where anything fails (an entry that is
missing or fails its digest, an error, a bookie that fails or does not support batch reads), the
piece is handed to ``EntryReads``. One whose answer is late is requested from another bookie too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reader.bookkeeper.connection import RangeAnswer, RangeConnection, timed_out
from reader.bookkeeper.piece import Failed, Piece, block_of
from reader.bookkeeper.pool import BookiePool
from reader.bookkeeper.v2 import (
    EBADREQ,
    EBADVERSION,
    MOST_BYTES,
    encode_batch_read,
    split_entries,
)
from reader.bookkeeper.v3 import EOK
from reader.errors import ConfigurationError, CorruptError, UnavailableError

__all__ = ["RangeReads"]

_LEAST_BYTES = 1 << 16


class RangeReads:
    """All range reads of a run.

    ``failed`` is called with a bookie and why it failed, ``by_entries`` with a piece that is to be
    read entry by entry. ``verified``: ledgers of which an entry has passed its digest.
    """

    def __init__(
        self,
        pool: BookiePool,
        clock: Callable[[], float],
        block_bytes: int,
        verified: set[int],
        failed: Failed,
        by_entries: Callable[[Piece], None],
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._block_bytes = min(block_bytes, MOST_BYTES)
        self._verified = verified
        self._failed = failed
        self._by_entries = by_entries
        self._asked: dict[int, tuple[str, Piece]] = {}  # by request
        self._turn = 0
        self._unsent: dict[str, list[bytes]] = {}

    # -- requests ------------------------------------------------------------------------------

    def start(self, piece: Piece) -> None:
        """Request the piece from the bookie that owes least."""
        bookie = self._pool.best_for_ranges(self._by_load(piece))
        self._turn += 1
        if bookie is None:
            self._by_entries(piece)
        else:
            self._request(piece, bookie)

    def _by_load(self, piece: Piece) -> list[str]:
        """The ensemble; of those that owe the same, each is the first in its turn."""
        turn = self._turn % len(piece.ensemble)
        return sorted(piece.ensemble[turn:] + piece.ensemble[:turn], key=self._load)

    def _load(self, bookie: str) -> int:
        connection = self._pool.range_connections.get(bookie)
        owed = connection.owed.count if connection else 0
        return owed + len(self._unsent.get(bookie, ()))

    def _request(self, piece: Piece, bookie: str) -> None:
        request = self._pool.next_request()
        self._asked[request] = (bookie, piece)
        size = min(self._block_bytes, max(_LEAST_BYTES, 2 * piece.estimate))
        count = piece.last - piece.first + 1
        self._unsent.setdefault(bookie, []).append(
            encode_batch_read(request, piece.ledger.ledger_id, piece.first, count, size)
        )

    def ask(self) -> bool:
        """Send the requests; whether there were any."""
        if not self._unsent:
            return False
        while self._unsent:
            bookie, frames = self._unsent.popitem()
            try:
                connection = self._pool.connect_for_ranges(bookie)
                connection.owed.asked(len(frames), self._clock())
                connection.send(b"".join(frames))
            except (UnavailableError, CorruptError) as error:
                self._failed(bookie, error, silent=timed_out(error))
            except ConfigurationError as error:
                for piece in self._forget(bookie):
                    piece.error = error
        return True

    # -- answers -------------------------------------------------------------------------------

    def receive(self, bookie: str, connection: RangeConnection) -> bool:
        """Take the answers that have arrived; whether any was asked for.

        Raises as ``RangeConnection.receive``.
        """
        came = False
        try:
            answers = connection.receive()
        except (UnavailableError, CorruptError):
            if connection.ended and not connection.answered:
                # As an older bookie does. One that is down or silent is no older one.
                self._pool.avoid_range_reads(bookie)
            raise
        for answer in answers:
            where, piece = self._asked.get(answer.header.request, ("", None))
            if piece is None or where != bookie:
                continue  # no such request
            del self._asked[answer.header.request]
            now = self._clock()
            self._pool.took(bookie, connection.owed.oldest(now))
            connection.owed.answered(1, now)
            came = True
            if not piece.is_done:
                self._take(bookie, piece, answer)
        return came

    def _take(self, bookie: str, piece: Piece, answer: RangeAnswer) -> None:
        if answer.header.status in (EBADREQ, EBADVERSION):
            self._pool.avoid_range_reads(bookie)
        if answer.header.status == EOK and self._is_good(piece, answer):
            self._verified.add(piece.ledger.ledger_id)
        elif not self._is_asked(piece):
            self._by_entries(piece)

    def _is_good(self, piece: Piece, answer: RangeAnswer) -> bool:
        """Make the block, if all of its entries are good."""
        arena, ledger = answer.content, piece.ledger
        try:
            offsets, lengths = split_entries(arena, piece.last - piece.first + 1)
        except CorruptError:
            return False
        if not len(offsets):
            return False
        found = block_of(piece, self._pool.password_of(ledger), arena, offsets, lengths, {})
        if isinstance(found, list):
            return False
        piece.block = found
        return True

    def _is_asked(self, piece: Piece) -> bool:
        """Whether another answer is outstanding for it."""
        return any(one is piece for _, one in self._asked.values())

    # -- bookies that fail or are late ---------------------------------------------------------

    def lost(self, bookie: str, *, once_more: bool) -> None:
        """The connection is closed: ask entry by entry, or the bookie again."""
        for piece in self._forget(bookie):
            if once_more:
                self._request(piece, bookie)
            elif not self._is_asked(piece):
                self._by_entries(piece)

    def _forget(self, bookie: str) -> Iterable[Piece]:
        """The pieces that a bookie was asked for, and that are not done."""
        self._unsent.pop(bookie, None)
        requests = [one for one, (where, _) in self._asked.items() if where == bookie]
        pieces = [self._asked.pop(request)[1] for request in requests]
        return [piece for piece in pieces if not piece.is_done]

    def hurry(self, piece: Piece, bookie: str) -> None:
        """The bookie is late: if a piece waits for it alone, ask another for the piece too."""
        asked = [where for where, one in self._asked.values() if one is piece]
        if asked != [bookie]:
            return
        other = self._pool.best_for_ranges(one for one in self._by_load(piece) if one != bookie)
        if other is not None and self._pool.is_well(other):
            self._request(piece, other)
