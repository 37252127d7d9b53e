"""The bookies of a client: its connections to them, and which of them failed recently.

A bookie that failed is avoided for a while, a longer one where it has not answered since the last.
One that does not support range reads gets entry reads alone, for a longer while. One whose answers
are late, compared with the others', is asked last for a while, or until it answers in time. A
connection that was kept between two uses may have been closed by the other side: that is not a
failure of the bookie, which is asked again on a new connection.

What a pool knows goes with its client, which is closed when a read fails. So that not each read
waits anew for a bookie that is silent, the pools of a process share ``SilentBookies``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.connection import EntryConnection, RangeConnection, parse_address
from reader.closing import Closing
from reader.model import LedgerMetadata

__all__ = ["LATE_SECONDS", "BookiePool", "SilentBookies"]

_AVOID_SECONDS = 30.0
_LONGEST_AVOID_SECONDS = 120.0
_WITHOUT_RANGES_SECONDS = 600.0  # not forever: bookies are upgraded
# An answer is late after so many times what the quickest other bookie needs, and so many seconds.
_LATE_TIMES = 5
LATE_SECONDS = 0.25


_SILENT_SECONDS = 15.0
_LONGEST_SILENT_SECONDS = 120.0


@dataclass(slots=True)
class _Silence:
    why: str
    times: int
    until: float
    probe: object  # the pool that may ask the bookie meanwhile
    probe_until: float = 0.0


class SilentBookies:
    """The bookies that did not answer one of several pools in time. Thread-safe.

    For a while no other pool asks such a bookie: 15 s, doubled with each silence up to two minutes.
    Then one pool asks it, and the other pools wait for the outcome. Any answer ends it. The
    pool that found the silence goes by what it knows itself: a bookie that trickles may give single
    entries. ``pool``: an object for each pool. ``clock``: seconds, monotonic.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._silences: dict[str, _Silence] = {}

    def allows(self, bookie: str, pool: object) -> bool:
        """Return whether ``pool`` may ask the bookie now."""
        if bookie not in self._silences:
            return True
        with self._lock:
            silence, now = self._silences.get(bookie), self._clock()
            if silence is None or silence.probe is pool:
                return True
            return now >= silence.until and now >= silence.probe_until

    def asked(self, bookie: str, pool: object, seconds: float) -> None:
        """Note that ``pool`` asks the bookie, which has ``seconds`` to answer."""
        if bookie in self._silences:
            with self._lock:
                silence, now = self._silences.get(bookie), self._clock()
                if silence is not None and now >= silence.until and now >= silence.probe_until:
                    silence.probe, silence.probe_until = pool, now + seconds

    def silent(self, bookie: str, pool: object, why: str) -> None:
        """The bookie did not answer ``pool`` in time; ``why`` is a line that names it."""
        with self._lock:
            known, now = self._silences.get(bookie), self._clock()
            if known is not None and now < known.until:
                return  # asked before the silence was known, or by the pool that found it
            times = known.times + 1 if known is not None else 1
            seconds = min(_SILENT_SECONDS * 2 ** (times - 1), _LONGEST_SILENT_SECONDS)
            self._silences[bookie] = _Silence(why, times, now + seconds, pool)

    def answered(self, bookie: str) -> None:
        """The bookie answers, if only with an error of its own."""
        if bookie in self._silences:
            with self._lock:
                self._silences.pop(bookie, None)

    def why(self, bookie: str) -> str:
        """Return what was wrong with the bookie, and when it is asked again; "" if it answers."""
        with self._lock:
            silence = self._silences.get(bookie)
            if silence is None:
                return ""
            left = max(silence.until, silence.probe_until) - self._clock()
            return f"{silence.why}, and is asked again in {max(0.0, left):.0f} s"


