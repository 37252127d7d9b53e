"""EntryReads: blocks entry by entry, for striped ledgers, and where a range read fails.

In the plain case no code handles a single entry: the entries of a block are requested, received and
verified in bulk. Runs of as many entries as the write quorum go to the one bookie that holds all of
them: it reads them together, and all bookies get the same share. An entry that its bookie does not
give at once becomes an ``EntryRetry``: a missing entry, an error, a bad digest, a broken connection
or a late answer moves it to the next replica. The first good answer counts. An entry is damaged if
a replica gives the same bad bytes twice: bytes that changed on their way differ the next time.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from reader.bookkeeper.reads.bookie_health import BookieHealth
from reader.bookkeeper.reads.entry_retry import EntryRetry, Outcome
from reader.bookkeeper.reads.outstanding import OutstandingRequests
from reader.bookkeeper.reads.pending_block import PendingBlock
from reader.bookkeeper.reads.pending_entries import INDEX_BITS, BookieShare, PendingEntries
from reader.bookkeeper.reads.read_messages import EntryAnswers, EntryRead, ReadKind, Send
from reader.bookkeeper.v3 import EOK, EUA, REQUEST, STATUS
from reader.errors import ConfigurationError
from reader.kernels.array_types import Int64s

# A bookie takes 2,500 requests for a ledger (maxPendingReadRequestsPerThread), of all its clients.
_MAX_IN_FLIGHT = 500
_FIRST_IN_FLIGHT = 64
_MIN_IN_FLIGHT = 4

_SINGLE_REQUEST = (1 << INDEX_BITS) - 1  # in place of the entry's index: a retry

_Retry = tuple[PendingEntries, EntryRetry]


class EntryReads:
    """All entry reads of a run. Arguments are as of ``LedgerReads``."""

    def __init__(
        self, health: BookieHealth, numbers: Iterator[int], block_bytes: int, password: bytes
    ) -> None:
        self._health = health
        self._numbers = numbers
        self._block_bytes = block_bytes
        self._password = password
        self._blocks: dict[int, PendingEntries] = {}  # by number, until all answers have arrived
        self._unsent: dict[str, deque[PendingEntries]] = {}
        self._due_retries: list[_Retry] = []
        self._single_requests: dict[int, tuple[str, _Retry]] = {}
        self._mean_bytes = 0  # of an entry, of late
        self.outstanding = OutstandingRequests()

    # -- requests --------------------------------------------------------------------------------

    def start(self, pending: PendingBlock) -> None:
        """Request a block's entries as soon as there is room."""
        number = next(self._numbers)
        entries = self._blocks[number] = PendingEntries(pending, number)
        self._assign(entries, np.arange(entries.missing))

    def _assign(self, entries: PendingEntries, indices: Int64s) -> None:
        """Give each entry to a bookie. Fail the block if no replica of an entry may be asked."""
        pending = entries.pending
        ensemble = pending.ensemble
        healthy = tuple(map(self._health.is_healthy, ensemble))
        available = tuple(map(self._health.is_available, ensemble))
        if not any(available):
            choice = self._health.choose(ensemble)
            available = tuple(bookie == choice for bookie in ensemble)
        table = _assignments(len(ensemble), pending.ledger.write_quorum, healthy, available)
        assigned = table[(pending.first + indices) % len(table)]
        shares = [
            (ensemble[position], indices[assigned == position])
            for position in np.flatnonzero(np.bincount(assigned)).tolist()
        ]
        for bookie, share in shares:
            if not self._health.can_ask(bookie):
                retry = entries.retry_of(int(share[0]))
                retry.skip_silent_replicas()
                self._give_up(entries, retry)
                return
        for bookie, share in shares:
            entries.shares.setdefault(bookie, BookieShare()).add(share)
            self._unsent.setdefault(bookie, deque()).append(entries)

    def requests(self, now: float) -> list[Send]:
        """Return what is to be sent: as much as the bookies have room for, and all retries."""
        unsent = [(bookie, self._take_unsent(bookie)) for bookie in [*self._unsent]]
        sends = [(bookie, reads) for bookie, reads in unsent if reads]
        while self._due_retries:
            sends += self._take_retries()
        for bookie, reads in sends:
            self._health.record_request(bookie)
            self.outstanding.add(bookie, sum(len(read.requests) for read in reads), now)
        return [Send(bookie, ReadKind.ENTRY, reads) for bookie, reads in sends]

    def _window(self) -> int:
        """Return the number of requests that a bookie may have outstanding."""
        if not self._mean_bytes:
            return _FIRST_IN_FLIGHT
        return max(_MIN_IN_FLIGHT, min(_MAX_IN_FLIGHT, self._block_bytes // self._mean_bytes))

    def _take_unsent(self, bookie: str) -> list[EntryRead]:
        window = self._window()
        room = window - self.outstanding.count(bookie)
        reads: list[EntryRead] = []
        if 2 * room < window:  # few large writes
            return reads
        queue = self._unsent[bookie]
        while queue and room > 0:
            entries = queue[0]
            pending, share = entries.pending, entries.shares[bookie]
            if not pending.is_done and len(indices := entries.take_unsent(bookie, room)):
                room -= len(indices)
                requests = entries.base + indices
                reads.append(EntryRead(pending.ledger.ledger_id, pending.first + indices, requests))
            if pending.is_done or share.sent == len(share.indices):
                queue.popleft()
        if not queue:
            del self._unsent[bookie]
        return reads

    def _take_retries(self) -> list[tuple[str, list[EntryRead]]]:
        """Request each entry from its next replica: (bookie, reads)."""
        retries, self._due_retries = self._due_retries, []
        assigned: dict[str, dict[int, list[tuple[int, int]]]] = {}  # by bookie and ledger
        for entries, retry in retries:
            if entries.is_over(retry.index):
                continue
            bookie = self._health.choose(one for one in retry.replicas if one not in retry.outcomes)
            if bookie is not None:
                retry.outcomes[bookie] = None
                request = next(self._numbers) << INDEX_BITS | _SINGLE_REQUEST
                self._single_requests[request] = (bookie, (entries, retry))
                of_ledger = assigned.setdefault(bookie, {}).setdefault(retry.ledger_id, [])
                of_ledger.append((retry.entry, request))
            elif None in retry.outcomes.values():
                continue
            elif not retry.skip_silent_replicas() and retry.repeat():
                self._due_retries.append((entries, retry))
            else:
                self._give_up(entries, retry)
        return [
            (
                bookie,
                [
                    EntryRead(ledger_id, *np.array(numbers, np.int64).T.copy())
                    for ledger_id, numbers in of_bookie.items()
                ],
            )
            for bookie, of_bookie in assigned.items()
        ]

    def _give_up(self, entries: PendingEntries, retry: EntryRetry) -> None:
        if retry.is_damaged:
            # Every copy fails its digest: the bytes are delivered, and marked as damaged.
            assert retry.damaged is not None
            entries.damaged.add(retry.index)
            entries.put(retry.index, retry.damaged)
            self._finish(entries)
        else:
            entries.pending.error = retry.error(self._health)

    # -- answers ---------------------------------------------------------------------------------

    def receive(self, bookie: str, answers: EntryAnswers, now: float) -> int:
        """Take a bookie's answers. Return how many of them answer a request."""
        requests = answers.table[REQUEST]
        count = 0
        for number in set((requests >> INDEX_BITS).tolist()):
            entries = self._blocks.get(number)
            if entries is not None and bookie in entries.shares:
                count += self._take(bookie, entries, answers)
        if self._single_requests:
            singles = (requests & _SINGLE_REQUEST) == _SINGLE_REQUEST
            for column in np.flatnonzero(singles).tolist():
                count += self._take_single(bookie, answers, column)
        if count:
            self._health.record_answer(bookie, self.outstanding.oldest_seconds(bookie, now))
            self.outstanding.answer(bookie, count, now)
        return count

    def _take(self, bookie: str, entries: PendingEntries, answers: EntryAnswers) -> int:
        before = entries.used
        count, others = entries.take(bookie, answers)
        if len(others) < count:
            mean = max(1, (entries.used - before) // (count - len(others)))
            known = self._mean_bytes
            self._mean_bytes = mean if not known else (3 * known + mean) // 4 or 1
        for column in others.tolist():
            index = int(answers.table[REQUEST, column]) - entries.base
            self._take_other(entries, index, bookie, int(answers.table[STATUS, column]))
        self._finish(entries)
        return count

    def _take_other(self, entries: PendingEntries, index: int, bookie: str, status: int) -> None:
        """Take an answer without an entry, or with an entry that has arrived from elsewhere."""
        if entries.pending.is_done:
            return
        if entries.lengths[index] < 0:
            self._take_error(entries, entries.retry_of(index), bookie, status)
        elif index in entries.retries:
            entries.retries[index].outcomes.pop(bookie, None)

    def _take_single(self, bookie: str, answers: EntryAnswers, column: int) -> int:
        request, status, begin, size = answers.table[:, column].tolist()
        if self._single_requests.get(request, ("",))[0] != bookie:
            return 0  # no such request
        _, (entries, retry) = self._single_requests.pop(request)
        if entries.is_over(retry.index):
            retry.outcomes.pop(bookie, None)
        elif status == EOK and size >= 0:
            retry.given_by = bookie
            entries.put(retry.index, answers.buffer[begin : begin + size])
        else:
            self._take_error(entries, retry, bookie, status)
        self._finish(entries)
        return 1

    def _take_error(
        self, entries: PendingEntries, retry: EntryRetry, bookie: str, status: int
    ) -> None:
        if status == EUA:
            entries.pending.error = ConfigurationError(
                f"bookie {bookie} requires authentication", hint="set [pulsar.bookkeeper]"
            )
            return
        retry.outcomes[bookie] = Outcome.of_status(status)
        self._due_retries.append((entries, retry))

    def _finish(self, entries: PendingEntries) -> None:
        """Make the block once all entries are there; forget it once no answer is outstanding."""
        pending = entries.pending
        if not pending.is_done:
            if entries.used > 2 * self._block_bytes:
                # Entries are larger than before: the block ends with those that are requested.
                entries.cut_unsent()
            if not entries.missing:
                self._complete(entries)
        if pending.is_done and not any(share.unanswered for share in entries.shares.values()):
            self._blocks.pop(entries.base >> INDEX_BITS, None)

    def _complete(self, entries: PendingEntries) -> None:
        """Make the block, or retry the entries that fail their digest."""
        bad = entries.pending.complete(
            self._password, entries.arena, entries.offsets, entries.lengths, entries.damaged
        )
        for index in bad:
            retry = entries.retry_of(index)
            retry.given_by = retry.given_by or entries.bookie_of(index)
            retry.record_mismatch(entries.remove(index))
            self._due_retries.append((entries, retry))

    # -- bookies that fail or are slow -----------------------------------------------------------

    def lose(self, bookie: str, *, ask_again: bool) -> None:
        """Request what a bookie that failed did not give elsewhere, or of the bookie again."""
        self.outstanding.forget(bookie)
        self._unsent.pop(bookie, None)
        for entries in list(self._blocks.values()):
            if bookie in entries.shares:
                lost = entries.forget(bookie)
                if not entries.pending.is_done:
                    self._lose_share(entries, bookie, lost, ask_again)
                self._finish(entries)
        for request, (requested_of, (entries, retry)) in list(self._single_requests.items()):
            if requested_of == bookie:
                del self._single_requests[request]
                self._lose_entry(entries, retry, bookie, ask_again)

    def _lose_share(
        self, entries: PendingEntries, bookie: str, lost: Int64s, ask_again: bool
    ) -> None:
        share = entries.shares[bookie]
        unsent = share.take_back()
        plain = []
        for index in lost.tolist():
            if ask_again and index not in entries.retries:
                plain.append(index)
            else:
                self._lose_entry(entries, entries.retry_of(index), bookie, ask_again)
        if ask_again:
            share.add(np.array(plain, np.int64))
            share.add(unsent)
            self._unsent.setdefault(bookie, deque()).append(entries)
        else:
            self._assign(entries, unsent)

    def _lose_entry(
        self, entries: PendingEntries, retry: EntryRetry, bookie: str, ask_again: bool
    ) -> None:
        if ask_again or entries.is_over(retry.index):
            retry.outcomes.pop(bookie, None)
        else:
            retry.outcomes[bookie] = Outcome.FAILED
        self._due_retries.append((entries, retry))

    def refuse(self, bookie: str, error: ConfigurationError) -> None:
        """Fail the blocks that wait for a bookie."""
        self.outstanding.forget(bookie)
        singles = self._single_requests.values()
        waiting = [entries for requested_of, (entries, _) in singles if requested_of == bookie]
        for entries in self._blocks.values():
            if bookie in entries.shares and entries.shares[bookie].unanswered:
                entries.shares[bookie].unanswered = 0
                waiting.append(entries)
        for entries in waiting:
            if not entries.pending.is_done:
                entries.pending.error = error

    def read_elsewhere(self, pending: PendingBlock, bookie: str) -> None:
        """Request what a slow bookie has not given of a block from other healthy replicas too.

        What the bookie was not asked for yet, of all blocks, goes to others alone. The late
        requests stay: the answer that arrives first counts.
        """
        for other in {id(one): one for one in self._unsent.pop(bookie, ())}.values():
            self._assign(other, other.shares[bookie].take_back())
        for entries in list(self._blocks.values()):
            if entries.pending is not pending:
                continue
            if bookie in entries.shares:
                for index in entries.outstanding(bookie).tolist():
                    replicas = pending.ledger.replicas(pending.first + index)
                    if index not in entries.retries and self._has_other(replicas, (bookie,)):
                        entries.retry_of(index).outcomes[bookie] = None
            for retry in entries.retries.values():
                is_late = retry.outcomes.get(bookie, Outcome.FAILED) is None
                is_wanted = is_late and not entries.is_over(retry.index)
                if is_wanted and self._has_other(retry.replicas, retry.outcomes):
                    self._due_retries.append((entries, retry))

    def _has_other(self, replicas: Iterable[str], asked: Iterable[str]) -> bool:
        """Return whether a replica that was not asked is healthy."""
        return any(one not in asked and self._health.is_healthy(one) for one in replicas)


@lru_cache(256)
def _assignments(
    size: int, quorum: int, healthy: tuple[bool, ...], available: tuple[bool, ...]
) -> Int64s:
    """Return, by entry modulo the length, which bookie of an ensemble of ``size`` is asked for it.

    That is the bookie that holds the whole run of ``quorum`` entries, or the first bookie of the
    write set that is healthy, or available at least.
    """
    assigned = []
    for entry in range(size * quorum):
        holder = (entry - entry % quorum + quorum - 1) % size
        replicas = [(entry + i) % size for i in range(quorum)]
        order = [holder, *replicas]
        assigned.append(
            next((one for kind in (healthy, available) for one in order if kind[one]), replicas[0])
        )
    return np.array(assigned, np.int64)
