"""Pulsar's admin REST: one client of what the modules of this package ask, by concern."""

import time
from collections.abc import Callable

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.model import Topic
from reader.pulsar.entries import EntryRequests
from reader.pulsar.http import AdminHttp
from reader.pulsar.ledgers import LedgerRequests
from reader.pulsar.permissions import ConsumePermission
from reader.pulsar.policies import PolicyRequests
from reader.pulsar.subscriptions import SubscriptionRequests
from reader.pulsar.topics import SchemaRequests, TopicRequests
from reader.pulsar.transactions import TransactionRequests

_ALLOWED_SECONDS = 10.0


class AdminClient(
    Closing,
    TopicRequests,
    LedgerRequests,
    EntryRequests,
    SchemaRequests,
    PolicyRequests,
    SubscriptionRequests,
    TransactionRequests,
):
    """One pool of HTTP connections to the admin REST; thread-safe; a context manager.

    ``allowed_seconds``: so long a permission to consume is believed without asking again.
    ``http``: the connections, if not its own. ``clock`` and ``sleep``: seconds.
    All requests raise NotFoundError for what is not there, ConfigurationError for what is refused,
    and UnavailableError where nobody answers.
    """

    def __init__(
        self,
        config: PulsarConfig,
        *,
        allowed_seconds: float = _ALLOWED_SECONDS,
        http: AdminHttp | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(http or AdminHttp(config, clock=clock), clock=clock, sleep=sleep)
        self._permission = ConsumePermission(self.http, allowed_seconds, clock)

    def close(self) -> None:
        """Give up the connections."""
        self.http.close()

    def require_consume(self, topic: Topic) -> None:
        """Raise ConfigurationError unless the broker lets us consume the topic."""
        self._permission.require(topic)
