"""What sources ask of the clients: the part of ``reader.clients.Clients`` that this room needs.

``Clients`` satisfies the protocol without importing this room; tests give their own.
"""

from contextlib import AbstractContextManager
from typing import Protocol

from reader.bookkeeper import BookKeeperClient
from reader.config import ReadConfig
from reader.decode import Decryption
from reader.model import Topic
from reader.pulsar import AdminClient
from reader.pulsar.binary import BrokerClient
from reader.storage import Storage
from reader.tiered import TieredLedgers


class SourceClients(Protocol):
    """What is lent is for one thread; ``decryption`` is None without keys."""

    @property
    def settings(self) -> ReadConfig: ...
    @property
    def admin(self) -> AdminClient: ...
    @property
    def storage(self) -> Storage: ...
    @property
    def has_storage(self) -> bool: ...
    @property
    def tiered(self) -> TieredLedgers: ...
    def decryption(self, topic: Topic) -> Decryption | None: ...
    def bookies(self) -> AbstractContextManager[BookKeeperClient]: ...
    def broker(self) -> AbstractContextManager[BrokerClient]: ...
