"""BookieConnections: the open connections of one client, one for each bookie and kind of read."""

from collections.abc import Mapping

from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.connection import EntryConnection, RangeConnection, parse_address
from reader.bookkeeper.reads.read_messages import ReadKind
from reader.closing import Closing


class BookieConnections(Closing):
    """Connections that are opened when they are first needed, and kept between runs.

    A kept connection may have been closed by the bookie: that is not a failure of the bookie.
    Arguments are as of ``BookKeeperClient``.
    """

    def __init__(
        self, addresses: Mapping[str, str], timeout: float, access: BookieAccess | None = None
    ) -> None:
        self._addresses = dict(addresses)
        self._timeout = timeout
        self._access = access or BookieAccess()
        self._open: dict[tuple[str, ReadKind], EntryConnection | RangeConnection] = {}

    def close(self) -> None:
        """Close all connections."""
        for bookie, _ in [*self._open]:
            self.disconnect(bookie)

    def resume(self, access: BookieAccess | None = None) -> None:
        """Close the connections that have ended, and those that were opened with other access.

        ``access``: of all connections from now on.
        """
        if access is not None and access != self._access:
            self.close()
            self._access = access
        for (bookie, _), connection in list(self._open.items()):
            connection.is_kept = True
            if connection.fileno() >= 0 and not connection.stays_idle():
                self.disconnect(bookie)

    def connect(self, bookie: str, kind: ReadKind) -> EntryConnection | RangeConnection:
        """Return the connection for reads of a kind.

        Raises UnavailableError if the bookie does not answer.
        Raises ConfigurationError if its id is no address, or it refuses the client.
        """
        connection = self._open.get((bookie, kind))
        if connection is None:
            address = parse_address(bookie, self._addresses.get(bookie, bookie))
            opens = EntryConnection if kind is ReadKind.ENTRY else RangeConnection
            connection = self._open[bookie, kind] = opens(*address, self._timeout, self._access)
        return connection

    def is_kept(self, bookie: str) -> bool:
        """Return whether a connection was idle between two runs, and has not answered since."""
        return any(connection.is_kept for connection in self._of(bookie))

    def rejects_ranges(self, bookie: str) -> bool:
        """Return whether the bookie closed the connection for range reads without any answer.

        An older bookie does so. A bookie that is down or silent is no older one.
        """
        connection = self._open.get((bookie, ReadKind.RANGE))
        return connection is not None and connection.has_ended and not connection.has_answered

    def disconnect(self, bookie: str) -> None:
        """Close the connections to a bookie: answers that are outstanding are never read."""
        for kind in ReadKind:
            if connection := self._open.pop((bookie, kind), None):
                connection.close()

    def _of(self, bookie: str) -> list[EntryConnection | RangeConnection]:
        return [connection for (of, _), connection in self._open.items() if of == bookie]
