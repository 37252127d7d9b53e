"""What Pulsar would delete by itself, and how its compaction works: policies as they apply.

Endpoints: policies of ``persistent`` and ``namespaces``, and ``brokers/configuration`` of the REST
API's v2.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from reader.errors import ConfigurationError
from reader.model import Partition, Topic
from reader.pulsar.http import AdminPart


class PolicyRequests(AdminPart):
    """Settings of topics, namespaces and the broker."""

    def compaction_retains_null_keys(self) -> bool:
        """The broker's ``topicCompactionRetainNullKey``. Asking takes an administrator's role."""
        try:
            found = self._broker_settings
        except ConfigurationError as error:
            raise ConfigurationError(
                "cannot ask the broker whether its compaction retains messages without a key",
                hint="set query.compaction_retain_null_key as topicCompactionRetainNullKey is",
            ) from error
        return str(found.get("topicCompactionRetainNullKey", "false")).lower() == "true"

    @cached_property
    def _broker_settings(self) -> Mapping[str, str]:
        path = "/admin/v2/brokers/configuration/runtime"
        return dict(self.http.get(path, "the broker's settings"))

    def message_ttl(self, topic: Topic) -> int | None:
        """Seconds after which messages expire, whoever needs them; None or 0: never.

        As it applies: the topic's, else its namespace's, else the broker's.
        """
        found = self._policy(f"persistent/{topic.rest_path}/messageTTL", topic)
        return None if found is None else int(found)

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]:
        """Limits of what waits for subscriptions, as they apply: type → {policy, limitSize, …}."""
        return self._policy(f"persistent/{topic.rest_path}/backlogQuotaMap", topic) or {}

    def subscription_expiry(self, topic: Topic) -> int | None:
        """Minutes after which Pulsar deletes idle subscriptions; None or 0: never.

        The namespace's, else the broker's, which only superusers are told.
        """
        namespace = "/".join(topic.rest_path.split("/")[:2])
        found = self._policy(f"namespaces/{namespace}/subscriptionExpirationTime", topic)
        if found is None:
            with suppress(ConfigurationError):
                found = self._broker_settings.get("subscriptionExpirationTimeMinutes")
        return None if found is None else int(found)

    def deduplicates(self, partition: Partition) -> bool:
        """Whether the partition's broker drops now what it has already of a producer's name."""
        path = f"/admin/v2/persistent/{partition.rest_path}/stats"
        few = {"getPreciseBacklog": "false", "excludePublishers": "true"}
        stats = self.http.get(path, f"topic {partition}", **few)
        return str(stats.get("deduplicationStatus")) == "Enabled"

    def enable_deduplication(self, topic: Topic) -> None:
        """Turn it on for the topic; its brokers come round to it later."""
        path = f"/admin/v2/persistent/{topic.rest_path}/deduplicationEnabled"
        self.http.send("POST", path, f"deduplication of topic {topic}", True)

    def max_message_size(self, topic: Topic) -> int | None:
        """Bytes of an entry that the topic takes at most; None: what its broker takes.

        Only administrators of the tenant are told; None for all others, too.
        """
        path = f"/admin/v2/persistent/{topic.rest_path}/maxMessageSize"
        answer = self.http.request("GET", path)
        # 405: the broker has no policies of topics.
        if answer.status_code in (401, 403, 405):
            return None
        found = self.http.check(answer, f"topic {topic}")
        return int(found.json()) or None if found.content.strip() else None

    def retention(self, topic: Topic) -> tuple[int, int]:
        """(minutes, MB) of what Pulsar keeps that nobody needs any more; -1: all of it.

        As it applies: the topic's, else its namespace's, else the broker's.
        """
        found = self._policy(f"persistent/{topic.rest_path}/retention", topic) or {}
        return int(found.get("retentionTimeInMinutes", 0)), int(found.get("retentionSizeInMB", 0))

    def set_retention(self, topic: Topic, minutes: int, megabytes: int) -> None:
        """What Pulsar keeps of a topic that nobody needs any more; -1: all of it."""
        path = f"/admin/v2/persistent/{topic.rest_path}/retention"
        body = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
        self.http.send("POST", path, f"the retention of topic {topic}", body)

    def _policy(self, path: str, topic: Topic) -> Any:
        answer = self.http.request("GET", f"/admin/v2/{path}", params={"applied": "true"})
        found = self.http.check(answer, f"topic {topic}")
        return found.json() if found.content else None
