"""LedgerReads: what is asked of which bookie, when, and what follows from the answers. No I/O.

The rules, in short:

1. Ranges are split into blocks of about ``block_bytes``. A few blocks are requested ahead.
2. A block of a ledger that is not striped is one range read, of the bookie with the fewest
   outstanding range reads. If the range read fails in any way, the block is read entry by entry.
3. Entries of striped ledgers are read one by one, from the bookie that holds a run of them. An
   entry that the bookie does not give is requested from the next replica, and so on.
4. A bookie fails if its connection breaks, if it sends anything but its protocol, or if it is
   silent for ``timeout`` seconds. It is avoided for a while. Its outstanding requests go to other
   replicas. If the connection was a kept one, the bookie is asked once more instead.
5. If no answer arrives, and a bookie is slower than the other bookies by far, its outstanding
   requests for the next block go to other healthy replicas too. The first good answer counts.
6. Blocks, and errors, are delivered in the order of the ranges.

Time stands still, as far as bookies are waited for, while the caller sends requests or uses a
block: only then can nobody receive answers.
"""

from collections import deque
from collections.abc import Iterable, Iterator

from reader.bookkeeper.reads import read_messages
from reader.bookkeeper.reads.block_planner import BlockPlanner, Range, is_striped
from reader.bookkeeper.reads.bookie_health import BookieHealth
from reader.bookkeeper.reads.entry_reads import EntryReads
from reader.bookkeeper.reads.pending_block import PendingBlock
from reader.bookkeeper.reads.range_reads import RangeReads
from reader.errors import ConfigurationError, UnavailableError
from reader.model import EntryBlock

_BLOCKS_IN_FLIGHT = 4
_MAX_PENDING = 128
_CHECK_SECONDS = 0.05  # between two checks whether a bookie is slow, once it may be