class BookiePool(Closing):
    """One connection a bookie and protocol, opened when it is first needed.

    Arguments as of ``BookKeeperClient``. ``entry_connections`` and ``range_connections``: the open
    ones, by bookie id.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        timeout: float,
        password: bytes,
        access: BookieAccess | None = None,
        *,
        silent: SilentBookies | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._silent = silent if silent is not None else SilentBookies(clock=clock)
        self._token = object()
        self.timeout = timeout
        self.clock = clock
        self._addresses = dict(addresses)
        self._password = password
        self._access = access or BookieAccess()
        self.entry_connections: dict[str, EntryConnection] = {}
        self.range_connections: dict[str, RangeConnection] = {}
        self._avoid: dict[str, float] = {}  # until when
        self._failed: dict[str, float] = {}  # when
        self._why: dict[str, str] = {}
        self._without_ranges: dict[str, float] = {}
        self._requests = 0
        self._failures: dict[str, int] = {}  # that it was avoided for, since it last answered
        self._paces: dict[str, float] = {}
        self._late: dict[str, tuple[float, float]] = {}  # until when, and how late it was

    def close(self) -> None:
        """Close all connections."""
        for bookie in [*self.entry_connections, *self.range_connections]:
            self.hang_up(bookie)

    def resume(self, access: BookieAccess | None = None) -> None:
        """To be called before kept connections are used again: closes those that have ended.

        ``access``: of all from now on. Those that were opened with another are closed.
        """
        if access is not None and access != self._access:
            self.close()
            self._access = access
        for known in (self.entry_connections, self.range_connections):
            for bookie, connection in list(known.items()):
                connection.kept = True
                if not connection.stays_idle():
                    self.hang_up(bookie)

    def password_of(self, ledger: LedgerMetadata) -> bytes:
        """The ledger's own password, or the client's."""
        return ledger.password or self._password

    def next_request(self) -> int:
        """A number that no request has had yet."""
        self._requests += 1
        return self._requests

    def connect_for_entries(self, bookie: str) -> EntryConnection:
        """The connection for entry reads. Raises UnavailableError, ConfigurationError."""
        self._silent.asked(bookie, self._token, self.timeout)
        if bookie not in self.entry_connections:
            self.entry_connections[bookie] = EntryConnection(
                *self._address(bookie), self.timeout, self._access
            )
        return self.entry_connections[bookie]

    def connect_for_ranges(self, bookie: str) -> RangeConnection:
        """The connection for range reads. Raises UnavailableError, ConfigurationError."""
        self._silent.asked(bookie, self._token, self.timeout)
        if bookie not in self.range_connections:
            self.range_connections[bookie] = RangeConnection(
                *self._address(bookie), self.timeout, self._access
            )
        return self.range_connections[bookie]

    def hang_up_owing(self) -> None:
        """Close the connections of bookies that owe answers, which the next run would read."""
        for known in (self.entry_connections, self.range_connections):
            for bookie in [one for one, kept in known.items() if kept.owed.count]:
                self.hang_up(bookie)

    def _address(self, bookie: str) -> tuple[str, int]:
        return parse_address(bookie, self._addresses.get(bookie, bookie))

    def hang_up(self, bookie: str) -> None:
        """Close its connections: answers that are outstanding will never be read."""
        for connection in (
            self.entry_connections.pop(bookie, None),
            self.range_connections.pop(bookie, None),
        ):
            if connection is not None:
                connection.close()

    def drop(self, bookie: str, why: str, *, silent: bool = False) -> bool:
        """The bookie failed: close its connections, and avoid it for a while.

        Returns True where only a kept connection had ended: the bookie is not avoided and may be
        asked again, once. ``silent``: it did not answer in time, which no kept connection excuses.
        """
        mine = (self.entry_connections.get(bookie), self.range_connections.get(bookie))
        if not silent and any(one is not None and one.kept for one in mine):
            self.hang_up(bookie)
            return True
        self._why[bookie] = why
        self._late.pop(bookie, None)
        if self.is_fine(bookie) or bookie not in self._failures:
            self._failures[bookie] = self._failures.get(bookie, 0) + 1
        avoided = min(_AVOID_SECONDS * 2 ** (self._failures[bookie] - 1), _LONGEST_AVOID_SECONDS)
        self._failed[bookie] = self.clock()
        self._avoid[bookie] = self.clock() + avoided
        if silent:
            self._silent.silent(bookie, self._token, why)
        else:  # it refuses at once
            self._silent.answered(bookie)
        self.hang_up(bookie)
        return False

    def why(self, bookie: str) -> str:
        """The reason of its last failure, a line that names the bookie."""
        return self._silent.why(bookie) or self._why.get(bookie, f"bookie {bookie} failed")

    def avoid_range_reads(self, bookie: str) -> None:
        """The bookie does not support range reads: use entry reads, for 10 minutes."""
        self._without_ranges[bookie] = self.clock() + _WITHOUT_RANGES_SECONDS

    def best(self, replicas: Iterable[str]) -> str | None:
        """The first that has not failed recently; late ones are the last. None of none.

        Where all have failed, the one that failed longest ago, unless all are silent.
        """
        left = list(filter(self.may_ask, replicas))
        return next(filter(self.is_well, left), None) or next(
            filter(self.is_fine, left),
            min(left, key=lambda one: self._failed.get(one, 0.0), default=None),
        )

    def best_for_ranges(self, replicas: Iterable[str]) -> str | None:
        """The first that has not failed recently and may know range reads; None without any."""
        now = self.clock()
        left = [one for one in replicas if self._without_ranges.get(one, 0.0) <= now]
        return next(filter(self.is_well, left), None) or next(filter(self.is_fine, left), None)

    def is_well(self, bookie: str) -> bool:
        """Whether it has not failed recently, and is not late."""
        until, waited = self._late.get(bookie, (0.0, 0.0))
        late = until > self.clock() and waited >= self.late_after(bookie)
        return not late and self.is_fine(bookie)

    def is_fine(self, bookie: str) -> bool:
        """Return whether it has not failed recently, and is not silent for another pool."""
        return self._avoid.get(bookie, 0.0) <= self.clock() and self.may_ask(bookie)

    def may_ask(self, bookie: str) -> bool:
        """Return whether the bookie is not known as silent, or it is time to ask it again."""
        return self._silent.allows(bookie, self._token)

    # -- stragglers ----------------------------------------------------------------------------

    def took(self, bookie: str, seconds: float) -> None:
        """An answer came; the oldest that the bookie owed had waited so long."""
        self._failures.pop(bookie, None)
        self._silent.answered(bookie)
        pace = self._paces.get(bookie, seconds)
        self._paces[bookie] = pace + (seconds - pace) / 4
        if seconds < self.late_after(bookie):
            self._late.pop(bookie, None)

    def late_after(self, bookie: str) -> float:
        """Seconds that others would not need for an answer, by far."""
        others = [pace for one, pace in self._paces.items() if one != bookie]
        usual = _LATE_TIMES * min(others, default=0.0)
        return min(self.timeout / 2, max(LATE_SECONDS, usual))

    def is_late(self, bookie: str, waits: float) -> bool:
        """Whether an answer is late that it owes for ``waits`` seconds: others are asked first."""
        if waits < self.late_after(bookie):
            return False
        # What it took before it got stuck is no measure for others.
        self._paces[bookie] = max(self._paces.get(bookie, 0.0), waits)
        self._late[bookie] = (self.clock() + _AVOID_SECONDS, waits)
        return True
