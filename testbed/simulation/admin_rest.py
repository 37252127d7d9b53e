"""The admin REST of the simulated Pulsar: a request in, status and JSON out, of HEAD headers."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from testbed.simulation.cluster_state import HOLD, ClusterState
from testbed.simulation.ledgers import Ledger, ManagedLedger, Position
from testbed.simulation.producers import Producers

Answer = tuple[int, Any]
_NAMESPACE = "public/default"
_NO_TRANSACTIONS = "This Broker is not configured with transactionCoordinatorEnabled=true."
_POLICIES = {"messageTTL": 0, "backlogQuotaMap": {}, "subscriptionExpirationTime": 0}


class AdminRest:
    """``moving`` is told of each move of a cursor before it is done.

    ``requests``: how many there were. ``lagging``: the broker that answers ``internal-info`` has
    not seen yet which ledger was opened last. ``producers``: those that deduplication is for, if
    any come. ``policies``: what ``GET …/NAME`` answers of a topic and a namespace, by its name.
    """

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.requests = 0
        self.lagging = False
        self.policies: dict[str, Any] = dict(_POLICIES)
        self.producers: Producers | None = None
        self.moving: Callable[[ManagedLedger, Position], None] = lambda ml, to: None

    def answer(self, method: str, path: str, body: Any = None) -> Answer:
        """As Pulsar 4.2 does, of what the product asks."""
        self.requests += 1
        parts = path.split("?")[0].strip("/").split("/")[1:]  # without "admin"
        match parts:
            case ["v2", "clusters"]:
                return 200, ["simulated"]
            case ["v2", "brokers"]:
                return 200, ["localhost:8080"]
            case ["v2", "tenants"]:
                return 200, ["public"]
            case ["v2", "namespaces", "public"]:
                return 200, [_NAMESPACE]
            case ["v2", "brokers", "configuration", "runtime"]:
                return 200, {}
            case ["v2", "broker-stats", "topics"]:
                return 200, self._statistics()
            case ["v2", "persistent", "public", "default"]:
                return 200, [ml.name for ml in self._all()]
            case ["v2", "persistent", "public", "default", "partitioned"]:
                return 200, [t.name for t in self.state.topics.values() if t.count and t.parts]
            case [*_, last] if last in self.policies:
                return 200, self.policies[last]
            case ["v2", "scalable", "public", "default", name]:
                topic = self.state.topics.get(f"persistent://{_NAMESPACE}/{name}")
                if topic is not None and topic.migrated:
                    return 200, {"segments": {"0": {"legacy": True}}}
            case ["v2", "schemas", "public", "default", name, "schemas"]:
                topic = self.state.topics.get(f"persistent://{_NAMESPACE}/{name}")
                if topic is None or not topic.schema.times:
                    return 404, {"reason": "no schema"}
                return 200, {"getSchemaResponses": topic.schema.listed()}
            case ["v2", "persistent", "public", "default", name, *rest]:
                return self._topic(method, name, rest, body)
            case ["v3", "transactions", what, "public", "default", name, *rest]:
                return self._transactions(what, name, rest)
        return 404, {"reason": f"not simulated: {path}"}

    def _all(self) -> list[ManagedLedger]:
        return [ml for topic in self.state.topics.values() for ml in topic.parts.values()]

    def _find(self, name: str) -> ManagedLedger | None:
        full = f"persistent://{_NAMESPACE}/{name}"
        return next((one for one in self._all() if one.name == full), None)

    def _statistics(self) -> Mapping[str, Any]:
        counts = {
            one.name: {"bytesInCount": one.bytes_in, "subscriptions": dict.fromkeys(one.cursors, 0)}
            for one in self._all()
        }
        return {_NAMESPACE: {"0x00000000_0xffffffff": {"persistent": counts}}}

    def _topic(self, method: str, name: str, rest: list[str], body: Any) -> Answer:
        if rest == ["partitions"]:
            topic = self.state.topics.get(f"persistent://{_NAMESPACE}/{name}")
            return 200, {"partitions": topic.count if topic and topic.parts else 0}
        if rest == ["properties"]:
            topic = self.state.topics.get(f"persistent://{_NAMESPACE}/{name}")
            return 200, topic.properties if topic else {}
        if rest == ["deduplicationEnabled"] and self.producers is not None:
            if self.producers.enable(f"persistent://{_NAMESPACE}/{name}"):
                return 204, None
            return 405, {"reason": "Topic level policies is disabled"}
        if rest == ["maxMessageSize"]:
            return 405, {"reason": "Topic level policies is disabled"}
        ml = self._find(name)
        if ml is None and method == "PUT" and rest[:1] == ["subscription"]:
            ml = self.state.partition(f"persistent://{_NAMESPACE}/{name}")
        if ml is None:
            return 404, {"reason": "Topic not found"}
        match method, rest:
            case "HEAD", ["ledger", ledger, "entry", entry]:
                return self._headers(ml, int(ledger), int(entry))
            case "GET", ["internalStats"]:
                return 200, self._stats(ml)
            case "GET", ["internal-info"]:
                return 200, {"creationDate": ml.created, "ledgers": self._infos(ml)}
            case "GET", ["stats"]:
                properties = {one: ml.properties.get(one, {}) for one in ml.cursors}
                shown = {name: {"subscriptionProperties": one} for name, one in properties.items()}
                drops = self.producers is not None and self.producers.deduplicates(ml)
                status = "Enabled" if drops else "Disabled"
                return 200, {"subscriptions": shown, "deduplicationStatus": status}
            case "GET", ["subscriptions"]:
                return 200, list(ml.cursors)
            case "PUT", ["unload"]:
                self.state.unload(ml)
                return 204, None
            case "PUT", ["subscription", name]:
                if name in ml.cursors:
                    return 409, {"reason": "Subscription already exists"}
                ml.cursors[name] = (ml.listing[0].id, 0)
                ml.held = True
                return 204, None
            case "GET", ["subscription", name, "properties"]:
                return 200, ml.properties.get(name, {})
            case "PUT", ["subscription", name, "properties"]:
                ml.properties[name] = dict(body)
                return 204, None
            case "POST", ["subscription", name, "resetcursor"]:
                to = (body["ledgerId"], body["entryId"])
                if name == HOLD:
                    self.moving(ml, to)
                ml.cursors[name] = to
                return 204, None
        return 404, {"reason": f"not simulated: {method} {rest}"}

    def _headers(self, ml: ManagedLedger, ledger_id: int, number: int) -> Answer:
        ledger = ml.get(ledger_id)
        if ledger is None or number >= len(ledger.entries):
            return 404, None
        entry, found = ledger.entries[number], {"X-Pulsar-Message-ID": f"{ledger_id}:{number}"}
        if not entry.values:
            found["X-Pulsar-marker-type"] = "21"
        if self.state.clock.now_ms >= ml.recovering_ms and entry.transaction in ml.aborted:
            found["X-Pulsar-txn-aborted"] = "true"
        return 200, found

    def _stats(self, ml: ManagedLedger) -> Mapping[str, Any]:
        if not ml.listed:
            ml.listed = {one.id: len(one.entries) for one in ml.listing}
        last = ml.listing[-1]
        return {
            "state": "Terminated" if ml.terminated else "LedgerOpened",
            "entriesAddedCounter": ml.added,
            "numberOfEntries": sum(len(one.entries) for one in ml.listing),
            "lastConfirmedEntry": _text(ml.last_confirmed),
            "currentLedgerSize": sum(len(one.data) for one in last.entries),
            "lastLedgerCreatedTimestamp": _moment(last.opened_ms),
            "cursors": {
                name: {
                    "markDeletePosition": f"{ledger}:{entry - 1}",
                    "properties": ml.properties.get(name, {}),
                }
                for name, (ledger, entry) in ml.cursors.items()
            },
            "compactedLedger": self._compacted(ml.compacted),
            "ledgers": [
                {
                    "ledgerId": one.id,
                    "entries": len(one.entries) if one is not last else 0,
                    "size": sum(len(e.data) for e in one.entries) if one is not last else 0,
                    "offloaded": one.offload is not None,
                    "metadata": self._metadata(one),
                }
                for one in ml.listing
            ],
        }

    def _infos(self, ml: ManagedLedger) -> list[dict[str, Any]]:
        known = ml.listing[:-1] if self.lagging and len(ml.listing) > 1 else ml.listing
        found: list[dict[str, Any]] = [
            {"ledgerId": one.id, "timestamp": one.closed_ms or 0}
            | ({"offloadedContextUuid": one.offload} if one.offload else {})
            for one in known
        ]
        # Of one that is open, or is to this broker, Pulsar prints the time of the question.
        if self.lagging or known[-1].closed_ms is None:
            found[-1]["timestamp"] = self.state.brokers_clock.now_ms
        return found

    def _transactions(self, what: str, name: str, rest: list[str]) -> Answer:
        ml = self._find(name)
        if not self.state.transactions:
            return 503, {"reason": _NO_TRANSACTIONS}
        if ml is None:
            return 404, {"reason": "Topic not found"}
        # TopicTransactionBuffer answers so while it recovers.
        ready = self.state.clock.now_ms >= ml.recovering_ms
        if what == "transactionInBufferStats":
            return 200, {"aborted": ready and int(rest[1]) in ml.aborted}
        aborted = len(ml.aborted) if ml.counted_aborted is None else ml.counted_aborted
        return 200, {
            "state": "Ready" if ready else "Initializing",
            "maxReadPosition": _text(ml.max_read if ready else ml.last_confirmed),
            "ongoingTxnSize": len(ml.open) if ready else 0,
            **({"totalAbortedTransactions": aborted if ready else 0} if aborted >= 0 else {}),
            "recoverStartTime": ml.loads,
        }

    def _compacted(self, one: Ledger | None) -> Mapping[str, Any]:
        if one is None:
            return {"ledgerId": -1, "entries": -1, "size": -1}
        size = sum(len(entry.data) for entry in one.entries)
        shown = {"entries": len(one.entries), "size": size, "metadata": self._metadata(one)}
        return {"ledgerId": one.id, **shown}

    def _metadata(self, one: Ledger) -> str | None:
        if one.forgotten or one.offload is not None:
            return None
        closed = one.closed_ms is not None
        end = f"length=1, lastEntryId={len(one.entries) - 1}, " if closed else ""
        return (
            "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, "
            f"state={'CLOSED' if closed else 'OPEN'}, {end}digestType=CRC32C, password=OMITTED, "
            f"ensembles={{0=[{self.state.bookie}]}}, customMetadata={{}}}}"
        )


def _text(position: Position) -> str:
    return f"{position[0]}:{position[1]}"


def _moment(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()
