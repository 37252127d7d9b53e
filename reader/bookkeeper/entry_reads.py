"""Entries one by one, by pipelined v3 reads: for every kind of ledger and every failure.

Requests are pipelined over one connection a bookie. An entry is requested from the first replica of
its write set that is not known to fail; a missing entry, an error, a bad digest, a timeout or a
broken connection moves it to the next. An entry is damaged where a replica gives the same bad bytes
twice: bytes that changed on their way are others the next time.
"""

from __future__ import annotations

import selectors
from collections.abc import Iterator
from enum import Enum

import numpy as np

from reader.bookkeeper.connection import timed_out
from reader.bookkeeper.digest import HEADER, code_length, verify
from reader.bookkeeper.pool import BookiePool
from reader.bookkeeper.v3 import ENOENTRY, ENOLEDGER, EOK, EUA, Response, encode_read
from reader.errors import ConfigurationError, CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["EntryReads"]

_FIRST_WINDOW = 64
_MOST_IN_FLIGHT = 4096
_BLOCK_ENTRIES = 2048


class _Outcome(Enum):
    """Why a replica did not give an entry; the value is the text of it."""

    DOWN = "failed"  # the pool has the whole line
    NO_LEDGER = "no such ledger"
    NO_ENTRY = "no such entry"
    ERROR = "error"
    DIGEST = "digest mismatch"


_OUTCOMES = {ENOLEDGER: _Outcome.NO_LEDGER, ENOENTRY: _Outcome.NO_ENTRY}
"""By the status of a bookie's answer; any other status is an ``ERROR``."""

_MAY_HAVE_IT = frozenset({_Outcome.DOWN, _Outcome.ERROR})
"""After these the replica may have the entry all the same."""


class _Attempt:
    """One requested entry: the replicas that were asked, and what they answered."""

    __slots__ = ("bad", "damaged", "entry", "outcomes", "repeated", "tried")

    def __init__(self, entry: int) -> None:
        self.entry = entry
        self.tried: list[str] = []
        self.outcomes: list[_Outcome] = []
        self.bad: dict[str, bytes] = {}  # bytes that failed their digest, by bookie
        self.damaged: bytes | None = None  # those that a bookie gave twice
        self.repeated = False

    def failed_digest(self, body: bytes) -> None:
        """The bookie that was asked last gave ``body``."""
        bookie = self.tried[-1]
        if self.bad.get(bookie) == body:
            self.damaged = body
        self.bad[bookie] = body
        self.outcomes.append(_Outcome.DIGEST)

    def repeat(self) -> None:
        """Ask each replica once more."""
        self.repeated = True
        self.tried.clear()
        self.outcomes.clear()


