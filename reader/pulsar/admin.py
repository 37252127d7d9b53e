"""Pulsar's admin REST: what exists, and how far it reaches.

Endpoints and fields: the REST API's v2 ``persistent``, ``schemas``, ``namespaces`` and v3
``transactions`` pages.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    UnsupportedError,
)
from reader.model import LedgerMetadata, Partition, Position, SchemaInfo, Topic
from reader.pulsar.credentials import current_token
from reader.pulsar.http import AdminHttp, reason_of
from reader.pulsar.ledger_metadata import parse_ledger_metadata

__all__ = ["AdminClient", "LedgerInfo", "LoadedTopic", "PartitionLedgers"]

_SETTLED = (None, "Ready", "NoSnapshot")
_RECOVERY_SECONDS = 10.0
_STALE_SECONDS = 0.3
_ALLOWED_SECONDS = 10.0
"""So long a permission to consume is believed without asking again."""
_NO_TENANT = "Tenant does not exist"
"""Where authorization is on, of a tenant that is not there nobody is told that it is refused."""
_BUSY = "Subscription Busy"  # 412 is also the answer to a position that cannot be found


@dataclass(frozen=True, slots=True)
class LedgerInfo:
    """One ledger as a partition lists it.

    ``entries`` and ``bytes`` are 0 for the open ledger. ``closed_at``: ms since the epoch, None
    while open. ``offloaded``: moved away by Pulsar's own tiered storage.
    """

    ledger_id: int
    entries: int
    bytes: int
    metadata: LedgerMetadata | None
    offloaded: bool
    closed_at: int | None


@dataclass(frozen=True, slots=True)
class PartitionLedgers:
    """A partition's ledgers, ascending, and where it ends.

    ``last_confirmed`` is the last entry written; ``max_read`` the last that no open transaction
    hides (equal to ``last_confirmed`` without transactions). ``created_at`` is the managed
    ledger's creation time as Pulsar prints it; "" where there is no managed ledger yet.
    ``cursors`` maps a subscription to its next entry to read.
    """

    partition: Partition
    ledgers: tuple[LedgerInfo, ...]
    last_confirmed: Position
    max_read: Position
    terminated: bool
    created_at: str
    open_bytes: int
    cursors: Mapping[str, Position]
    opened_at: int | None = None

    def last_entry(self, ledger: LedgerInfo) -> int:
        """The last entry id of one of the ledgers; -1 for an empty one.

        The last ledger shows 0 entries even when the topic is terminated; its metadata and the
        last confirmed entry know better.
        """
        if ledger.metadata is not None and ledger.metadata.closed:
            return ledger.metadata.last_entry
        if self.last_confirmed.ledger == ledger.ledger_id:
            return self.last_confirmed.entry
        return ledger.entries - 1


@dataclass(frozen=True, slots=True)
class LoadedTopic:
    """A partition that a broker has loaded: the bytes sent to it since, its subscriptions."""

    bytes_in: int
    subscriptions: frozenset[str]


class AdminClient(Closing):
    """One HTTP connection pool to the admin REST; thread-safe; a context manager."""

    def __init__(self, config: PulsarConfig) -> None:
        self._url = config.admin_url.rstrip("/")
        self._config = config
        self._allowed: dict[tuple[Topic, str | None], float] = {}
        self._http = AdminHttp(config)

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()

    # -- what is allowed -----------------------------------------------------------------------

    def require_consume(self, topic: Topic) -> None:
        """Raise ConfigurationError unless the broker lets us consume the topic.

        Nothing that BookKeeper or the storage gives knows of it. Its subscriptions are what the
        broker tells exactly those who may consume it, a producer not. It is asked of a partition,
        which has the topic's permissions: a topic without partitions need not be loaded for that,
        as the broker looks at the permission first, and "there is no such topic" is a yes. A yes
        is kept for some seconds.
        """
        key = (topic, current_token(self._config))
        if time.monotonic() - self._allowed.get(key, -_ALLOWED_SECONDS) < _ALLOWED_SECONDS:
            return
        path = Partition(topic, 0).rest_path
        answer = self._http.request("GET", f"/admin/v2/persistent/{path}/subscriptions")
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
        self._allowed = {
            known: since
            for known, since in self._allowed.items()
            if time.monotonic() - since < _ALLOWED_SECONDS
        } | {key: time.monotonic()}

    # -- what exists ---------------------------------------------------------------------------

    def tenants(self) -> list[str]:
        """All tenants that the client may see."""
        return sorted(self._http.get("/admin/v2/tenants", "the tenants"))

    def namespaces(self, tenant: str) -> list[str]:
        """``tenant/namespace`` names of one tenant. NotFoundError for an unknown one."""
        topic = Topic(tenant, "-", "-")
        path = topic.rest_path.split("/")[0]
        return sorted(self._http.get(f"/admin/v2/namespaces/{path}", f"tenant {tenant}"))

    def partitioned_topics(self, tenant: str, namespace: str) -> set[Topic]:
        """Those of the namespace's topics that have partitions.

        Also the cheapest way to know whether the namespace is there to be seen: it takes the
        right to consume or produce there.
        """
        path = "/".join(Topic(tenant, namespace, "-").rest_path.split("/")[:2])
        what = f"namespace {tenant}/{namespace}"
        found = self._http.get(f"/admin/v2/persistent/{path}/partitioned", what)
        return {Topic.parse(name) for name in found}

    def topics(self, tenant: str, namespace: str) -> list[Topic]:
        """The namespace's persistent topics, partitions as one, system topics left out."""
        return list(self.listed(tenant, namespace))

    def listed(self, tenant: str, namespace: str) -> dict[Topic, tuple[Partition, ...]]:
        """The namespace's ``topics`` with those of their partitions that exist: two requests.

        Pulsar makes a partition when the topic is made or grows, or on its first use.
        """
        path = "/".join(Topic(tenant, namespace, "-").rest_path.split("/")[:2])
        what = f"namespace {tenant}/{namespace}"
        partitioned = self.partitioned_topics(tenant, namespace)
        found: dict[Topic, list[Partition]] = {topic: [] for topic in partitioned}
        for name in self._http.get(f"/admin/v2/persistent/{path}", what):
            partition = Partition.parse(name)
            if partition.index >= 0 and partition.topic not in partitioned:
                partition = Partition(Topic.parse(name), -1)  # it only looks like a partition
            found.setdefault(partition.topic, []).append(partition)
        return {
            topic: tuple(sorted(those))
            for topic, those in sorted(found.items())
            if not topic.name.startswith("__")
        }

    def brokers(self) -> list[str]:
        """The brokers that run, as ``host:port``. Raises ConfigurationError as ``loaded`` does."""
        return list(self._http.get("/admin/v2/brokers", "the brokers"))

    def loaded(self, brokers: Sequence[str]) -> dict[str, LoadedTopic]:
        """What these brokers count of each partition that they have loaded, by its full name.

        One request for each broker. The counts may be a minute old
        (the broker's ``statsUpdateFrequencyInSecs``). Raises ConfigurationError where the role is
        not a superuser's.
        """
        scheme = self._url.partition("://")[0]
        # A single broker is where we are, whatever address it goes by for itself.
        bases = [""] if len(brokers) < 2 else [f"{scheme}://{one}" for one in brokers]
        found = {}
        for base in bases:
            stats = self._http.get(
                f"{base}/admin/v2/broker-stats/topics", "the brokers' statistics"
            )
            for bundles in stats.values():
                for bundle in bundles.values():
                    for name, one in bundle.get("persistent", {}).items():
                        size, held = int(one["bytesInCount"]), frozenset(one["subscriptions"])
                        found[name] = LoadedTopic(size, held)
        return found

    def unload(self, partition: Partition) -> None:
        """Close the partition's open ledger; its producers and consumers connect again."""
        path = f"/admin/v2/persistent/{partition.rest_path}/unload"
        self._http.send("PUT", path, f"topic {partition}", None)

    def partitions(self, topic: Topic) -> list[Partition]:
        """The topic's partitions; one of index -1 for a topic without.

        Raises NotFoundError for an unknown topic.
        """
        what = f"topic {topic}"
        path = f"/admin/v2/persistent/{topic.rest_path}/partitions"
        count = int(self._http.get(path, what).get("partitions", 0))
        if count:
            return [Partition(topic, i) for i in range(count)]
        self._http.get(f"/admin/v2/persistent/{topic.rest_path}/internal-info", what)
        return [Partition(topic, -1)]

    def cluster(self) -> str:
        """The cluster's name: configured, or the only one that Pulsar lists; else ""."""
        if self._config.cluster:
            return self._config.cluster
        found = [c for c in self._http.get("/admin/v2/clusters", "the clusters") if c != "global"]
        return str(found[0]) if len(found) == 1 else ""

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        """All versions of the topic's schema, ascending; () where there is none."""
        # Of this endpoint alone Pulsar (4.2) decodes the topic's name twice: "a+b" would be "a b".
        tenant, namespace, name = topic.rest_path.split("/")
        path = f"/admin/v2/schemas/{tenant}/{namespace}/{quote(name, safe='')}/schemas"
        try:
            answer = self._http.get(path, f"the schemas of {topic}")
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
                    )
                    for one in answer.get("getSchemaResponses", [])
                    if one["type"] != "DELETE"
                ),
                key=lambda schema: schema.version,
            )
        )

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
        return dict(self._http.get(path, "the broker's settings"))

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

    def _policy(self, path: str, topic: Topic) -> Any:
        answer = self._http.request("GET", f"/admin/v2/{path}", params={"applied": "true"})
        found = self._http.check(answer, f"topic {topic}")
        return found.json() if found.content else None

    # -- ledgers -------------------------------------------------------------------------------

    def ledgers(self, partition: Partition) -> PartitionLedgers:
        """The partition's ledgers and end. A partition nobody wrote to yet has none."""
        path = f"/admin/v2/persistent/{partition.rest_path}"
        what = f"topic {partition}"
        try:
            stats = self._http.get(f"{path}/internalStats", what, metadata="true")
        except NotFoundError:
            if partition.index < 0:
                raise
            nothing = Position(-1, -1)  # listed by its topic, made on the first write
            return PartitionLedgers(partition, (), nothing, nothing, False, "", 0, {})
        info = self._http.get(f"{path}/internal-info", what)
        closed = {
            int(one["ledgerId"]): int(one.get("timestamp") or 0) for one in info.get("ledgers", [])
        }
        last = Position.parse(stats["lastConfirmedEntry"])
        return PartitionLedgers(
            partition=partition,
            ledgers=tuple(_ledger(one, closed) for one in stats["ledgers"]),
            last_confirmed=last,
            max_read=self._max_read(partition, last),
            terminated=stats.get("state") == "Terminated",
            created_at=str(info.get("creationDate") or ""),
            open_bytes=int(stats.get("currentLedgerSize") or 0),
            cursors={name: _next_entry(one) for name, one in stats["cursors"].items()},
            opened_at=_moment_ms(stats.get("lastLedgerCreatedTimestamp")),
        )

    def ledger_ids(self, partition: Partition) -> set[int]:
        """The ids alone, with one request. Raises NotFoundError where there is no topic."""
        path = f"/admin/v2/persistent/{partition.rest_path}/internalStats"
        stats = self._http.get(path, f"topic {partition}")
        return {int(one["ledgerId"]) for one in stats["ledgers"]}

    def _max_read(self, partition: Partition, last: Position) -> Position:
        path = f"/admin/v3/transactions/transactionBufferStats/{partition.rest_path}"
        begun = time.monotonic()
        while True:
            answer = self._http.request("GET", path)
            if answer.status_code in (404, 405, 503):
                return last  # transactions are off in the broker: nothing is hidden
            stats = self._http.check(answer, f"the transactions of {partition}").json()
            # Just loaded, a topic looks for transactions first; until then its answer is old and
            # would leave out messages that were acknowledged long ago.
            waited = time.monotonic() - begun
            if stats.get("state") in _SETTLED or waited > _RECOVERY_SECONDS:
                text = stats.get("maxReadPosition")
                found = min(last, Position.parse(text)) if text else last
                if found == last or stats.get("ongoingTxnSize") != 0:
                    return found
                # No transaction is open, and yet the broker's answer may stay behind what it has
                # acknowledged, until the next message: a topic that was written to while it loaded.
                if waited > _STALE_SECONDS:
                    return last
            time.sleep(0.05)

    def transaction_aborted(self, partition: Partition, most: int, least: int) -> bool:
        """Whether a decided transaction that wrote to the partition was aborted.

        ``most`` and ``least`` are the halves of its id, signed. Raises UnsupportedError where
        the broker has no transactions, and so cannot tell.
        """
        answer = self._http.request(
            "GET",
            f"/admin/v3/transactions/transactionInBufferStats/{partition.rest_path}/{most}/{least}",
        )
        if answer.status_code in (404, 405, 503):
            raise UnsupportedError(
                f"{partition} has messages of transactions, but the broker has none",
                hint="set transactionCoordinatorEnabled=true in the broker",
            )
        what = f"transaction ({most},{least}) of {partition}"
        return bool(self._http.check(answer, what).json().get("aborted"))

    # -- the hold ------------------------------------------------------------------------------

    def hold_position(self, partition: Partition, name: str) -> Position | None:
        """The next entry that the durable subscription ``name`` would read; None without it."""
        return self.ledgers(partition).cursors.get(name)

    def create_hold(self, partition: Partition, name: str) -> None:
        """Make the durable subscription at the earliest message; no-op where it exists."""
        body = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}"
        self._http.send("PUT", path, f"topic {partition}", body, fine=(409,))

    def hold_properties(self, partition: Partition, name: str) -> dict[str, str]:
        """What somebody has noted down with the subscription; empty where there is none."""
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        answer = self._http.request("GET", path)
        if answer.status_code == 404:
            return {}
        found = self._http.check(answer, f"subscription {name} of {partition}")
        return {str(key): str(value) for key, value in (found.json() or {}).items()}

    def note_hold(self, partition: Partition, name: str, properties: Mapping[str, str]) -> None:
        """Note ``properties`` down with the subscription, in place of what was noted before."""
        path = f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/properties"
        self._http.send("PUT", path, f"subscription {name} of {partition}", dict(properties))

    def move_hold(self, partition: Partition, name: str, position: Position) -> bool:
        """Make ``position`` the next entry that the subscription reads.

        False where nothing was done because Pulsar is moving it already, for somebody else.
        """
        body = {
            "ledgerId": position.ledger,
            "entryId": position.entry,
            "partitionIndex": -1,
            "isExcluded": False,
        }
        path = (
            f"/admin/v2/persistent/{partition.rest_path}/subscription/{_quoted(name)}/resetcursor"
        )
        answer = self._http.request("POST", path, json=body)
        if answer.status_code == 412 and _BUSY in reason_of(answer):
            return False
        self._http.check(answer, f"subscription {name} of {partition}")
        return True


def _quoted(name: str) -> str:
    return Topic("-", "-", name).rest_path.split("/")[2]


def _moment_ms(text: str | None) -> int | None:
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000) if text else None
    except ValueError:
        return None


def _next_entry(cursor: Mapping[str, Any]) -> Position:
    mark = Position.parse(cursor["markDeletePosition"])
    return Position(mark.ledger, mark.entry + 1)


def _ledger(one: Mapping[str, Any], closed: Mapping[int, int]) -> LedgerInfo:
    ledger_id = int(one["ledgerId"])
    text = one.get("metadata")
    metadata = parse_ledger_metadata(ledger_id, text) if text else None
    closed_at = closed.get(ledger_id) or None
    return LedgerInfo(
        ledger_id=ledger_id,
        entries=int(one["entries"]),
        bytes=int(one["size"]),
        metadata=metadata,
        offloaded=bool(one.get("offloaded")),
        # Of an open ledger Pulsar prints the time of the question.
        closed_at=None if metadata is not None and not metadata.closed else closed_at,
    )
