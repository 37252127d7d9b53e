"""Which topics the offloader serves: names and patterns, looked up in Pulsar's lists."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from offloader.model import is_pattern, matches
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar import TopicRequests

_MOST_WAIT_SECONDS = 5.0
"""How long a round waits in all for servers that do not tell a named topic's partitions."""


def find_topics(
    admin: TopicRequests,
    names: Sequence[str],
    *,
    on_unmatched: Callable[[str], None] = lambda text: None,
) -> list[Topic]:
    """The topics that ``names`` stand for, each once, in order.

    ``on_unmatched`` gets a line for each pattern that matches no topic.
    Raises ConfigurationError for a bad name, or none, and what ``Lookup.find`` raises.
    """
    lookup = Lookup(admin)
    found: dict[Topic, None] = {}
    for pattern in parse_names(names):
        named = not is_pattern(pattern.local_name)
        matched = [pattern] if named else list(lookup.find(pattern))
        if not matched:
            on_unmatched(f"pattern {pattern} matches no topic")
        found |= dict.fromkeys(matched)
    return list(found)


def parse_names(names: Sequence[str]) -> list[Topic]:
    """The names as topics whose parts may be patterns. Raises ConfigurationError."""
    if not names:
        raise ConfigurationError(
            "no topic to offload", hint="name some, or set offload.topics in the configuration"
        )
    return [Topic.parse(name) for name in names]


def by_failure(patterns: Iterable[Topic], failed_at: Mapping[Topic, float]) -> list[Topic]:
    """Return the patterns in the order in which to look them up.

    Topics whose last question failed come last, the longest ago first.
    """
    return sorted(patterns, key=lambda pattern: failed_at.get(pattern, -math.inf))


class Lookup:
    """Pulsar's lists as they are now; each namespace is asked for once (two requests), and so is
    each topic that is named without wildcards.

    ``before_request`` is called before each of them: many lists may take their time. ``failed_at``:
    when the last question for each topic failed, for topics without an answer. `by_failure` asks
    for these topics last, so that they do not keep the others from being asked for.
    """

    def __init__(
        self,
        admin: TopicRequests,
        before_request: Callable[[], None] = lambda: None,
        failed_at: dict[Topic, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admin = admin
        self._before_request = before_request
        self._failed_at = {} if failed_at is None else failed_at
        self._clock = clock
        self._listed: dict[tuple[str, str], Mapping[Topic, tuple[Partition, ...]]] = {}
        self._waited = 0.0

    def find(self, pattern: Topic) -> dict[Topic, tuple[Partition, ...]]:
        """The topics that match, and the partitions that Pulsar shows of each.

        A name without wildcards is taken as it is, whether it exists or not: its turn will tell.
        Its partitions are asked for by its name, as the role may not list the namespace; where
        nobody says, it has none here. Pulsar's own system topics are left out. Raises
        NotFoundError where the pattern names a tenant or namespace that does not exist.
        """
        if not is_pattern(pattern.local_name):
            return {pattern: self._partitions(pattern)}
        found: dict[Topic, tuple[Partition, ...]] = {}
        for tenant in self._tenants(pattern.tenant):
            for namespace in self._namespaces(tenant, pattern):
                try:
                    listed = self._topics(tenant, namespace)
                except NotFoundError:
                    if not is_pattern(f"{pattern.tenant}{pattern.namespace}"):
                        raise
                    continue  # deleted since it was listed
                found |= {t: p for t, p in listed.items() if matches(pattern.name, t.name)}
        return found

    def _partitions(self, topic: Topic) -> tuple[Partition, ...]:
        if self._waited >= _MOST_WAIT_SECONDS:  # many names would wait for the same answer
            return ()
        self._before_request()
        began = self._clock()
        try:
            count = self._admin.partition_count(topic)
        except UnavailableError:
            self._failed_at[topic] = self._clock()
            self._waited += self._failed_at[topic] - began
            return ()
        except PulsarLakeError:
            count = 0
        self._failed_at.pop(topic, None)
        return tuple(Partition(topic, index) for index in range(count))

    def _tenants(self, pattern: str) -> list[str]:
        self._before_request()
        if not is_pattern(pattern):
            return [pattern]
        return [one for one in self._admin.tenants() if matches(pattern, one)]

    def _namespaces(self, tenant: str, pattern: Topic) -> list[str]:
        self._before_request()
        if not is_pattern(pattern.namespace):
            return [pattern.namespace]
        names = (one.split("/", 1)[1] for one in self._admin.namespaces(tenant))
        return [one for one in names if matches(pattern.namespace, one)]

    def _topics(self, tenant: str, namespace: str) -> Mapping[Topic, tuple[Partition, ...]]:
        key = tenant, namespace
        if key not in self._listed:
            self._before_request()
            self._listed[key] = self._admin.listed(tenant, namespace)
        return self._listed[key]
