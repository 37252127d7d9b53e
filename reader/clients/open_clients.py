"""Everything that is expensive to open: once a process, when first needed, for all who read.

Spark's tasks carry settings, which are values, and ask ``process_clients`` for the clients of the
process that they run in. A forked child begins with none: what its parent opened, it neither uses
nor closes.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from reader.clients.lending import Lender
from reader.closing import Closing
from reader.config import PulsarConfig, ReadConfig
from reader.model import Topic
from reader.private_keys import open_decryption
from reader.pulsar import AdminClient
from reader.rotation import Rotating
from reader.storage import Storage, open_storage
from reader.tls import client_context

if TYPE_CHECKING:
    from reader.bookkeeper import BookieAccess, BookKeeperClient, SilentBookies
    from reader.decode import Decryption
    from reader.pulsar.binary import BrokerClient, Publisher
    from reader.table import FollowedTables, TopicTable
    from reader.tiered import TieredLedgers

_MOST_SETTINGS = 16


class Clients(Closing):
    """The clients of one configuration. Thread-safe; never pickled.

    ``admin`` and ``storage``, where given, belong to who gave them: they are used, and not closed.
    ``clock`` (s) tells how long something has been idle. After ``close``, what is asked for is
    opened anew; so is what was kept, once a token, password or certificate has been rotated.
    """

    def __init__(
        self,
        settings: ReadConfig,
        *,
        admin: AdminClient | None = None,
        storage: Storage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = ReadConfig.load(settings)
        self._given = admin
        self._admin: AdminClient | None = None
        self._storage = storage
        self._tables: FollowedTables | None = None
        self._tiered: TieredLedgers | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._access = self._rotating_access()
        self._silent: SilentBookies | None = None
        self._bookies: Lender[BookKeeperClient] = Lender(
            self._open_bookies, on_lend=lambda one: one.resume(self._access.current()), clock=clock
        )
        self._brokers: Lender[BrokerClient] = Lender(
            self._open_broker,
            on_lend=lambda one: one.resume(),
            on_return=lambda one: one.release(),
            clock=clock,
        )
        self._publishers: Lender[Publisher] = Lender(
            self._open_publisher, on_lend=lambda one: one.resume(), clock=clock
        )
        _all.add(self)

    @property
    def admin(self) -> AdminClient:
        """The client of Pulsar's admin REST. Raises ConfigurationError for settings of no use."""
        if self._given is not None:
            return self._given
        with self._lock:
            if self._admin is None:
                self._admin = AdminClient(self.settings.pulsar)
            return self._admin

    @property
    def storage(self) -> Storage:
        """Where the tables are. Raises ConfigurationError where ``storage.uri`` is not set."""
        with self._lock:
            if self._storage is None:
                self._storage = open_storage(self.settings.storage)
            return self._storage

    @property
    def tiered(self) -> TieredLedgers:
        """What Pulsar's own tiered storage has, where ``[[tiered]]`` says."""
        from reader.tiered import TieredLedgers  # kernels: not where it is planned

        with self._lock:
            if self._tiered is None:
                self._tiered = TieredLedgers(self.settings.tiered)
            return self._tiered

    def newest_table(self, topic: Topic) -> TopicTable | None:
        """The newest version of a topic's table; None where there is none, or no storage.

        Files and all of a version that was asked for before, if it still is the newest. Raises as
        ``TopicTable.open`` does.
        """
        if not self.has_storage:
            return None
        from reader.table import MOST_FILES, FollowedTables  # not where it is only read

        storage = self.storage
        with self._lock:
            if self._tables is None:
                self._tables = FollowedTables(storage, most_files=MOST_FILES)
            tables = self._tables
        return tables.newest(topic)

    @property
    def has_storage(self) -> bool:
        """Whether there is one: queries can do without."""
        return self._storage is not None or bool(self.settings.storage.uri)

    def decryption(self, topic: Topic) -> Decryption | None:
        """What opens a topic's encrypted entries, for one read in one thread; None without keys.

        A new one each time: keys are read afresh, and what was opened is forgotten with it.
        """
        return open_decryption(self.settings.encryption, topic.full_name)

    def bookies(self) -> AbstractContextManager[BookKeeperClient]:
        """Lends a client of the bookies, which is for one thread, and keeps it for the next.

        Raises ConfigurationError for files of ``[pulsar.bookkeeper]`` that cannot be used.
        """
        return self._bookies.lend()

    def bookie_access(self) -> BookieAccess:
        """With what connections to bookies are opened now. Raises as ``bookies``."""
        return self._access.current()

    def broker(self) -> AbstractContextManager[BrokerClient]:
        """Lends a client of the broker, for one thread, and keeps its connection for the next."""
        return self._brokers.lend()

    def publisher(self) -> AbstractContextManager[Publisher]:
        """Lends what opens producers, for one thread, and keeps its connections for the next."""
        return self._publishers.lend()

    def close(self) -> None:
        """Close what is open and not lent."""
        self._publishers.close()
        self._bookies.close()
        self._brokers.close()
        with self._lock:
            admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.close()

    def forget(self) -> list[Any]:
        """Drop all clients without closing them, after a fork; returns them.

        Closing says goodbye on the parent's connections, and waits for threads that a child does
        not have.
        """
        found: list[Any] = [*self._bookies.forget(), *self._brokers.forget(), self._storage]
        found += self._publishers.forget()
        found += [self._admin, self._given]
        found += [self._tables, self._tiered]
        self._lock, self._admin, self._given, self._tables = threading.Lock(), None, None, None
        self._tiered = self._silent = None
        self._access = self._rotating_access()
        if self._storage is not None:
            self._storage = open_storage(self._storage.config)
        return found

    def _rotating_access(self) -> Rotating[BookieAccess]:
        pulsar = self.settings.pulsar
        return Rotating(
            lambda: _bookie_access(pulsar),
            pulsar.bookkeeper.tls_trust_certs_file,
            pulsar.bookkeeper.tls_certificate_file,
            pulsar.bookkeeper.tls_key_file,
            pulsar.bookkeeper.sasl_password_file,
            clock=self._clock,
        )

    def _open_bookies(self) -> BookKeeperClient:
        from reader.bookkeeper import BookKeeperClient, SilentBookies  # kernels: not where planned

        with self._lock:
            if self._silent is None:
                self._silent = SilentBookies()
            silent = self._silent
        pulsar = self.settings.pulsar
        return BookKeeperClient(
            access=self._access.current(),
            addresses=pulsar.bookies,
            timeout=pulsar.bookie_timeout.total_seconds(),
            password=pulsar.bookkeeper_password.get_secret_value().encode(),
            silent=silent,
        )

    def _open_broker(self) -> BrokerClient:
        from reader.pulsar.binary import BrokerClient  # not where it is planned

        return BrokerClient(self.settings.pulsar)

    def _open_publisher(self) -> Publisher:
        from reader.pulsar.binary import Publisher

        return Publisher(self.settings.pulsar)


