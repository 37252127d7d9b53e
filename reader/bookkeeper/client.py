"""BookKeeperClient: reads entries of ledgers from their bookies, over sockets.

``reads.LedgerReads`` decides what is asked of which bookie. The client sends, waits and receives.
"""

import itertools
import math
import select
import time
from collections.abc import Callable, Generator, Iterable, Mapping

from reader.bookkeeper.bookie_connections import BookieConnections
from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.connection import timed_out
from reader.bookkeeper.reads import BookieHealth, LedgerReads, SilentBookies, read_messages
from reader.closing import Closing
from reader.errors import ConfigurationError, CorruptError, PulsarLakeError, UnavailableError
from reader.model import EntryBlock, LedgerMetadata


class BookKeeperClient(Closing):
    """A reader of ledgers, for one thread; a context manager.

    ``addresses``: addresses of bookies whose ids are not ``host:port`` themselves. ``timeout``:
    seconds that a bookie may stay silent while an answer is outstanding. ``password``: of ledgers
    whose metadata has none. ``access``: TLS and identity. ``silent``: shared by the clients of a
    process. ``clock``: seconds, monotonic. ``health``: what is known about the bookies.
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
        self.health = BookieHealth(timeout, silent or SilentBookies())
        self._connections = BookieConnections(addresses or {}, timeout, access)
        self._password = password
        self._clock = clock
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def resume(self, access: BookieAccess | None = None) -> None:
        """Prepare the client for use after a while: see ``BookieConnections.resume``."""
        self._connections.resume(access)

    def read(
        self, ledger: LedgerMetadata, first: int, last: int, *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Yield entries first..last (inclusive) of one ledger: see ``read_ranges``."""
        return self.read_ranges([(ledger, first, last)], block_bytes=block_bytes)

    def read_ranges(
        self, ranges: Iterable[tuple[LedgerMetadata, int, int]], *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Yield ranges (ledger, first entry, last entry) in their order, in blocks.

        A block has about ``block_bytes`` and entries of one range, ascending and without a gap. An
        empty range has no block. Some ``ranges`` are taken and requested ahead of their turn. An
        error is raised after all blocks of the ranges before it, and ends the generator. An entry
        of which every copy fails its digest is delivered and named in ``EntryBlock.damaged``.

        Raises NotFoundError if every replica answers that there is no such ledger.
        Raises UnavailableError if an entry's replicas do not answer.
        Raises CorruptError if all replicas of an entry answer that they do not have it.
        Raises UnsupportedError if the type of a ledger's digest is unknown.
        Raises ConfigurationError if a bookie refuses the client, and if no entry of a block passes
        a digest with a password.
        """
        reads = LedgerReads(
            ranges, self.health, self._numbers, block_bytes=block_bytes, password=self._password
        )
        try:
            while (action := reads.next_action(self._clock())) is not None:
                if isinstance(action, read_messages.Deliver):
                    yield action.block
                elif isinstance(action, read_messages.Wait):
                    self._wait(action, reads)
                elif isinstance(action, read_messages.Disconnect):
                    self._connections.disconnect(action.bookie)
                else:
                    self._send(action, reads)
        finally:
            # The next run would read the outstanding answers.
            for bookie in reads.unanswered_bookies():
                self._connections.disconnect(bookie)

    def _send(self, action: read_messages.Send, reads: LedgerReads) -> None:
        bookie, kind = action.bookie, action.kind
        try:
            self._connections.connect(bookie, kind).request(action.reads)
        except (UnavailableError, CorruptError) as error:
            reads.receive(self._failure(bookie, error), self._clock())
        except ConfigurationError as error:
            reads.refuse(bookie, kind, error)

    def _wait(self, wait: read_messages.Wait, reads: LedgerReads) -> None:
        """Receive from all bookies that have sent something."""
        poll = select.poll()
        connections = {}
        for bookie, kind in wait.connections:
            connection = self._connections.connect(bookie, kind)
            connections[connection.fileno()] = (bookie, kind, connection)
            poll.register(connection.fileno(), select.POLLIN)
        ready = poll.poll(math.ceil(wait.seconds * 1000))
        now = self._clock()  # what takes time from here on is the client's own
        for descriptor, _ in ready:
            bookie, kind, connection = connections[descriptor]
            if connection.fileno() >= 0:  # the bookie has not failed
                before = connection.received
                event: read_messages.Arrival | read_messages.BookieFailure
                try:
                    answers = connection.receive()
                    event = read_messages.Arrival(
                        bookie, kind, connection.received - before, answers
                    )
                except (UnavailableError, CorruptError) as error:
                    event = self._failure(bookie, error)
                reads.receive(event, now)
        reads.end_wait(now)

    def _failure(self, bookie: str, error: PulsarLakeError) -> read_messages.BookieFailure:
        """Close the connections to a bookie, and return why."""
        failure = read_messages.BookieFailure(
            bookie,
            error,
            is_silent=timed_out(error),
            was_kept=self._connections.is_kept(bookie),
            rejects_ranges=self._connections.rejects_ranges(bookie),
        )
        self._connections.disconnect(bookie)
        return failure
