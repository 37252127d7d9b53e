"""The bookies of a client: its connections to them, and which of them failed recently.

A bookie that failed is avoided for a while, a longer one where it has not answered since the last.
One that does not support range reads gets entry reads alone, for a longer while. One whose answers
are late, compared with the others', is asked last for a while, or until it answers in time. A
connection that was kept between two uses may have been closed by the other side: that is not a
failure of the bookie, which is asked again on a new connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.connection import EntryConnection, RangeConnection, parse_address
from reader.closing import Closing
from reader.model import LedgerMetadata

__all__ = ["LATE_SECONDS", "BookiePool"]

_AVOID_SECONDS = 30.0
_LONGEST_AVOID_SECONDS = 120.0
_WITHOUT_RANGES_SECONDS = 600.0  # not forever: bookies are upgraded
# An answer is late after so many times what the quickest other bookie needs, and so many seconds.
_LATE_TIMES = 5
LATE_SECONDS = 0.25


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
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
        if bookie not in self.entry_connections:
            self.entry_connections[bookie] = EntryConnection(
                *self._address(bookie), self.timeout, self._access
            )
        return self.entry_connections[bookie]

    def connect_for_ranges(self, bookie: str) -> RangeConnection:
        """The connection for range reads. Raises UnavailableError, ConfigurationError."""
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
        self.hang_up(bookie)
        return False

    def why(self, bookie: str) -> str:
        """The reason of its last failure, a line that names the bookie."""
        return self._why[bookie]

    def avoid_range_reads(self, bookie: str) -> None:
        """The bookie does not support range reads: use entry reads, for 10 minutes."""
        self._without_ranges[bookie] = self.clock() + _WITHOUT_RANGES_SECONDS

    def best(self, replicas: Iterable[str]) -> str | None:
        """The first that has not failed recently; late ones are the last. None of none.

        Where all have failed, the one that failed longest ago.
        """
        left = list(replicas)
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
        """Whether it has not failed recently."""
        return self._avoid.get(bookie, 0.0) <= self.clock()

    # -- stragglers ----------------------------------------------------------------------------

    def took(self, bookie: str, seconds: float) -> None:
        """An answer came; the oldest that the bookie owed had waited so long."""
        self._failures.pop(bookie, None)
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
