"""A client of Pulsar's admin REST API for tests. It shares no code with the product's own."""

import re
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from testbed.closing import Closing

T = TypeVar("T")

_RETRIED = (httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError)


def wait_until(what: str, get: Callable[[], T], timeout: float = 120, interval: float = 0.1) -> T:
    """Poll `get` until its answer is truthy, and return it; TimeoutError with the last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := get()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:g} s for {what}; last answer: {answer!r}")
        time.sleep(interval)
    return answer


def ensembles(metadata: str) -> dict[int, list[str]]:
    """First entry → bookies, from a ledger's `metadata` string in the internal stats."""
    [text] = re.findall(r"ensembles=\{(.*?)\}", metadata)
    found = re.findall(r"(\d+)=\[(.*?)\]", text)
    return {int(first): bookies.split(", ") for first, bookies in found}


class Admin(Closing):
    """Topics are named `persistent://tenant/namespace/name` or `tenant/namespace/name`.

    Errors are `httpx.HTTPStatusError`, with the server's reason in the message. While a broker
    starts or a topic moves, requests are repeated for `patience` seconds.
    """

    def __init__(
        self, admin_url: str, patience: float = 60, *, token: str = "", ca: Path | None = None
    ) -> None:
        self._client = httpx.Client(
            base_url=f"{admin_url}/admin",
            timeout=60,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            verify=ssl.create_default_context(cafile=ca) if ca else True,
        )
        self._patience = patience

    def close(self) -> None:
        self._client.close()

    def request(
        self, method: str, path: str, json: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        """Any call, e.g. `request("GET", "/v2/clusters")`; the decoded answer, None if empty."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                answer = self._client.request(method, path, json=json, params=params)
            except _RETRIED:
                if time.monotonic() > deadline:
                    raise
            else:
                if answer.status_code != 503 or time.monotonic() > deadline:
                    break
            time.sleep(0.2)
        if answer.is_error:
            reason = f"{answer.status_code} for {method} {path}: {answer.text[:500]}"
            raise httpx.HTTPStatusError(reason, request=answer.request, response=answer)
        return answer.json() if answer.content else None

    # --- namespaces ---

    def create_namespace(self, namespace: str) -> None:
        """`tenant/namespace`; the tenant must exist (`public` does)."""
        self.request("PUT", f"/v2/namespaces/{namespace}")

    def grant(self, resource: str, role: str, *actions: str) -> None:
        """`resource`: `tenant/namespace`, or a topic; `actions`: `consume`, `produce`."""
        kind = "persistent" if _short(resource).count("/") == 2 else "namespaces"
        path = f"/v2/{kind}/{_short(resource)}/permissions/{role}"
        self.request("POST", path, json=list(actions))

    def revoke(self, namespace: str, role: str) -> None:
        self.request("DELETE", f"/v2/namespaces/{namespace}/permissions/{role}")

    def set_retention(self, namespace: str, minutes: int, megabytes: int) -> None:
        """Set how long acknowledged messages are kept: 0, 0 not at all; -1, -1 for ever."""
        body = {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
        self.request("POST", f"/v2/namespaces/{namespace}/retention", json=body)

    def set_quorums(self, namespace: str, ensemble: int, write: int, ack: int) -> None:
        """Set the quorums of ledgers that are made from now on."""
        body = {
            "bookkeeperEnsemble": ensemble,
            "bookkeeperWriteQuorum": write,
            "bookkeeperAckQuorum": ack,
            "managedLedgerMaxMarkDeleteRate": 0.0,
        }
        self.request("POST", f"/v2/namespaces/{namespace}/persistence", json=body)

    def set_schema_compatibility(self, namespace: str, strategy: str) -> None:
        """E.g. `ALWAYS_COMPATIBLE`, so that types may change within a topic."""
        path = f"/v2/namespaces/{namespace}/schemaCompatibilityStrategy"
        self.request("PUT", path, json=strategy)

    def set_offload_policy(self, namespace: str, **policy: Any) -> None:
        """Set where Pulsar's own tiered storage puts ledgers.

        With all that it needs: one of a deletion lag alone would be a policy without a driver.
        Never `aws-s3`: with a region it ignores the endpoint, and goes out to the real cloud.
        """
        driver = policy["managedLedgerOffloadDriver"]
        assert driver in ("S3", "filesystem"), driver
        self.request("POST", f"/v2/namespaces/{namespace}/offloadPolicies", json=policy)

    # --- topics ---

    def create_topic(self, topic: str, partitions: int = 0) -> str:
        """With `partitions`, or without any (0); returns the full name."""
        if partitions:
            self.request("PUT", _path(topic, "partitions"), json=partitions)
        else:
            self.request("PUT", _path(topic))
        return f"persistent://{_short(topic)}"

    def grow_partitions(self, topic: str, partitions: int) -> None:
        """Add partitions; again while a subscription of the topic is being made or deleted."""

        def done() -> bool:
            try:
                self.request("POST", _path(topic, "partitions"), json=partitions)
            except httpx.HTTPStatusError as error:
                if error.response.status_code != 412 or "Subscription Busy" not in str(error):
                    raise
                return False
            return True

        wait_until(f"{partitions} partitions of {topic}", done)

    def partitions(self, topic: str) -> list[str]:
        """Full names of the partitions, or the topic itself if it has none."""
        count = self.request("GET", _path(topic, "partitions"))["partitions"]
        name = f"persistent://{_short(topic)}"
        return [f"{name}-partition-{n}" for n in range(count)] if count else [name]

    def delete_topic(self, topic: str) -> None:
        """With all its partitions, even if clients are connected."""
        partitioned = self.request("GET", _path(topic, "partitions"))["partitions"] > 0
        path = _path(topic, "partitions") if partitioned else _path(topic)
        self.request("DELETE", path, params={"force": "true"})

    def seal(self, topic: str) -> None:
        """Close the open ledger of every partition: unload the topic, and load it again.

        An open ledger without entries disappears instead. Producers reconnect by themselves. The
        topic can be read when this returns: readers give a broker that recovers it 10 s.
        """
        self.unload(topic)
        self.wait_recovered(topic)  # loads it, which opens the next ledger

    def recovered(self, topic: str) -> bool:
        """Return whether the broker knows the transactions of all partitions. Loads them.

        Until then the broker gives no messages. In a new namespace a broker that is slow, or has
        just started, needs seconds: it makes the system topic of the snapshots first.
        """
        for partition in self.partitions(topic):
            path = _path(partition).removeprefix("/v2/persistent")
            try:
                self.internal_stats(partition)  # loads it
                stats = self.request("GET", f"/v3/transactions/transactionBufferStats{path}")
            except httpx.HTTPStatusError as error:
                if error.response.status_code != 404:
                    raise
                return False  # it was unloaded meanwhile
            if stats["state"] not in ("Ready", "NoSnapshot"):
                return False
        return True

    def wait_recovered(self, topic: str) -> None:
        """Wait until the broker knows the transactions of all partitions."""
        wait_until(f"the recovery of {topic}", lambda: self.recovered(topic), 120)

    def unload(self, topic: str) -> None:
        """Close the topic. The next request loads it."""
        self.request("PUT", _path(topic, "unload"))

    def trim(self, topic: str) -> None:
        """Delete the ledgers that retention and subscriptions no longer keep."""
        self.request("POST", _path(topic, "trim"))

    def offload(self, partition: str, timeout: float = 240) -> None:
        """Let Pulsar's own tiered storage offload all closed ledgers of one partition, and wait."""
        body = {"ledgerId": self.ledgers(partition)[-1], "entryId": 0, "partitionIndex": -1}
        self.request("PUT", _path(partition, "offload"), json=body)
        wait_until(f"the offload of {partition}", lambda: self.offloaded(partition), timeout)

    def offloaded(self, partition: str) -> bool:
        """Whether the last offload has ended; RuntimeError where it failed."""
        state: dict[str, str] = self.request("GET", _path(partition, "offload"))
        if state["status"] == "ERROR":
            raise RuntimeError(f"the offload of {partition} failed: {state}")
        return state["status"] == "SUCCESS"

    def terminate(self, topic: str) -> None:
        """No message is accepted from now on."""
        partitioned = self.request("GET", _path(topic, "partitions"))["partitions"] > 0
        path = _path(topic, "terminate/partitions" if partitioned else "terminate")
        self.request("POST", path)

    def compact(self, topic: str, timeout: float = 240) -> None:
        """Run a compaction of one partition and wait for its success."""
        self.request("PUT", _path(topic, "compaction"))

        def done() -> bool:
            state: dict[str, str] = self.request("GET", _path(topic, "compaction"))
            if state["status"] == "ERROR":
                raise RuntimeError(f"compaction of {topic} failed: {state}")
            return state["status"] == "SUCCESS"

        wait_until(f"the compaction of {topic}", done, timeout)

    # --- what is stored ---

    def internal_stats(self, partition: str) -> dict[str, Any]:
        """Ledgers with their metadata, cursors, `lastConfirmedEntry`, of one partition."""
        path = _path(partition, "internalStats")
        stats: dict[str, Any] = self.request("GET", path, params={"metadata": "true"})
        return stats

    def internal_info(self, partition: str) -> dict[str, Any]:
        """The managed ledger's creation date, and each ledger's closing time."""
        info: dict[str, Any] = self.request("GET", _path(partition, "internal-info"))
        return info

    def ledgers(self, partition: str) -> list[int]:
        """Ledger ids of one partition, in order; the last is the open one."""
        return [ledger["ledgerId"] for ledger in self.internal_stats(partition)["ledgers"]]

    # --- subscriptions ---

    def create_subscription(self, topic: str, name: str) -> None:
        """Durable, at the earliest message; nobody needs to connect."""
        body = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        self.request("PUT", _path(topic, f"subscription/{name}"), json=body)

    def reset_cursor(self, partition: str, name: str, ledger: int, entry: int) -> None:
        """Make (ledger, entry) the next entry that the subscription reads."""
        body = {"ledgerId": ledger, "entryId": entry, "partitionIndex": -1, "isExcluded": False}
        self.request("POST", _path(partition, f"subscription/{name}/resetcursor"), json=body)

    def delete_subscription(self, topic: str, name: str) -> None:
        """Drop a subscription, whoever is connected to it."""
        self.request("DELETE", _path(topic, f"subscription/{name}"), params={"force": "true"})

    def skip_all(self, topic: str, name: str) -> None:
        """Acknowledge everything up to now."""
        self.request("POST", _path(topic, f"subscription/{name}/skip_all"))

    def set_publish_rate(self, topic: str, messages: int) -> None:
        """Messages a second that each partition takes; -1: as many as come.

        The broker hears of it a moment after it has taken the request.
        """
        path = _path(topic, "publishRate")
        rate = {"publishThrottlingRateInMsg": messages, "publishThrottlingRateInByte": -1}
        self.request("POST", path, json=rate)
        wait_until(f"the publish rate of {topic}", lambda: self.request("GET", path) == rate)

    def messages(self, topic: str) -> int:
        """Messages that the topic was sent since its broker has loaded it."""
        return sum(
            int(self.request("GET", _path(one, "stats"))["msgInCounter"])
            for one in self.partitions(topic)
        )

    def subscriptions(self, topic: str) -> list[str]:
        names: list[str] = self.request("GET", _path(topic, "subscriptions"))
        return names

    def wait_for_subscriptions(self, partition: str, names: list[str]) -> None:
        """Wait until it has these. A broker closes a reader, and drops its subscription later."""
        wait_until("the subscriptions", lambda: self.subscriptions(partition) == names)

    def backlog(self, partition: str, subscription: str) -> int:
        """Messages of one partition that the subscription has not acknowledged, about."""
        stats = self.request("GET", _path(partition, "stats"))
        return int(stats["subscriptions"][subscription]["msgBacklog"])

    # --- schemas ---

    def upload_schema(
        self, topic: str, kind: str, schema: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """`kind`: Pulsar's schema type, e.g. `AVRO`; `schema`: its definition as text."""
        body = {"type": kind, "schema": schema, "properties": dict(properties or {})}
        self.request("POST", f"/v2/schemas/{_short(topic)}/schema", json=body)

    def schemas(self, topic: str) -> list[dict[str, Any]]:
        """Every version of the topic's schema, oldest first."""
        answer = self.request("GET", f"/v2/schemas/{_short(topic)}/schemas")
        versions: list[dict[str, Any]] = answer["getSchemaResponses"]
        return versions


def _short(topic: str) -> str:
    return topic.removeprefix("persistent://")


def _path(topic: str, action: str = "") -> str:
    path = "/".join(quote(part, safe="") for part in _short(topic).split("/", 2))
    return f"/v2/persistent/{path}" + (f"/{action}" if action else "")
