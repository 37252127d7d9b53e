"""RangeReads: a block by one range read, whose answer is the block.

Only where every bookie of the ensemble holds every entry. If anything fails (an entry is missing or
fails its digest, the bookie sends an error, fails, or does not support range reads), the block is
to be read entry by entry. A block whose answer is late is requested from another bookie too.
"""

from collections.abc import Iterator, Sequence

from reader.bookkeeper.reads.bookie_health import BookieHealth
from reader.bookkeeper.reads.outstanding import OutstandingRequests
from reader.bookkeeper.reads.pending_block import PendingBlock
from reader.bookkeeper.reads.read_messages import RangeAnswer, RangeRead, ReadKind, Send
from reader.bookkeeper.v2 import EBADREQ, EBADVERSION, MOST_BYTES, split_entries
from reader.bookkeeper.v3 import EOK
from reader.errors import ConfigurationError, CorruptError

_MIN_BYTES = 1 << 16


class RangeReads:
    """All range reads of a run. Arguments are as of ``LedgerReads``."""

    def __init__(
        self, health: BookieHealth, numbers: Iterator[int], block_bytes: int, password: bytes
    ) -> None:
        self._health = health
        self._numbers = numbers
        self._max_bytes = min(block_bytes, MOST_BYTES)
        self._password = password
        self._requested: dict[int, tuple[str, PendingBlock]] = {}  # by request
        self._unsent: dict[str, list[RangeRead]] = {}
        self._failed: list[PendingBlock] = []
        self._turn = 0
        self.outstanding = OutstandingRequests()

    # -- requests --------------------------------------------------------------------------------

    def start(self, pending: PendingBlock) -> None:
        """Request a block from the bookie with the fewest outstanding requests."""
        bookie = self._health.choose_for_ranges(self._by_load(pending))
        self._turn += 1
        if bookie is None:
            self._failed.append(pending)
        else:
            self._read(pending, bookie)

    def take_failed(self) -> list[PendingBlock]:
        """Return the blocks that are to be read entry by entry, each once."""
        failed, self._failed = self._failed, []
        return failed

    def requests(self, now: float) -> list[Send]:
        """Return what is to be sent."""
        if not self._unsent:
            return []
        unsent, self._unsent = self._unsent, {}
        for bookie, reads in unsent.items():
            self._health.record_request(bookie)
            self.outstanding.add(bookie, len(reads), now)
        return [Send(bookie, ReadKind.RANGE, reads) for bookie, reads in unsent.items()]

    def _by_load(self, pending: PendingBlock) -> list[str]:
        """Return the ensemble by load. Bookies with the same load are the first by turns."""
        turn = self._turn % len(pending.ensemble)
        return sorted(pending.ensemble[turn:] + pending.ensemble[:turn], key=self._load)

    def _load(self, bookie: str) -> int:
        return self.outstanding.count(bookie) + len(self._unsent.get(bookie, ()))

    def _read(self, pending: PendingBlock, bookie: str) -> None:
        request = next(self._numbers)
        self._requested[request] = (bookie, pending)
        self._unsent.setdefault(bookie, []).append(
            RangeRead(
                request,
                pending.ledger.ledger_id,
                pending.first,
                max_entries=pending.last - pending.first + 1,
                max_bytes=min(self._max_bytes, max(_MIN_BYTES, 2 * pending.estimate)),
            )
        )

    # -- answers ---------------------------------------------------------------------------------

    def receive(self, bookie: str, answers: Sequence[RangeAnswer], now: float) -> int:
        """Take a bookie's answers. Return how many of them answer a request."""
        count = 0
        for answer in answers:
            requested_of, pending = self._requested.get(answer.header.request, ("", None))
            if pending is not None and requested_of == bookie:
                del self._requested[answer.header.request]
                count += 1
                self._health.record_answer(bookie, self.outstanding.oldest_seconds(bookie, now))
                self.outstanding.answer(bookie, 1, now)
                if not pending.is_done:
                    self._take(bookie, pending, answer)
        return count

    def _take(self, bookie: str, pending: PendingBlock, answer: RangeAnswer) -> None:
        status = answer.header.status
        if status in (EBADREQ, EBADVERSION):
            self._health.avoid_range_reads(bookie)
        if status != EOK or not self._complete(pending, answer):
            self._fail(pending)

    def _complete(self, pending: PendingBlock, answer: RangeAnswer) -> bool:
        """Make the block. Return False if an entry is not good, or there is none."""
        try:
            offsets, lengths = split_entries(answer.content, pending.last - pending.first + 1)
        except CorruptError:
            return False
        if not len(offsets):
            return False
        return not pending.complete(self._password, answer.content, offsets, lengths)

    def _fail(self, pending: PendingBlock) -> None:
        """Read a block entry by entry, unless another bookie may still answer."""
        if not self._bookies_of(pending):
            self._failed.append(pending)

    def _bookies_of(self, pending: PendingBlock) -> list[str]:
        """Return the bookies with an outstanding request for a block."""
        return [bookie for bookie, requested in self._requested.values() if requested is pending]

    # -- bookies that fail or are slow -----------------------------------------------------------

    def lose(self, bookie: str, *, ask_again: bool) -> None:
        """Read the blocks of a bookie that failed entry by entry, or by the bookie again."""
        for pending in self._forget(bookie):
            if ask_again:
                self._read(pending, bookie)
            else:
                self._fail(pending)

    def refuse(self, bookie: str, error: ConfigurationError) -> None:
        """Fail the blocks that wait for a bookie."""
        for pending in self._forget(bookie):
            pending.error = error

    def _forget(self, bookie: str) -> list[PendingBlock]:
        """Return the unfinished blocks that a bookie was asked for; it is asked no more."""
        self._unsent.pop(bookie, None)
        self.outstanding.forget(bookie)
        lost = [request for request, (of, _) in self._requested.items() if of == bookie]
        blocks = [self._requested.pop(request)[1] for request in lost]
        return [pending for pending in blocks if not pending.is_done]

    def read_elsewhere(self, pending: PendingBlock, bookie: str) -> None:
        """Request a block from a healthy bookie too, if it waits for a slow bookie alone."""
        if self._bookies_of(pending) == [bookie]:
            candidates = [other for other in self._by_load(pending) if other != bookie]
            other = self._health.choose_for_ranges(candidates)
            if other is not None and self._health.is_healthy(other):
                self._read(pending, other)