class LedgerReads:
    """The reads of one run over ranges (ledger, first entry, last entry).

    The caller performs the actions that ``next_action`` returns, one after the other. After
    ``Wait`` it passes what arrived to ``receive``, and then calls ``end_wait``. If a send fails, it
    calls ``receive`` or ``refuse``. ``now``: seconds, monotonic. ``numbers``: numbers of requests
    that the connections have not had before. ``password``: of ledgers whose metadata has none.
    """

    def __init__(
        self,
        ranges: Iterable[Range],
        health: BookieHealth,
        numbers: Iterator[int],
        *,
        block_bytes: int = 4 << 20,
        password: bytes = b"",
    ) -> None:
        self._health = health
        self._planner = BlockPlanner(ranges, block_bytes)
        self._entry_reads = EntryReads(health, numbers, block_bytes, password)
        self._range_reads = RangeReads(health, numbers, block_bytes, password)
        self._reads: dict[read_messages.ReadKind, EntryReads | RangeReads] = {
            read_messages.ReadKind.ENTRY: self._entry_reads,
            read_messages.ReadKind.RANGE: self._range_reads,
        }
        self._max_bytes = _BLOCKS_IN_FLIGHT * block_bytes
        self._pending: deque[PendingBlock] = deque()  # in the order of delivery
        self._bytes_in_flight = 0  # by the estimates
        self._actions: deque[read_messages.Action] = deque()
        self._has_changed = True  # so that there may be more to request
        self._next_block: EntryBlock | None = None  # delivered once there is nothing to send
        self._has_answers = False  # since the last Wait
        self._verified: set[int] = set()  # ledgers with an entry that passed its digest
        self._waited = 0.0  # seconds, without those in which nobody could receive
        self._last_time: float | None = None  # None while nobody can receive

    # -- the caller's side -----------------------------------------------------------------------

    def next_action(self, now: float) -> read_messages.Action | None:
        """Return what is to be done next; None at the end.

        Raises the error of the next block, or of its range, in its turn.
        """
        self._advance(now)
        action = self._next_action()
        if not isinstance(action, read_messages.Wait):
            self._last_time = None
        return action

    def receive(
        self, event: read_messages.Arrival | read_messages.BookieFailure, now: float
    ) -> None:
        """Take what arrived by ``now``, or ask other bookies for what a bookie owes."""
        self._advance(now)
        if isinstance(event, read_messages.BookieFailure):
            self._has_answers = True
            self._fail(event)
        elif self._take(event):
            self._has_answers = self._has_changed = True

    def end_wait(self, now: float) -> None:
        """Give up bookies that are silent, and ask others if they are slow: all has been received.

        ``now``: when the wait ended.
        """
        self._advance(now)
        for reads in self._reads.values():
            for bookie, silent, oldest in reads.outstanding.ages(self._waited):
                if silent >= self._health.timeout and not reads.outstanding.is_heard(bookie):
                    self._give_up(bookie)
                # Without a whole answer from any bookie, the time was not the caller's own.
                elif not self._has_answers and self._health.check_slow(bookie, oldest):
                    reads.read_elsewhere(self._pending[0], bookie)
                    self._has_changed = True

    def refuse(self, bookie: str, kind: read_messages.ReadKind, error: ConfigurationError) -> None:
        """Fail the blocks that wait for a bookie: the settings do not allow to ask it."""
        self._reads[kind].refuse(bookie, error)

    def unanswered_bookies(self) -> set[str]:
        """Return the bookies with outstanding requests: their connections cannot be kept."""
        return {bookie for reads in self._reads.values() for bookie in reads.outstanding.bookies()}

    # -- requests and blocks ---------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        self._health.advance(now)
        if self._last_time is not None:
            self._waited += now - self._last_time
        self._last_time = now

    def _next_action(self) -> read_messages.Action | None:
        while True:
            if self._has_changed:
                self._has_changed = False
                self._request()
            if self._actions:
                return self._actions.popleft()
            if self._next_block is not None:
                # The following blocks are on their way while this one is used.
                block, self._next_block = self._next_block, None
                return read_messages.Deliver(block)
            if not self._pending:
                if self._planner.error is not None:
                    raise self._planner.error
                return None
            head = self._pending[0]
            if head.error is not None:
                raise head.error
            if head.block is None:
                return self._wait(head)
            self._next_block = self._take_head(head.block)

    def _request(self) -> None:
        if 4 * len(self._pending) <= 3 * _MAX_PENDING:  # few large writes
            while len(self._pending) < _MAX_PENDING and self._bytes_in_flight < self._max_bytes:
                pending = self._planner.next_block()
                if pending is None:
                    break
                self._pending.append(pending)
                self._start(pending)
        self._actions.extend(self._range_reads.requests(self._waited))
        for pending in self._range_reads.take_failed():
            self._entry_reads.start(pending)
        self._actions.extend(self._entry_reads.requests(self._waited))

    def _start(self, pending: PendingBlock) -> None:
        self._bytes_in_flight += pending.estimate
        if is_striped(pending.ledger):
            self._entry_reads.start(pending)
        else:
            self._range_reads.start(pending)

    def _take_head(self, block: EntryBlock) -> EntryBlock:
        head = self._pending.popleft()
        self._bytes_in_flight -= head.estimate
        self._has_changed = True
        if block.damaged:
            self._require_password(head, block)
        else:
            self._verified.add(block.ledger_id)
        self._planner.learn_sizes(block)
        after = int(block.entry_ids[-1]) + 1
        if after <= head.last:  # the answer was full, or ended before a missing entry
            if self._pending:
                rest = self._planner.block_of(head.ledger, after, head.last)
                self._pending.appendleft(rest)
                self._start(rest)
            else:
                self._planner.put_back(head.ledger, after, head.last)
        return block

    def _require_password(self, head: PendingBlock, block: EntryBlock) -> None:
        """Raise ConfigurationError if no entry of a ledger passes a digest with a password.

        With a wrong password every entry would become a rescued row.
        """
        ledger = head.ledger
        if len(block.damaged) < len(block):
            self._verified.add(block.ledger_id)
        elif ledger.digest_type in ("MAC", "HMAC") and ledger.ledger_id not in self._verified:
            completed = [
                pending.block
                for pending in self._pending
                if pending.block is not None and pending.ledger.ledger_id == ledger.ledger_id
            ]
            if all(len(other.damaged) == len(other) for other in completed):
                raise ConfigurationError(
                    f"no entry of ledger {ledger.ledger_id} passes its MAC digest",
                    hint="check pulsar.bookkeeper_password: the broker's managedLedgerPassword",
                )

    # -- answers and failures --------------------------------------------------------------------

    def _wait(self, head: PendingBlock) -> read_messages.Wait:
        seconds = self._health.timeout
        connections = []
        for kind, reads in self._reads.items():
            reads.outstanding.start_wait()
            for bookie, silent, oldest in reads.outstanding.ages(self._waited):
                connections.append((bookie, kind))
                until_slow = max(self._health.slow_after(bookie) - oldest, _CHECK_SECONDS)
                seconds = min(seconds, self._health.timeout - silent, until_slow)
        if not connections:
            raise UnavailableError(
                f"Bookies of ledger {head.ledger.ledger_id} sent responses that match no request "
                f"(first entry {head.first})"
            )
        self._has_answers = False
        return read_messages.Wait(connections, max(0.0, seconds))

    def _take(self, arrival: read_messages.Arrival) -> bool:
        """Take a bookie's answers. Return whether any of them answers a request."""
        answers = arrival.answers
        if isinstance(answers, read_messages.EntryAnswers):
            count = self._entry_reads.receive(arrival.bookie, answers, self._waited)
        else:
            count = self._range_reads.receive(arrival.bookie, answers, self._waited)
        outstanding = self._reads[arrival.kind].outstanding
        outstanding.add_bytes(arrival.bookie, arrival.byte_count, self._waited)
        return count > 0

    def _give_up(self, bookie: str) -> None:
        error = UnavailableError(f"bookie {bookie} is silent for {self._health.timeout:g} s")
        self._actions.append(read_messages.Disconnect(bookie))
        self._fail(read_messages.BookieFailure(bookie, error, is_silent=True))

    def _fail(self, failure: read_messages.BookieFailure) -> None:
        """Send all requests of a bookie to other bookies, or to the bookie again."""
        self._has_changed = True
        bookie = failure.bookie
        if failure.rejects_ranges:
            self._health.avoid_range_reads(bookie)
        # The end of a kept connection is no failure of the bookie.
        ask_again = failure.was_kept and not failure.is_silent
        if not ask_again:
            self._health.record_failure(bookie, failure.error.message, silent=failure.is_silent)
        self._actions = deque(
            action
            for action in self._actions
            if isinstance(
                action, read_messages.Disconnect | read_messages.Deliver | read_messages.Wait
            )
            or action.bookie != bookie
        )
        self._range_reads.lose(bookie, ask_again=ask_again)
        self._entry_reads.lose(bookie, ask_again=ask_again)