class EntryReads:
    """Entries first..last (inclusive) of a ledger.

    ``verified``: an entry of the ledger has passed its digest already, so the password is right.
    """

    def __init__(
        self,
        pool: BookiePool,
        ledger: LedgerMetadata,
        first: int,
        last: int,
        block_bytes: int,
        verified: bool = False,
    ) -> None:
        self._pool = pool
        self._ledger = ledger
        self._next_asked = self._next_given = first
        self._last = last
        self._block_bytes = block_bytes
        self._pending: dict[int, tuple[str, _Attempt]] = {}  # by request: bookie and entry
        self._owes: dict[str, int] = {}  # answers that are outstanding, by bookie
        self._answered_at: dict[str, float] = {}  # or first asked; the pool's clock
        self._arrived: dict[int, tuple[_Attempt, memoryview | bytes]] = {}
        self._damaged: dict[int, str] = {}
        self._seen_bytes = 0
        self._seen = 0
        self._verified = verified

    def blocks(self) -> Iterator[EntryBlock]:
        """As ``BookKeeperClient.read``."""
        while self._next_given <= self._last:
            self._ask()
            block = self._take()
            if block is not None:
                yield block
            elif self._pending:
                self._wait()

    def abandon(self) -> None:
        """Close connections with outstanding answers, which the next run would read."""
        for bookie in {where for where, _ in self._pending.values()}:
            self._pool.hang_up(bookie)
        self._pending.clear()

    # -- requests ------------------------------------------------------------------------------

    def _window(self) -> int:
        """How many entries may be in flight or waiting: about two blocks of them."""
        if not self._seen:
            return _FIRST_WINDOW
        mean = max(1, self._seen_bytes // self._seen)
        return max(16, min(_MOST_IN_FLIGHT, 2 * self._block_bytes // mean))

    def _ask(self) -> None:
        room = self._window() - len(self._pending) - len(self._arrived)
        if room < self._window() // 4 and self._next_asked <= self._last and self._pending:
            return  # few large writes
        stop = min(self._last + 1, self._next_asked + max(0, room))
        self._send([_Attempt(entry) for entry in range(self._next_asked, stop)])
        self._next_asked = max(self._next_asked, stop)

    def _send(self, attempts: list[_Attempt]) -> None:
        """Request each from its next replica, and from the one after that where it fails."""
        while attempts:
            to: dict[str, list[_Attempt]] = {}
            once_more: list[_Attempt] = []
            for attempt in attempts:
                replicas = self._ledger.replicas(attempt.entry)
                bookie = self._pool.best(one for one in replicas if one not in attempt.tried)
                if bookie is not None:
                    attempt.tried.append(bookie)
                    to.setdefault(bookie, []).append(attempt)
                elif attempt.bad and not attempt.repeated:
                    attempt.repeat()
                    once_more.append(attempt)
                else:
                    self._give_up(attempt)
            attempts = once_more
            for bookie, several in to.items():
                attempts += self._send_to(bookie, several)

    def _send_to(self, bookie: str, attempts: list[_Attempt]) -> list[_Attempt]:
        """Those that need another replica because the bookie failed."""
        data = bytearray()
        for attempt in attempts:
            number = self._pool.next_request()
            self._pending[number] = (bookie, attempt)
            data += encode_read(number, self._ledger.ledger_id, attempt.entry)
        try:
            self._pool.connect_for_entries(bookie).send(bytes(data))
        except UnavailableError as error:
            return self._failed(bookie, error.message, silent=timed_out(error))
        if not self._owes.get(bookie):
            self._answered_at[bookie] = self._pool.clock()
        self._owes[bookie] = self._owes.get(bookie, 0) + len(attempts)
        return []

    def _failed(self, bookie: str, why: str, *, silent: bool = False) -> list[_Attempt]:
        """All that is outstanding at the bookie, for the next replica or for this one again."""
        once_more = self._pool.drop(bookie, why, silent=silent)
        self._owes.pop(bookie, None)
        mine = [number for number, (where, _) in self._pending.items() if where == bookie]
        found = [self._pending.pop(number)[1] for number in mine]
        for attempt in found:
            if once_more:
                attempt.tried.remove(bookie)
            else:
                attempt.outcomes.append(_Outcome.DOWN)
        return found

    def _give_up(self, attempt: _Attempt) -> None:
        ledger = self._ledger.ledger_id
        what = f"entry {ledger}:{attempt.entry}"
        outcomes = set(attempt.outcomes)
        if attempt.damaged is not None and not outcomes & _MAY_HAVE_IT:
            # Every copy fails its digest: the bytes are delivered, and marked as damaged.
            self._damaged[attempt.entry] = "digest mismatch on every replica"
            self._arrive(attempt, attempt.damaged)
            return
        if outcomes == {_Outcome.NO_LEDGER}:
            raise NotFoundError(f"no replica has ledger {ledger}", hint="it has been deleted")
        tried = ", ".join(
            self._pool.why(bookie)
            if outcome is _Outcome.DOWN
            else f"bookie {bookie}: {outcome.value}"
            for bookie, outcome in zip(attempt.tried, attempt.outcomes, strict=True)
        )
        if outcomes & _MAY_HAVE_IT:
            raise UnavailableError(
                f"no replica gives {what} ({tried})", hint="check that the bookies run"
            )
        if attempt.bad:
            raise UnavailableError(
                f"no replica gives {what} twice in the same way ({tried})",
                hint="its bytes change on their way: check the network to the bookies",
            )
        raise CorruptError(f"{what} is lost: all its replicas answer without it ({tried})")

    # -- answers -------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for answers of any bookie with outstanding ones, for at most the timeout."""
        timeout = self._pool.timeout
        owing = [bookie for bookie, count in self._owes.items() if count]
        with selectors.DefaultSelector() as selector:
            for bookie in owing:
                selector.register(
                    self._pool.connect_for_entries(bookie), selectors.EVENT_READ, bookie
                )
            oldest = min(self._answered_at[bookie] for bookie in owing)
            left = max(0.0, oldest + timeout - self._pool.clock())
            ready = [key.data for key, _ in selector.select(left)]
        again: list[_Attempt] = []
        for bookie in ready:
            try:
                responses = self._pool.connect_for_entries(bookie).receive()
            except (UnavailableError, CorruptError) as error:
                again += self._failed(bookie, error.message, silent=timed_out(error))
                continue
            self._answered_at[bookie] = self._pool.clock()
            for response in responses:
                again += self._answer(bookie, response)
        now = self._pool.clock()
        for bookie in owing:
            if bookie not in ready and now - self._answered_at[bookie] >= timeout:
                again += self._failed(
                    bookie, f"bookie {bookie} is silent for {timeout:g} s", silent=True
                )
        self._send(again)

    def _answer(self, bookie: str, response: Response) -> list[_Attempt]:
        where, attempt = self._pending.pop(response.request, ("", None))
        if attempt is None or where != bookie:
            return []  # no such request
        self._owes[bookie] -= 1
        if response.status == EOK and response.body is not None:
            self._arrive(attempt, response.body)
            return []
        if response.status == EUA:
            raise ConfigurationError(
                f"bookie {bookie} requires authentication",
                hint="set [pulsar.bookkeeper]",
            )
        attempt.outcomes.append(_OUTCOMES.get(response.status, _Outcome.ERROR))
        return [attempt]

    def _arrive(self, attempt: _Attempt, body: memoryview | bytes) -> None:
        self._arrived[attempt.entry] = attempt, body
        self._seen += 1
        self._seen_bytes += len(body)

    # -- blocks --------------------------------------------------------------------------------

    def _take(self) -> EntryBlock | None:
        """The next block, if enough of it has arrived; bad digests are requested again."""
        stop, size = self._next_given, 0
        most = self._next_given + _BLOCK_ENTRIES
        while stop in self._arrived and size < self._block_bytes and stop < most:
            size += len(self._arrived[stop][1])
            stop += 1
        full = size >= self._block_bytes or stop == most
        if stop == self._next_given or (self._pending and not full):
            return None
        entries = np.arange(self._next_given, stop, dtype=np.int64)
        bodies = [self._arrived[entry][1] for entry in range(self._next_given, stop)]
        lengths = np.fromiter((len(body) for body in bodies), np.int64, len(bodies))
        offsets = np.cumsum(lengths) - lengths
        arena = np.frombuffer(b"".join(bodies), np.uint8)
        ledger = self._ledger
        good = verify(
            ledger.digest_type,
            self._pool.password_of(ledger),
            arena,
            offsets,
            lengths,
            ledger.ledger_id,
            entries,
        )
        known = [entry in self._damaged for entry in range(self._next_given, stop)]
        if not (good | known).all():
            self._ask_elsewhere(entries[~(good | known)].tolist())
            return None
        for entry in range(self._next_given, stop):
            del self._arrived[entry]
        damaged = {
            int(entry) - self._next_given: self._damaged.pop(int(entry))
            for entry in entries.tolist()
            if entry in self._damaged
        }
        self._check_password(len(damaged) == len(entries))
        self._next_given = stop
        front = np.minimum(HEADER + code_length(ledger.digest_type), lengths)
        return EntryBlock(
            ledger.ledger_id, entries, offsets + front, lengths - front, arena, damaged
        )

    def _check_password(self, all_damaged: bool) -> None:
        """With a wrong password every entry would become a rescued row: that is an error."""
        if all_damaged and not self._verified and self._ledger.digest_type in ("MAC", "HMAC"):
            raise ConfigurationError(
                f"no entry of ledger {self._ledger.ledger_id} passes its MAC digest",
                hint="check pulsar.bookkeeper_password: the broker's managedLedgerPassword",
            )
        self._verified = True

    def _ask_elsewhere(self, entries: list[int]) -> None:
        """The copies of these entries fail their digest: request them from the next replicas."""
        for entry in entries:
            attempt, body = self._arrived.pop(entry)
            attempt.failed_digest(bytes(body))
            self._send([attempt])
