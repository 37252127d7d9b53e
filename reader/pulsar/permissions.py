"""Whether we may consume a topic: nothing that BookKeeper or the storage gives knows of it."""

from collections.abc import Callable

import httpx

from reader.errors import ConfigurationError, UnknownBrokerError
from reader.model import Partition, Topic
from reader.pulsar.credentials import Identity
from reader.pulsar.http import AdminHttp, reason_of

_NO_TENANT = "Tenant does not exist"
"""Where authorization is on, of a tenant that is not there nobody is told that it is refused."""


class ConsumePermission:
    """Asks the broker, and believes a yes for ``kept_seconds``. ``clock``: seconds. Thread-safe."""

    def __init__(self, http: AdminHttp, kept_seconds: float, clock: Callable[[], float]) -> None:
        self._http = http
        self._kept_seconds = kept_seconds
        self._clock = clock
        self._allowed: dict[tuple[Topic, Identity], float] = {}

    def require(self, topic: Topic) -> None:
        """Raise ConfigurationError unless the broker lets us consume the topic.

        Its subscriptions are what the broker tells exactly those who may consume it, a producer
        not. It is asked of a partition, which has the topic's permissions: a topic without
        partitions need not be loaded for that, as the broker looks at the permission first, and
        "there is no such topic" is a yes.
        """
        key = (topic, self._http.identity())
        if key in self._unexpired():
            return
        try:
            answer = self._subscriptions(Partition(topic, 0))
        except UnknownBrokerError:
            # Where topics are not made on first use, a partition that is not there cannot be
            # looked up. A topic without partitions can.
            answer = self._subscriptions(Partition(topic, -1))
        refused = answer.status_code in (401, 403) or (
            answer.status_code == 404 and _NO_TENANT in reason_of(answer)
        )
        if refused:
            raise ConfigurationError(
                f"no permission to consume topic {topic}",
                hint="grant the role consume on the topic or its namespace; "
                f"the broker says: {reason_of(answer)}",
            )
        if answer.status_code != 404:
            self._http.check(answer, f"topic {topic}")
        self._allowed = self._unexpired() | {key: self._clock()}

    def _subscriptions(self, partition: Partition) -> httpx.Response:
        path = f"/admin/v2/persistent/{partition.rest_path}/subscriptions"
        return self._http.request("GET", path)

    def _unexpired(self) -> dict[tuple[Topic, Identity], float]:
        now = self._clock()
        return {
            key: since for key, since in self._allowed.items() if now - since < self._kept_seconds
        }
