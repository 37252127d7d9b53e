"""Entries of ledgers from their bookies: no recovery, no fencing, next replica on failure."""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.connection import EntryConnection, RangeConnection, timed_out
from reader.bookkeeper.digest import code_length
from reader.bookkeeper.entry_reads import EntryReads
from reader.bookkeeper.piece import MOST_ENTRIES, Piece
from reader.bookkeeper.pool import BookiePool, SilentBookies
from reader.bookkeeper.range_reads import RangeReads
from reader.closing import Closing
from reader.errors import CorruptError, PulsarLakeError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["BookKeeperClient"]

_BLOCKS_IN_FLIGHT = 4
_PIECES_IN_FLIGHT = 128
_FIRST_ENTRIES = 64  # of a striped ledger, before the size of its entries is known
_USUAL_BYTES = 1024  # of an entry, before any has come
_LOOK_SECONDS = 0.05  # between two looks for what is late, once something is

Range = tuple[LedgerMetadata, int, int]


class BookKeeperClient(Closing):
    """Reads ledgers; for one thread; a context manager.

    ``addresses`` maps bookie ids that are not ``host:port`` themselves. ``timeout``: seconds that a
    bookie may stay silent while an answer is outstanding. ``password``: of ledgers whose metadata
    has none. ``access``: TLS and identity. ``silent``: shared by the clients of a process.
    ``clock``: seconds. ``pool``: its connections.
    """

    def __init__(
        self,
        *,
        addresses: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        password: bytes = b"",
        access: BookieAccess | None = None,
        silent: SilentBookies | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool = BookiePool(
            addresses or {}, timeout, password, access, silent=silent, clock=clock
        )

    def close(self) -> None:
        """Close all connections."""
        self.pool.close()

    def resume(self, access: BookieAccess | None = None) -> None:
        """To be called before it is used again after a while: see ``BookiePool.resume``."""
        self.pool.resume(access)

    def read(
        self, ledger: LedgerMetadata, first: int, last: int, *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Entries first..last (inclusive) of one ledger: see ``read_ranges``."""
        return self.read_ranges([(ledger, first, last)], block_bytes=block_bytes)

    def read_ranges(
        self, ranges: Iterable[Range], *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Ranges (ledger, first entry, last entry) in their order, in blocks of about a size.

        A block has entries of one range, ascending and without a gap; one that is empty has none.
        Several are asked for at once, some ``ranges`` are taken ahead of that. An error comes after
        all blocks of the ranges before it, and ends the generator.

        Raises NotFoundError where every replica answers that there is no such ledger,
        UnavailableError where an entry's replicas do not answer, CorruptError where all of them
        answer that they do not have it, UnsupportedError for an unknown type of digest. An entry of
        which every copy fails its digest is delivered and named in ``EntryBlock.damaged``;
        ConfigurationError where that is so of the whole first block, of a ledger whose digest takes
        a password.
        """
        run = _Run(self.pool, ranges, block_bytes)
        try:
            yield from run.blocks()
        finally:
            self.pool.hang_up_owing()


class _Run:
    """Ranges cut into pieces, which are asked for ahead and given in their order."""

    def __init__(self, pool: BookiePool, ranges: Iterable[Range], block_bytes: int) -> None:
        self._pool = pool
        self._block_bytes = block_bytes
        self._ranges = iter(ranges)
        self._rest: Range | None = None  # of the range that is being cut
        self._probed: int | None = None  # a ledger of whose entries the first were asked for
        self._error: Exception | None = None  # of what follows the pieces
        self._pieces: deque[Piece] = deque()  # in their order
        self._in_flight = 0  # bytes, by the estimates
        self._mean: dict[int, int] = {}  # bytes of an entry of the last block, by ledger
        self._usual = _USUAL_BYTES
        self._away = 0.0  # seconds in which nobody was there to receive
        verified: set[int] = set()
        self._by_entry = EntryReads(pool, self._clock, block_bytes, verified, self._failed)
        self._by_range = RangeReads(
            pool, self._clock, block_bytes, verified, self._failed, self._by_entry.start
        )

    def blocks(self) -> Iterator[EntryBlock]:
        """As ``BookKeeperClient.read_ranges``."""
        while True:
            self._ask()
            if not self._pieces:
                if self._error is not None:
                    raise self._error
                return
            head = self._pieces[0]
            if head.error is not None:
                raise head.error
            if head.block is None:
                self._wait(head)
            else:
                self._step_over(head, head.block)
                # What follows is on its way while this one is used.
                self._ask()
                begun = self._pool.clock()
                yield head.block
                self._away += self._pool.clock() - begun

    def _clock(self) -> float:
        """For how long answers are waited for."""
        return self._pool.clock() - self._away

    def _step_over(self, head: Piece, block: EntryBlock) -> None:
        self._pieces.popleft()
        self._in_flight -= head.estimate
        self._usual = max(1, int(block.lengths.sum()) // len(block))
        self._mean[block.ledger_id] = self._usual
        after = int(block.entry_ids[-1]) + 1
        if after > head.last:
            return
        # The answer was full, or ended before a missing entry.
        if self._pieces:
            self._pieces.appendleft(self._start(head.ledger, after, head.last))
        else:
            self._rest = (head.ledger, after, self._rest[2] if self._rest else head.last)

    # -- requests ------------------------------------------------------------------------------

    def _ask(self) -> None:
        if 4 * len(self._pieces) <= 3 * _PIECES_IN_FLIGHT:  # few large writes
            self._fill()
        while self._by_range.ask() or self._by_entry.ask():
            pass  # where a connection fails, others are asked

    def _fill(self) -> None:
        most = _BLOCKS_IN_FLIGHT * self._block_bytes
        while len(self._pieces) < _PIECES_IN_FLIGHT and self._in_flight < most:
            if not (self._rest or self._next_range()) or not self._cut():
                return

    def _next_range(self) -> bool:
        """Take a range. What is wrong with it, or with the iterable, is told in its turn."""
        try:
            for ledger, first, last in self._ranges:
                code_length(ledger.digest_type)
                if first <= last:
                    self._rest = (ledger, first, last)
                    return True
        except Exception as error:  # noqa: BLE001 - raised in its turn
            self._error = error
            self._ranges = iter(())
        return False

    def _cut(self) -> bool:
        """Ask for the next piece; False while the size of the ledger's entries is not known."""
        assert self._rest is not None
        ledger, first, last = self._rest
        mean = self._mean_of(ledger)
        if mean is not None:
            # Not quite a block: an answer that is full leaves an entry or two to be asked for.
            count = max(1, min(MOST_ENTRIES, self._block_bytes * 15 // (16 * mean)))
        elif self._probed == ledger.ledger_id:
            return False
        else:
            count = _FIRST_ENTRIES if _is_striped(ledger) else MOST_ENTRIES
        # A piece ends with its ensemble.
        ends = [at - 1 for at, _ in ledger.ensembles if at > first]
        stop = min(first + count - 1, last, *ends)
        self._rest = None if stop == last else (ledger, stop + 1, last)
        self._probed = ledger.ledger_id if mean is None and self._rest else None
        self._pieces.append(self._start(ledger, first, stop))
        return True

    def _mean_of(self, ledger: LedgerMetadata) -> int | None:
        """Bytes of an entry: of the last block, or of all that a sealed ledger has."""
        mean = self._mean.get(ledger.ledger_id)
        if mean is None and ledger.length >= 0 <= ledger.last_entry:
            mean = max(1, ledger.length // (ledger.last_entry + 1))
        return mean

    def _start(self, ledger: LedgerMetadata, first: int, last: int) -> Piece:
        mean = self._mean_of(ledger) or self._usual
        piece = Piece(ledger, first, last, min((last - first + 1) * mean, self._block_bytes))
        self._in_flight += piece.estimate
        reads = self._by_entry if _is_striped(ledger) else self._by_range
        reads.start(piece)
        return piece

    # -- answers -------------------------------------------------------------------------------

    def _wait(self, head: Piece) -> None:
        """Take the answers of any bookie; where one is silent or late, ask elsewhere."""
        owing, timeout = self._owing(), self._pool.timeout
        if not owing:
            raise UnavailableError(
                f"the bookies of {head.ledger.ledger_id}:{head.first} answer what nobody asked"
            )
        ready = self._poll(owing)
        now = self._clock()  # what takes time from here on is our own
        came = False
        for bookie, connection in owing:
            if connection.fileno() in ready:
                came |= self._receive(bookie, connection)
        for bookie, connection in owing:
            if connection.fileno() < 0:
                continue  # the bookie has failed
            if connection.fileno() not in ready and connection.owed.silent(now) >= timeout:
                error = UnavailableError(f"bookie {bookie} is silent for {timeout:g} s")
                self._failed(bookie, error, silent=True)
            elif not came and self._pool.is_late(bookie, connection.owed.oldest(now)):
                # None of them gave a whole answer: the time was not our own.
                self._reads(connection).hurry(head, bookie)

    def _poll(self, owing: list[tuple[str, EntryConnection | RangeConnection]]) -> set[int]:
        """The connections (descriptors) with answers, as soon as there are any or one is late."""
        now = self._clock()
        left = self._pool.timeout
        poll = select.poll()
        for bookie, connection in owing:
            poll.register(connection, select.POLLIN)
            late = self._pool.late_after(bookie) - connection.owed.oldest(now)
            silent = self._pool.timeout - connection.owed.silent(now)
            left = min(left, silent, max(late, _LOOK_SECONDS))
        return {number for number, _ in poll.poll(max(0, math.ceil(left * 1000)))}

    def _reads(self, connection: EntryConnection | RangeConnection) -> EntryReads | RangeReads:
        return self._by_entry if isinstance(connection, EntryConnection) else self._by_range

    def _owing(self) -> list[tuple[str, EntryConnection | RangeConnection]]:
        pool = self._pool
        return [
            (bookie, connection)
            for known in (pool.entry_connections, pool.range_connections)
            for bookie, connection in known.items()
            if connection.owed.count
        ]

    def _receive(self, bookie: str, connection: EntryConnection | RangeConnection) -> bool:
        """Take what has arrived; whether an answer came, or the bookie failed."""
        try:
            if isinstance(connection, EntryConnection):
                came = self._by_entry.receive(bookie, connection)
            else:
                came = self._by_range.receive(bookie, connection)
        except (UnavailableError, CorruptError) as error:
            self._failed(bookie, error, silent=timed_out(error))
            return True
        connection.owed.heard(connection.received, self._clock())
        return came

    def _failed(self, bookie: str, error: PulsarLakeError, *, silent: bool = False) -> None:
        """Ask others, or the bookie again, for all that it owes."""
        once_more = self._pool.drop(bookie, error.message, silent=silent)
        self._by_range.lost(bookie, once_more=once_more)
        self._by_entry.lost(bookie, once_more=once_more)


def _is_striped(ledger: LedgerMetadata) -> bool:
    """Whether a bookie lacks entries: its answer to a range read would end before the first."""
    return ledger.ensemble_size != ledger.write_quorum