def _bookie_access(pulsar: PulsarConfig) -> BookieAccess:
    from reader.bookkeeper import BookieAccess

    bookkeeper = pulsar.bookkeeper
    return BookieAccess(
        tls=client_context(
            "pulsar.bookkeeper",
            trust=bookkeeper.tls_trust_certs_file,
            certificate=bookkeeper.tls_certificate_file,
            key=bookkeeper.tls_key_file,
            verify_hostname=bookkeeper.tls_verify_hostname,
        )
        if bookkeeper.tls
        else None,
        user=bookkeeper.sasl_user,
        password=bookkeeper.sasl_secret(),
    )


# -- of this process -------------------------------------------------------------------------------

_all: WeakSet[Clients] = WeakSet()
_of_process: list[Clients] = []  # the one used last comes last
_of_parent: list[Any] = []
_lock = threading.Lock()


def process_clients(settings: ReadConfig) -> Clients:
    """The clients of this process for these settings: the same ones for equal settings.

    Closed when the process ends. Of very many settings, those that were not used for longest are
    dropped, and closed by who uses them last.
    """
    with _lock:
        settings = ReadConfig.load(settings)
        found = next((one for one in _of_process if one.settings == settings), None)
        if found is None:
            found = Clients(settings)
        else:
            _of_process.remove(found)
        _of_process.append(found)
        del _of_process[:-_MOST_SETTINGS]
        return found


def close_process_clients() -> None:
    """Close them all, as at the end of the process; the next one to ask gets new ones."""
    with _lock:
        found = _of_process[:]
        _of_process.clear()
    for one in found:
        one.close()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _of_process.clear()
    for one in list(_all):
        # Kept for good: at the last reference they would be closed.
        _of_parent.extend(one.forget())


atexit.register(close_process_clients)
os.register_at_fork(after_in_child=_in_child)
