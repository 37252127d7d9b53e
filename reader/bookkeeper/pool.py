"""The bookies that a client talks to: its connections, and who failed lately.

A bookie that failed is passed over for a while. One that does not answer batches is only asked for
single entries for a longer while. A connection that was kept between two uses may have been closed
by the other side: that is not a failure of the bookie, which is asked again on a new one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from reader.bookkeeper.connection import BatchConnection, Connection, parse_address
from reader.bookkeeper.handshake import BookieAccess
from reader.closing import Closing
from reader.model import LedgerMetadata

__all__ = ["Bookies"]

_AVOID_SECONDS = 30.0
_WITHOUT_BATCHES_SECONDS = 600.0  # bookies are upgraded


class Bookies(Closing):
    """One connection a bookie and protocol, made when it is first needed.

    Arguments as of ``BookKeeperClient``.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        timeout: float,
        password: bytes,
        access: BookieAccess | None = None,
    ) -> None:
        self.timeout = timeout
        self._addresses = dict(addresses)
        self._password = password
        self._access = access or BookieAccess()
        self._singles: dict[str, Connection] = {}
        self._batches: dict[str, BatchConnection] = {}
        self._avoid: dict[str, float] = {}
        self._why: dict[str, str] = {}
        self._without_batches: dict[str, float] = {}
        self._requests = 0

    def close(self) -> None:
        """Close all connections."""
        for bookie in [*self._singles, *self._batches]:
            self.hang_up(bookie)

    def resume(self) -> None:
        """Before connections that were kept are used again: hang up those that have ended."""
        for known in (self._singles, self._batches):
            for bookie, connection in list(known.items()):
                connection.kept = True
                if not connection.stays_idle():
                    self.hang_up(bookie)

    def password_of(self, ledger: LedgerMetadata) -> bytes:
        return ledger.password or self._password

    def next_request(self) -> int:
        """A number that no request has had yet."""
        self._requests += 1
        return self._requests

    def connect(self, bookie: str) -> Connection:
        """For single reads. Raises UnavailableError, ConfigurationError."""
        if bookie not in self._singles:
            self._singles[bookie] = Connection(*self._address(bookie), self.timeout, self._access)
        return self._singles[bookie]

    def connect_for_batches(self, bookie: str) -> BatchConnection:
        """For batch reads. Raises UnavailableError, ConfigurationError."""
        if bookie not in self._batches:
            self._batches[bookie] = BatchConnection(
                *self._address(bookie), self.timeout, self._access
            )
        return self._batches[bookie]

    def is_open(self, bookie: str, connection: BatchConnection) -> bool:
        """Whether this is still the bookie's connection for batches."""
        return self._batches.get(bookie) is connection

    def _address(self, bookie: str) -> tuple[str, int]:
        return parse_address(bookie, self._addresses.get(bookie, bookie))

    def hang_up(self, bookie: str) -> None:
        """Close its connections: what it still owes will never be read."""
        for connection in (self._singles.pop(bookie, None), self._batches.pop(bookie, None)):
            if connection is not None:
                connection.close()

    def drop(self, bookie: str, why: str, *, silent: bool = False) -> bool:
        """The bookie failed: close, and pass it over for a while.

        True: only a connection that was kept has broken (``silent``: it has not broken, but says
        nothing); the bookie may be asked again, once.
        """
        mine = (self._singles.get(bookie), self._batches.get(bookie))
        if not silent and any(one is not None and one.kept for one in mine):
            self.hang_up(bookie)
            return True
        self._why[bookie] = why
        self._avoid[bookie] = time.monotonic() + _AVOID_SECONDS
        self.hang_up(bookie)
        return False

    def why(self, bookie: str) -> str:
        """What it failed of last, a line that names it."""
        return self._why[bookie]

    def has_no_batches(self, bookie: str) -> None:
        """The bookie does not know batch reads."""
        self._without_batches[bookie] = time.monotonic() + _WITHOUT_BATCHES_SECONDS

    def best(self, replicas: Iterable[str]) -> str | None:
        """The first that did not fail lately, or else the first."""
        left = list(replicas)
        return next((one for one in left if self._fine(one)), left[0] if left else None)

    def best_for_batches(self, replicas: Iterable[str]) -> str | None:
        """The first that did not fail lately and may know batch reads."""
        now = time.monotonic()
        left = (one for one in replicas if self._without_batches.get(one, 0.0) <= now)
        return next((one for one in left if self._fine(one)), None)

    def _fine(self, bookie: str) -> bool:
        return self._avoid.get(bookie, 0.0) <= time.monotonic()
