"""Writes with a name, as a driver and its tasks do them, without Spark."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import pulsar
import pyarrow as pa

from reader import sink
from reader.clients import Clients
from reader.model import Topic
from reader.scan import TopicReader
from testbed.cluster import Cluster
from testbed.publish import quiet_client


def payloads(count: int, size: int = 8) -> list[bytes]:
    return [b"%08d" % number + bytes(size - 8) for number in range(count)]


def decided(
    clients: Clients,
    topic: str,
    values: Sequence[bytes],
    *,
    version: int = 0,
    keys: Sequence[str] | None = None,
    **options: str,
) -> tuple[sink.NamedWrite, sink.Manifest]:
    """The rows, staged by one task, and decided to be sent."""
    asked = sink.SinkOptions.of({"topic": topic, **options})
    target = sink.resolve_target(clients, Topic.parse(topic))
    sink.require_deduplication(clients, target.topic, enable=True)
    write = sink.NamedWrite(clients, "the-query", target.topic.full_name)
    staging = sink.StagingWriter(clients, write.directory)
    writer = sink.RowWriter(clients, asked, target, staging, None, 0)
    columns = {"value": pa.array(values, pa.binary())}
    if keys is not None:
        columns["__key"] = pa.array(keys)
    writer.write(pa.record_batch(columns))
    writer.finish()
    decided = write.decide(version, [staging.finish(writer.rows)], encrypted=False)
    assert decided is not None
    manifest, first = decided
    assert first
    return write, manifest


def send(
    clients: Clients,
    manifest: sink.Manifest,
    *,
    fresh: bool,
    now: Callable[[], float] = time.time,
    slept: list[float] | None = None,
) -> int:
    """How many entries were there already."""

    def sleep(seconds: float) -> None:
        if slept is not None:
            slept.append(seconds)
        time.sleep(seconds)

    repeated = 0
    for entries in manifest.partitions:
        task = sink.PartitionTask.of(manifest, entries, fresh=fresh)
        repeated += sink.send_partition(clients, task, now=now, sleep=sleep).repeated
    return repeated


def stored(clients: Clients, topic: str, column: str = "value") -> list[Any]:
    """In the order of the log, which a scan does not promise."""
    places = ["__ledgerId", "__entryId", "__batchIndex"]
    with TopicReader(clients, Topic.parse(topic)) as opened:
        table = opened.scan(columns=[column, *places]).read_all()
    found = table.sort_by([(name, "ascending") for name in places])[column].to_pylist()
    return list(found)


def seen(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """What a Python client gets."""
    with quiet_client(cluster.service_url) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest)
        found = [bytes(reader.read_next(timeout_millis=20_000).data()) for _ in range(count)]
        assert not reader.has_message_available()
        return found


def at_entries(actions: dict[int, Callable[[], Any]]) -> Callable[[], float]:
    """A clock, which is asked once an entry, and acts at some of them."""
    asked = iter(range(1 << 30))

    def now() -> float:
        actions.pop(next(asked), lambda: None)()
        return time.time()

    return now
