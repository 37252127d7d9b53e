"""Which tenants, namespaces, topics and partitions there are, which are loaded where, and schemas.

And which servers they are on. Endpoints: ``tenants``, ``namespaces``, ``persistent``, ``clusters``,
``brokers``, ``bookies``, ``broker-stats`` and ``schemas`` of the REST API's v2.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, SchemaInfo, Topic
from reader.pulsar.http import AdminPart, date_ms, reason_of

_SHADOW_SOURCE = "PULSAR.SHADOW_SOURCE"
"""The property of a shadow topic that names the topic whose ledgers it shows (PIP-180)."""

_OWN_NAMES = frozenset(
    {
        "__change_events",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
    }
)


@dataclass(frozen=True, slots=True)
class LoadedTopic:
    """A partition that a broker has loaded: the bytes sent to it since, its subscriptions."""

    bytes_in: int
    subscriptions: frozenset[str]


class TopicRequests(AdminPart):
    """What exists. All raise ConfigurationError for what the role may not see."""

    def tenants(self) -> list[str]:
        """All tenants that the client may see."""
        return sorted(self.http.get("/admin/v2/tenants", "the tenants"))

    def namespaces(self, tenant: str) -> list[str]:
        """``tenant/namespace`` names of one tenant. NotFoundError for an unknown one."""
        topic = Topic(tenant, "-", "-")
        path = topic.rest_path.split("/")[0]
        return sorted(self.http.get(f"/admin/v2/namespaces/{path}", f"tenant {tenant}"))

    def partitioned_topics(self, tenant: str, namespace: str) -> set[Topic]:
        """Those of the namespace's topics that have partitions.

        Also the cheapest way to know whether the namespace is there to be seen: it takes the
        right to consume or produce there.
        """
        path = "/".join(Topic(tenant, namespace, "-").rest_path.split("/")[:2])
        what = f"namespace {tenant}/{namespace}"
        found = self.http.get(f"/admin/v2/persistent/{path}/partitioned", what)
        return {topic for name in found if (topic := _parsed(name)) is not None}

    def topics(self, tenant: str, namespace: str) -> list[Topic]:
        """The namespace's persistent topics, partitions as one, Pulsar's own left out."""
        return list(self.listed(tenant, namespace))

    def listed(self, tenant: str, namespace: str) -> dict[Topic, tuple[Partition, ...]]:
        """The namespace's ``topics`` with those of their partitions that exist: two requests.

        Pulsar makes a partition when the topic is made or grows, or on its first use. Its own
        topics are left out, and names that are none of a persistent topic, as Pulsar 5 may have.
        """
        path = "/".join(Topic(tenant, namespace, "-").rest_path.split("/")[:2])
        what = f"namespace {tenant}/{namespace}"
        partitioned = self.partitioned_topics(tenant, namespace)
        found: dict[Topic, list[Partition]] = {topic: [] for topic in partitioned}
        for name in self.http.get(f"/admin/v2/persistent/{path}", what):
            topic = _parsed(name)
            if topic is None:
                continue
            partition = Partition.parse(name)
            if partition.index >= 0 and partition.topic not in partitioned:
                partition = Partition(topic, -1)  # it only looks like a partition
            found.setdefault(partition.topic, []).append(partition)
        return {
            topic: tuple(sorted(those))
            for topic, those in sorted(found.items())
            if not _is_pulsars_own(topic)
        }

    def brokers(self) -> list[str]:
        """The brokers that run, as ``host:port``. Raises ConfigurationError as ``loaded`` does."""
        return list(self.http.get("/admin/v2/brokers", "the brokers"))

    def loaded(self, brokers: Sequence[str]) -> dict[str, LoadedTopic]:
        """What these brokers count of each partition that they have loaded, by its full name.

        One request for each broker. The counts may be a minute old
        (the broker's ``statsUpdateFrequencyInSecs``). Raises ConfigurationError where the role is
        not a superuser's.
        """
        scheme = self.http.url.partition("://")[0]
        # A single broker is where we are, whatever address it goes by for itself.
        bases = [""] if len(brokers) < 2 else [f"{scheme}://{one}" for one in brokers]
        found = {}
        for base in bases:
            stats = self.http.get(f"{base}/admin/v2/broker-stats/topics", "the brokers' statistics")
            for bundles in stats.values():
                for bundle in bundles.values():
                    for name, one in bundle.get("persistent", {}).items():
                        if _parsed(name) is None:
                            continue
                        size, held = int(one["bytesInCount"]), frozenset(one["subscriptions"])
                        found[name] = LoadedTopic(size, held)
        return found

    def unload(self, partition: Partition) -> None:
        """Close the partition's open ledger; its producers and consumers connect again."""
        path = f"/admin/v2/persistent/{partition.rest_path}/unload"
        self.http.send("PUT", path, f"topic {partition}", None)

    def partitions(self, topic: Topic, *, known: Collection[Partition] = ()) -> list[Partition]:
        """The topic's partitions; one of index -1 for a topic without.

        Raises NotFoundError for an unknown topic, but for one without partitions that is ``known``:
        whoever asks for its ledgers next is told.
        """
        if count := self.partition_count(topic):
            return [Partition(topic, i) for i in range(count)]
        if Partition(topic, -1) in known:
            return [Partition(topic, -1)]
        self.http.get(f"/admin/v2/persistent/{topic.rest_path}/internal-info", f"topic {topic}")
        return [Partition(topic, -1)]

    def partition_count(self, topic: Topic) -> int:
        """0 for a topic without partitions, and for one that is not there: one request."""
        path = f"/admin/v2/persistent/{topic.rest_path}/partitions"
        return int(self.http.get(path, f"topic {topic}").get("partitions", 0))

    def shadow_source(self, topic: Topic) -> str | None:
        """The topic that this one is a shadow of, as Pulsar names it; None: it is no shadow."""
        path = f"/admin/v2/persistent/{topic.rest_path}/properties"
        try:
            answer = self.http.check(self.http.request("GET", path), f"topic {topic}")
        except NotFoundError:  # also of a Pulsar that has no properties of topics
            return None
        # Of a partitioned topic without properties there is no content.
        source = (answer.json() or {}).get(_SHADOW_SOURCE) if answer.content else None
        return None if source is None else str(source)

    def is_migrated(self, topic: Topic) -> bool:
        """Whether the topic became a scalable topic of Pulsar 5.

        Its partitions are terminated then, and show what was published before.
        """
        path = f"/admin/v2/scalable/{topic.rest_path}"
        try:
            found = self.http.get(path, f"scalable topic {topic}")
        except NotFoundError:  # also of a Pulsar that has no scalable topics
            return False
        segments = (found or {}).get("segments") or {}
        return any(one.get("legacy") for one in segments.values())

    def create(self, topic: Topic, partitions: int) -> None:
        """Make the topic; 0: without partitions. ConfigurationError where there is one."""
        path = f"/admin/v2/persistent/{topic.rest_path}"
        if partitions:
            self.http.send("PUT", f"{path}/partitions", f"topic {topic}", partitions)
        else:
            self.http.send("PUT", path, f"topic {topic}", {})

    def delete(self, topic: Topic) -> None:
        """Delete the topic with its messages and schemas. Raises NotFoundError.

        ConfigurationError where it has subscriptions that are used.
        """
        path = f"/admin/v2/persistent/{topic.rest_path}"
        if self.partition_count(topic):
            path += "/partitions"
        answer = self.http.request("DELETE", path, params={"deleteSchema": "true"})
        self.http.check(answer, f"topic {topic}")

    def version(self) -> str:
        """Pulsar's version, which every identity that is accepted is told."""
        answer = self.http.request("GET", "/admin/v2/brokers/version")
        return self.http.check(answer, "Pulsar's version").text.strip()

    def date_ms(self) -> int | None:
        """The broker's clock, in whole seconds (ms since the epoch); None: it does not say."""
        answer = self.http.request("GET", "/admin/v2/brokers/version")
        return date_ms(answer)

    def bookies(self) -> list[str]:
        """The ids of all bookies that the cluster knows, whether they run or not.

        Raises ConfigurationError where the role is not a superuser's.
        """
        found = self.http.get("/admin/v2/bookies/all", "the bookies")
        return sorted(str(one["bookieId"]) for one in found.get("bookies", []))

    def cluster(self) -> str:
        """The cluster's name: configured, or the only one that Pulsar lists; else ""."""
        if self.http.config.cluster:
            return self.http.config.cluster
        found = [c for c in self.http.get("/admin/v2/clusters", "the clusters") if c != "global"]
        return str(found[0]) if len(found) == 1 else ""


def _parsed(name: str) -> Topic | None:
    """The persistent topic that Pulsar lists by its full name; None: it is of another kind."""
    try:
        return Topic.parse(name) if name.startswith("persistent://") else None
    except ConfigurationError:
        return None


def _is_pulsars_own(topic: Topic) -> bool:
    """As Pulsar's ``SystemTopicNames``; Pulsar 2.11 and newer do not list them."""
    if topic.name in _OWN_NAMES or topic.name.endswith("__transaction_pending_ack"):
        return True
    return (topic.tenant, topic.namespace) == ("pulsar", "system") and topic.name.startswith(
        ("__transaction_log_", "transaction_coordinator_assign")
    )


class SchemaRequests(AdminPart):
    """Which schemas a topic has had, and the next one."""

    def put_schema(self, topic: Topic, schema: SchemaInfo) -> None:
        """Add a version of the topic's schema, unless it has that.

        Raises ConfigurationError where it is not compatible under the topic's strategy.
        """
        tenant, namespace, name = topic.rest_path.split("/")
        path = f"/admin/v2/schemas/{tenant}/{namespace}/{quote(name, safe='')}/schema"
        body = {
            "type": schema.type,
            "schema": schema.definition,
            "properties": dict(schema.properties),
        }
        answer = self.http.request("POST", path, json=body)
        if answer.status_code in (409, 422):
            raise ConfigurationError(
                f"the schema of topic {topic} cannot become what the rows have",
                hint=reason_of(answer),
            )
        self.http.check(answer, f"the schema of topic {topic}")

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        """All versions of the topic's schema, ascending; () where there is none."""
        # Of this endpoint alone Pulsar (4.2) decodes the topic's name twice: "a+b" would be "a b".
        tenant, namespace, name = topic.rest_path.split("/")
        path = f"/admin/v2/schemas/{tenant}/{namespace}/{quote(name, safe='')}/schemas"
        try:
            answer = self.http.get(path, f"the schemas of {topic}")
        except NotFoundError:
            return ()
        return tuple(
            sorted(
                (
                    SchemaInfo(
                        int(one["version"]),
                        str(one["type"]).upper(),
                        str(one.get("data") or ""),
                        dict(one.get("properties") or {}),
                        timestamp=int(one.get("timestamp") or 0),
                    )
                    for one in answer.get("getSchemaResponses", [])
                    if one["type"] != "DELETE"
                ),
                key=lambda schema: schema.version,
            )
        )
