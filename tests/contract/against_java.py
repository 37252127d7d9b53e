"""What the Java client reads from a topic is what each tier gives: how that is checked."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader import open_topic
from reader.clients import Clients
from reader.model import Topic
from reader.model.columns import METADATA_NAMES
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.contract.stream.following import Follower
from tests.contract.test_sources import Key, Row, keyed, plain, rows_of
from tests.support.conversions import InThreadJobs, no_spark

Payload = Callable[[Json, Row], Row]
"""The payload columns that a message of the Java client must have, given those of our row."""

HOT = ("bookkeeper", "query", "stream", "broker")
"""Tiers; "query" forces none, nor does "stream": in small batches."""

STRAY = "chunked message with chunks missing"


def java_rows(
    oracle: Oracle,
    topic: str,
    schema: Json | None = None,
    decryption: Mapping[str, str] | None = None,
) -> dict[Key, Json]:
    found: dict[Key, Json] = {}
    for row in oracle.read(topic, schema=schema, decryption=decryption):
        key = row["partition"], row["ledger"], row["entry"], row["batch"]
        assert key not in found, "the Java client gave a message twice"
        found[key] = row
    return found


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def raw_value(java: Json, _: Row) -> Row:
    return {"value": bytes_of(java["data"])}


def micros(milliseconds: int | None) -> int | None:
    return milliseconds * 1000 if milliseconds else None


def metadata_of(java: Json, topic: str) -> Row:
    return {
        "__topic": Topic.parse(topic).full_name,
        "__partition": java["partition"],
        "__ledgerId": java["ledger"],
        "__entryId": java["entry"],
        "__batchIndex": java["batch"],
        "__key": java["key"],
        "__keyBase64": java["key_base64"] if java["has_key"] else None,
        "__orderingKey": bytes_of(java["ordering_key"]),
        "__messageProperties": java["properties"],
        "__publishTime": micros(java["publish_time"]),
        "__eventTime": micros(java["event_time"]),
        "__brokerPublishTime": micros(java["broker_publish_time"]),
        "__deliverAt": micros(java["deliver_at"]),
        "__index": java["index"],
        "__producerName": java["producer"],
        "__replicatedFrom": java["replicated_from"],
        "__sequenceId": java["sequence_id"],
        "__schemaVersion": java["schema_version"],
        "__tombstone": java["null"] or not java["data"],
        "__encryptionContext": None,
        "__otherMetadata": None,
        "__rescued": None,
        "__error": None,
    }


def without_order(value: Any) -> Any:
    """Members of structs and entries of maps sorted by their names."""
    if isinstance(value, dict):
        return {name: without_order(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        items = [without_order(one) for one in value]
        pairs = all(isinstance(one, list) and len(one) == 2 for one in items)
        if pairs and all(isinstance(one[0], str) for one in items):
            return sorted(items, key=lambda one: str(one[0]))
        return items
    return value


def check(
    rows: Mapping[Key, Row],
    java: Mapping[Key, Json],
    topic: str,
    payload: Payload = raw_value,
) -> None:
    """Row by row; every column is compared."""
    assert sorted(rows) == sorted(java)
    for key, message in java.items():
        ours = dict(rows[key])
        expected = metadata_of(message, topic)
        assert set(expected) == set(METADATA_NAMES)
        columns = {name: ours[name] for name in ours if name not in expected}
        expected |= {name: plain(value) for name, value in payload(message, columns).items()}
        ours["__messageProperties"] = dict(ours["__messageProperties"])
        ours, expected = without_order(ours), without_order(expected)
        assert ours.keys() == expected.keys()
        wrong = {n: (ours[n], expected[n]) for n in ours if ours[n] != expected[n]}
        assert not wrong, (key, wrong)


def split_strays(rows: dict[Key, Row]) -> tuple[dict[Key, Row], dict[Key, Row]]:
    """(rows, those of chunks that the Java client does not show)."""
    strays = {key: row for key, row in rows.items() if row["__error"] == STRAY}
    return {key: row for key, row in rows.items() if key not in strays}, strays


def query_rows(config: Config, topic: str) -> dict[Key, Row]:
    """What a query sees that forces no tier, without Spark."""
    with open_topic(config, topic) as opened:
        return keyed(opened.scan().read_all().to_pylist())


def through_the_broker(config: Config) -> Config:
    """The offloader of a cluster whose bookies nobody reaches: to tables of its own."""
    own = {"source": "broker", "subscription": "through-the-broker"}
    return config.model_copy(
        update={
            "offload": config.offload.model_copy(update=own),
            "storage": config.storage.model_copy(update={"uri": f"{config.storage.uri}/broker"}),
        }
    )


def offload_in_thread(config: Config, topic: str) -> None:
    """Every sealed ledger of the topic, without Spark."""
    with AdminClient(config.pulsar) as admin, Clients(config, admin=admin) as clients:
        jobs = InThreadJobs(clients)
        offloader = TopicOffloader(clients, config.offload, no_spark, jobs=jobs)
        while offloader.turn(Topic.parse(topic), now=True).more:
            pass


@dataclass(frozen=True)
class Contract:
    """The Java client on the one side, every tier on the other.

    `through_broker`: as `config`, for tables that were read through the broker alone. `streams`:
    those of `config`, which go on from one comparison to the next.
    """

    oracle: Oracle
    admin: Admin
    config: Config
    through_broker: Config
    offload: Callable[[str], None]
    streams: Follower

    def holds(
        self,
        topic: str,
        payload: Payload = raw_value,
        *,
        strays: Iterable[Key] = (),
        tiers: Sequence[str] = (*HOT, "parquet"),
        schema: Json | None = None,
        offloaded_twice: bool = True,
    ) -> dict[Key, Json]:
        """Compare all tiers; for "parquet" the topic is sealed and offloaded first, twice: from
        the bookies, and through the broker (unless `offloaded_twice` is false: the same entries
        make the same rows); what a stream has read before is then read again.

        `schema`: what the Java client reads by.
        """
        java = java_rows(self.oracle, topic, schema)
        failed: list[Exception] = []
        for tier in tiers:
            try:
                streamed = "stream" in tiers
                for read in self._read(topic, tier, streamed=streamed, twice=offloaded_twice):
                    rows, found = split_strays(read)
                    check(rows, java, topic, payload)
                    assert sorted(found) == sorted(strays)
            except Exception as error:  # noqa: BLE001 - the other tiers are of interest, too
                error.add_note(f"tier: {tier}")
                failed.append(error)
        if failed:
            raise ExceptionGroup("tiers that differ from the Java client", failed)
        return java

    def _read(
        self, topic: str, tier: str, *, streamed: bool, twice: bool
    ) -> Iterator[dict[Key, Row]]:
        if tier == "query":
            yield query_rows(self.config, topic)
            return
        if tier == "stream":
            yield from self._streamed(topic)
            return
        if tier == "parquet":
            self.admin.seal(topic)
            self.offload(topic)
            if twice:
                offload_in_thread(self.through_broker, topic)
                yield rows_of(self.through_broker, topic, tier)
            yield query_rows(self.config, topic)
            if streamed:
                yield from self._streamed(topic)
        yield rows_of(self.config, topic, tier)

    def _streamed(self, topic: str) -> Iterator[dict[Key, Row]]:
        rows = self.streams.rows(topic)
        yield keyed(rows)
        yield keyed(self.streams.limited(topic, len(rows) // 3 + 1))


def body(size: int) -> bytes:
    """Half of it compressible."""
    return os.urandom(size // 2) + b"x" * (size - size // 2)
