"""Entries one by one, by pipelined v3 reads: for striped ledgers, and where a range read fails.

The plain case knows no single entry: all entries of a piece are requested, received and verified in
bulk. Runs of as many entries as the write quorum go to the one bookie that holds all of them: it
looks up and reads them together, and all bookies get the same share. An entry whose bookie does not
give it at once becomes an ``Attempt``: a missing entry, an error, a bad digest, a timeout, a
broken connection or a late answer moves it to the next replica. The first good answer counts. An
entry is damaged where a replica gives the same bad bytes twice: bytes that changed on their way are
others the next time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from reader.bookkeeper.connection import Answers, EntryConnection, timed_out
from reader.bookkeeper.piece import ANSWERED, ASKED, Failed, Piece, block_of
from reader.bookkeeper.pool import BookiePool
from reader.bookkeeper.singles import (
    ALONE,
    INDEX_BITS,
    MAY_HAVE_IT,
    OUTCOMES,
    Attempt,
    Outcome,
    Share,
    Singles,
)
from reader.bookkeeper.v3 import (
    EOK,
    EUA,
    REQUEST,
    STATUS,
    encode_reads,
)
from reader.errors import (
    ConfigurationError,
    CorruptError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
)

__all__ = ["EntryReads"]

# A bookie takes 2,500 requests for a ledger (maxPendingReadRequestsPerThread), of all its clients.
_MOST_IN_FLIGHT = 500
_FIRST_IN_FLIGHT = 64
_LEAST_IN_FLIGHT = 4

Int64s = npt.NDArray[np.int64]


class EntryReads:
    """All entry reads of a run. ``failed`` is called with a bookie and why it failed."""

    def __init__(
        self,
        pool: BookiePool,
        clock: Callable[[], float],
        block_bytes: int,
        verified: set[int],
        failed: Failed,
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._block_bytes = block_bytes
        self._verified = verified
        self._failed = failed
        self._pieces: dict[int, Singles] = {}  # by number, until all answers have come
        self._by_piece: dict[Piece, Singles] = {}
        self._unsent: dict[str, deque[Singles]] = {}
        self._alone: dict[int, tuple[str, Attempt]] = {}  # by request
        self._again: list[Attempt] = []
        self._mean = 0  # bytes of an entry, of late

    # -- requests ------------------------------------------------------------------------------

    def start(self, piece: Piece) -> None:
        """Request the piece's entries as soon as there is room."""
        number = self._pool.next_request()
        single = self._pieces[number] = self._by_piece[piece] = Singles(piece, number)
        self._plan(single, np.arange(len(single.bodies.lengths)))

    def _plan(self, single: Singles, indices: Int64s) -> None:
        piece = single.piece
        ensemble = piece.ensemble
        well = tuple(map(self._pool.is_well, ensemble))
        fine = tuple(map(self._pool.is_fine, ensemble))
        if not any(fine):
            best = self._pool.best(ensemble)
            fine = tuple(one == best for one in ensemble)
        table = _choices(len(ensemble), piece.ledger.write_quorum, well, fine)
        chosen = table[(piece.first + indices) % len(table)]
        for position in np.flatnonzero(np.bincount(chosen)).tolist():
            if not self._pool.may_ask(ensemble[position]):
                # No replica may be asked: the piece fails at once, and its caller may go elsewhere.
                attempt = single.attempt(int(indices[chosen == position][0]))
                self._mark_silent(attempt)
                self._give_up(attempt)
                return
        for position in np.flatnonzero(np.bincount(chosen)).tolist():
            bookie = ensemble[position]
            single.shares.setdefault(bookie, Share()).add(indices[chosen == position])
            self._unsent.setdefault(bookie, deque()).append(single)

    def ask(self) -> bool:
        """Send what the bookies have room for; whether that was anything."""
        sent = [bookie for bookie in [*self._unsent] if self._send(bookie)]
        again = bool(self._again)
        if again:
            self._ask_again()
        return again or bool(sent)

    def _window(self) -> int:
        if not self._mean:
            return _FIRST_IN_FLIGHT
        return max(_LEAST_IN_FLIGHT, min(_MOST_IN_FLIGHT, self._block_bytes // self._mean))

    def _send(self, bookie: str) -> bool:
        connection = self._pool.entry_connections.get(bookie)
        room = self._window() - (connection.owed.count if connection else 0)
        queue = self._unsent.get(bookie)
        if not queue or 2 * room < self._window():  # few large writes
            return False
        frames: list[npt.NDArray[np.uint8]] = []
        count = 0
        while queue and count < room:
            single = queue[0]
            share, piece = single.shares[bookie], single.piece
            if not piece.is_done and len(indices := share.take(room - count)):
                number = piece.ledger.ledger_id
                frames.append(encode_reads(number, piece.first + indices, single.base + indices))
                count += len(indices)
                single.bodies.state[indices] = ASKED + single.position(bookie)
                single.owing[bookie] = single.owing.get(bookie, 0) + len(indices)
            if piece.is_done or share.sent == len(share.indices):
                queue.popleft()
        if not queue:
            del self._unsent[bookie]
        if count:
            self._write(bookie, frames, count)
        return count > 0

    def _write(self, bookie: str, frames: list[npt.NDArray[np.uint8]], count: int) -> None:
        try:
            connection = self._pool.connect_for_entries(bookie)
            connection.owed.asked(count, self._clock())
            connection.send(np.concatenate(frames).data)
        except (UnavailableError, CorruptError) as error:
            self._failed(bookie, error, silent=timed_out(error))
        except ConfigurationError as error:
            self._refuse(bookie, error)

    def _refuse(self, bookie: str, error: ConfigurationError) -> None:
        """What the bookie was to give cannot be had before the settings are others."""
        wanted = [single for single in self._pieces.values() if single.owing.pop(bookie, 0)]
        wanted += [attempt.single for where, attempt in self._alone.values() if where == bookie]
        for single in wanted:
            if not single.piece.is_done:
                single.piece.error = error

    def _ask_again(self) -> None:
        """Request each from its next replica."""
        again, self._again = self._again, []
        to: dict[str, list[Attempt]] = {}
        for attempt in again:
            if attempt.is_over:
                continue
            replicas = attempt.single.piece.ledger.replicas(attempt.entry)
            bookie = self._pool.best(one for one in replicas if one not in attempt.outcomes)
            if bookie is not None:
                attempt.outcomes[bookie] = None
                to.setdefault(bookie, []).append(attempt)
            elif None in attempt.outcomes.values():
                continue
            elif self._mark_silent(attempt):
                self._give_up(attempt)
            elif attempt.bad and not attempt.repeated:
                attempt.repeat()
                self._again.append(attempt)
            else:
                self._give_up(attempt)
        for bookie, attempts in to.items():
            frames = []
            for attempt in attempts:
                number = self._pool.next_request() << INDEX_BITS | ALONE
                self._alone[number] = (bookie, attempt)
                entry, request = np.array([attempt.entry]), np.array([number])
                frames.append(encode_reads(attempt.single.piece.ledger.ledger_id, entry, request))
            self._write(bookie, frames, len(frames))

    def _mark_silent(self, attempt: Attempt) -> bool:
        """Note replicas that were not asked as failed: no pool asks them now. Return whether any
        was noted."""
        replicas = attempt.single.piece.ledger.replicas(attempt.entry)
        silent = [one for one in replicas if one not in attempt.outcomes]
        attempt.outcomes.update(dict.fromkeys(silent, Outcome.DOWN))
        return bool(silent)

    # -- answers -------------------------------------------------------------------------------

    def receive(self, bookie: str, connection: EntryConnection) -> bool:
        """Take the answers that have arrived; whether any was asked for.

        Raises as ``EntryConnection.receive``.
        """
        answers = connection.receive()
        now = self._clock()
        requests = answers.table[REQUEST]
        count = 0
        for number in set((requests >> INDEX_BITS).tolist()):
            single = self._pieces.get(number)
            if single is not None and bookie in single.shares:
                count += self._take(bookie, number, single, answers)
        if self._alone:
            for column in np.flatnonzero((requests & ALONE) == ALONE).tolist():
                count += self._take_alone(bookie, answers, column)
        if count:
            self._pool.took(bookie, connection.owed.oldest(now))
            connection.owed.answered(count, now)
        return count > 0

    def _take(self, bookie: str, number: int, single: Singles, answers: Answers) -> int:
        bodies = single.bodies
        before = bodies.used
        count, others = bodies.take(answers, single.base, single.position(bookie))
        if len(others) < count:
            mean = max(1, (bodies.used - before) // (count - len(others)))
            self._mean = mean if not self._mean else (3 * self._mean + mean) // 4 or 1
        single.owing[bookie] = single.owing.get(bookie, 0) - count
        for column in others.tolist():
            index = int(answers.table[REQUEST, column]) - single.base
            self._other(single, index, bookie, int(answers.table[STATUS, column]))
        self._finish(number, single)
        return count

    def _other(self, single: Singles, index: int, bookie: str, status: int) -> None:
        """An answer without an entry, or with one that has come from elsewhere."""
        if single.piece.is_done:
            return
        if single.bodies.lengths[index] >= 0:
            if index in single.attempts:
                single.attempts[index].outcomes.pop(bookie, None)
        else:
            self._answered(single.attempt(index), bookie, status)

    def _take_alone(self, bookie: str, answers: Answers, column: int) -> int:
        request, status, begin, size = answers.table[:, column].tolist()
        where, attempt = self._alone.get(request, ("", None))
        if attempt is None or where != bookie:
            return 0  # no such request
        del self._alone[request]
        if attempt.is_over:
            attempt.outcomes.pop(bookie, None)
        elif status == EOK and size >= 0:
            attempt.gave = bookie
            attempt.single.bodies.put(attempt.index, answers.buffer[begin : begin + size])
        else:
            self._answered(attempt, bookie, status)
        self._finish(attempt.single.base >> INDEX_BITS, attempt.single)
        return 1

    def _answered(self, attempt: Attempt, bookie: str, status: int) -> None:
        if status == EUA:
            attempt.single.piece.error = ConfigurationError(
                f"bookie {bookie} requires authentication", hint="set [pulsar.bookkeeper]"
            )
            return
        attempt.outcomes[bookie] = OUTCOMES.get(status, Outcome.ERROR)
        self._again.append(attempt)

    def _finish(self, number: int, single: Singles) -> None:
        """Make the block once all is there; forget the piece once nothing is outstanding."""
        piece, bodies = single.piece, single.bodies
        if not piece.is_done and bodies.used > 2 * self._block_bytes:
            self._cut(single)
        if not piece.is_done and not bodies.missing:
            self._verify(single)
        if piece.is_done:
            self._by_piece.pop(piece, None)
            if not any(single.owing.values()):
                self._pieces.pop(number, None)

    def _verify(self, single: Singles) -> None:
        piece, bodies = single.piece, single.bodies
        ledger = piece.ledger
        found = block_of(
            piece, self._pool.password_of(ledger), bodies.arena, bodies.offsets, bodies.lengths,
            single.damaged,
        )  # fmt: skip
        if isinstance(found, list):
            for index in found:
                attempt = single.attempt(index)
                attempt.gave = attempt.gave or single.planned(index)
                attempt.failed_digest(bodies.remove(index))
                attempt.gave = ""
                self._again.append(attempt)
            return
        all_damaged = len(single.damaged) == len(bodies.lengths)
        if (
            all_damaged
            and ledger.ledger_id not in self._verified
            and ledger.digest_type in ("MAC", "HMAC")
        ):
            # With a wrong password every entry would become a rescued row.
            piece.error = ConfigurationError(
                f"no entry of ledger {ledger.ledger_id} passes its MAC digest",
                hint="check pulsar.bookkeeper_password: the broker's managedLedgerPassword",
            )
        else:
            self._verified.add(ledger.ledger_id)
            piece.block = found

    def _cut(self, single: Singles) -> None:
        """Entries are larger than they were: the block ends with those that were asked for."""
        shares = single.shares.values()
        asked = max(int(share.indices[: share.sent].max(initial=0)) for share in shares)
        if asked + 1 < len(single.bodies.lengths):
            for share in shares:
                share.indices = share.indices[share.indices <= asked]
            single.bodies.cut(asked + 1)

    def _give_up(self, attempt: Attempt) -> None:
        single = attempt.single
        ledger = single.piece.ledger.ledger_id
        outcomes = set(attempt.outcomes.values())
        if attempt.damaged is not None and not outcomes & MAY_HAVE_IT:
            # Every copy fails its digest: the bytes are delivered, and marked as damaged.
            single.damaged[attempt.index] = "digest mismatch on every replica"
            single.bodies.put(attempt.index, attempt.damaged)
            self._finish(single.base >> INDEX_BITS, single)
        elif outcomes == {Outcome.NO_LEDGER}:
            single.piece.error = NotFoundError(
                f"no replica has ledger {ledger}",
                hint=f"it has been deleted; if Pulsar still lists it, pulsar.lost_ledgers = "
                f"[{ledger}] declares it lost: docs/operations.md",
            )
        else:
            single.piece.error = self._error(attempt)

    def _error(self, attempt: Attempt) -> PulsarLakeError:
        what = f"entry {attempt.single.piece.ledger.ledger_id}:{attempt.entry}"
        tried = ", ".join(
            self._pool.why(bookie)
            if outcome is Outcome.DOWN
            else f"bookie {bookie}: {outcome.value if outcome else 'no answer'}"
            for bookie, outcome in attempt.outcomes.items()
        )
        if MAY_HAVE_IT.intersection(attempt.outcomes.values()):
            return UnavailableError(
                f"no replica gives {what} ({tried})", hint="check that the bookies run"
            )
        if attempt.bad:
            return UnavailableError(
                f"no replica gives {what} twice in the same way ({tried})",
                hint="its bytes change on their way: check the network to the bookies",
            )
        return CorruptError(
            f"{what} is lost: all its replicas answer without it ({tried})",
            hint="recover the bookie; if it is gone for good, pulsar.lost_ledgers declares the "
            "ledger lost: docs/operations.md",
        )

    # -- bookies that fail or are late ---------------------------------------------------------

    def lost(self, bookie: str, *, once_more: bool) -> None:
        """The connection is closed: ask elsewhere, or the bookie again."""
        self._unsent.pop(bookie, None)
        for number, single in list(self._pieces.items()):
            single.owing.pop(bookie, None)
            if not single.piece.is_done and bookie in single.shares:
                self._lost_of(single, bookie, once_more)
            self._finish(number, single)
        for request, (where, attempt) in list(self._alone.items()):
            if where == bookie:
                del self._alone[request]
                self._lost_attempt(attempt, bookie, once_more)

    def _lost_of(self, single: Singles, bookie: str, once_more: bool) -> None:
        share = single.shares[bookie]
        asked, unsent = single.outstanding(bookie), share.take_back()
        single.bodies.state[asked] = ANSWERED
        plain = [index for index in asked.tolist() if index not in single.attempts]
        for index in asked.tolist():
            if not once_more or index in single.attempts:
                self._lost_attempt(single.attempt(index), bookie, once_more)
        if once_more:
            share.add(np.array(plain, np.int64))
            share.add(unsent)
            self._unsent.setdefault(bookie, deque()).append(single)
        else:
            self._plan(single, unsent)

    def _lost_attempt(self, attempt: Attempt, bookie: str, once_more: bool) -> None:
        if once_more or attempt.is_over:
            attempt.outcomes.pop(bookie, None)
        else:
            attempt.outcomes[bookie] = Outcome.DOWN
        self._again.append(attempt)

    def hurry(self, piece: Piece, bookie: str) -> None:
        """The bookie is late: ask elsewhere for what it owes of a piece, and for all not yet asked.

        What is late stays asked for; the answer that comes first counts.
        """
        for other in {id(one): one for one in self._unsent.pop(bookie, ())}.values():
            self._plan(other, other.shares[bookie].take_back())
        single = self._by_piece.get(piece)
        if single is None:
            return
        if bookie in single.shares:
            for index in single.outstanding(bookie).tolist():
                if index not in single.attempts and self._is_elsewhere(single, index, (bookie,)):
                    attempt = single.attempt(index)
                    attempt.outcomes[bookie] = None
                    self._again.append(attempt)
        for attempt in single.attempts.values():
            late = attempt.outcomes.get(bookie, Outcome.DOWN) is None and not attempt.is_over
            if late and self._is_elsewhere(single, attempt.index, attempt.outcomes):
                self._again.append(attempt)

    def _is_elsewhere(self, single: Singles, index: int, asked: Iterable[str]) -> bool:
        """Whether a replica that was not asked is well."""
        replicas = single.piece.ledger.replicas(single.piece.first + index)
        return any(one not in asked and self._pool.is_well(one) for one in replicas)


@lru_cache(256)
def _choices(
    size: int, quorum: int, well: tuple[bool, ...], fine: tuple[bool, ...]
) -> npt.NDArray[np.int64]:
    """By entry modulo the length: which bookie of an ensemble of ``size`` is asked for it.

    The one that holds the whole run of ``quorum`` entries, or the first of the write set that is
    well, or fine at least.
    """
    chosen = []
    for entry in range(size * quorum):
        holder = (entry - entry % quorum + quorum - 1) % size
        replicas = [(entry + i) % size for i in range(quorum)]
        order = [holder, *replicas]
        chosen.append(
            next(
                (one for kind in (well, fine) for one in order if kind[one]),
                replicas[0],
            )
        )
    return np.array(chosen, np.int64)
