"""Who writes rows to a topic: our producer, and the clients that one would use without it.

The clients are given payloads that are encoded already; ours begins with columns.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pulsar
import pyarrow as pa

from benchmarks.measure import BrokenCaseError
from reader.clients import Clients
from reader.encode import EncodedEntry
from reader.model import Partition, Topic
from reader.pulsar.binary import Publisher
from reader.sink import RowWriter, SinkOptions, Target, resolve_target
from reader.sink.sending import outgoing
from testbed.process import Server
from testbed.server import config
from testbed.server.jars import server_jars

__all__ = ["BATCH", "JavaWriter", "own_producer", "python_producer"]

BATCH = 1000
"""Messages of a batch, of each of them."""
_BATCH_BYTES = 4 << 20
_PENDING = 20_000
_SOURCE = Path(__file__).with_name("java") / "TimedWriter.java"


def own_producer(clients: Clients, topic: str, batches: list[pa.RecordBatch]) -> int:
    """Columns to messages, each receipt waited for: how many."""
    options = SinkOptions.of(
        {"batchingMaxMessages": str(BATCH), "batchingMaxBytes": str(_BATCH_BYTES >> 1)}
    )
    target = resolve_target(clients, Topic.parse(topic))
    with clients.publisher() as publisher:
        sink = _OneProducer(publisher, target)
        writer = RowWriter(clients, options, target, sink, lambda: None, 0)
        for batch in batches:
            writer.write(batch)
        writer.finish()
        return sink.finish()


class _OneProducer:
    """An ``EntrySink`` of a topic without partitions."""

    def __init__(self, publisher: Publisher, target: Target) -> None:
        self._producer = publisher.producer(target.partition(0), schema=target.schema_message)
        self._sequence = 0

    def put(self, target: Target, partition: Partition, entry: EncodedEntry) -> None:
        made = outgoing(self._producer.name, self._sequence, entry, time.time)
        self._sequence += entry.ids
        self._producer.send(made)

    def finish(self) -> int:
        self._producer.flush()
        self._producer.close()
        return self._sequence


def python_producer(client: Any, topic: str, messages: list[tuple[bytes, str, int]]) -> int:
    """``send_async`` for each (payload, key, event time), each receipt waited for: how many."""
    stored = 0

    def taken(result: pulsar.Result, _: object) -> None:
        nonlocal stored
        stored += result == pulsar.Result.Ok

    producer = client.create_producer(
        topic,
        compression_type=pulsar.CompressionType.LZ4,
        batching_enabled=True,
        batching_max_messages=BATCH,
        batching_max_allowed_size_in_bytes=_BATCH_BYTES,
        block_if_queue_full=True,
        max_pending_messages=_PENDING,
    )
    for payload, key, at in messages:
        producer.send_async(payload, taken, partition_key=key, event_timestamp=at)
    producer.flush()
    producer.close()
    return stored


class JavaWriter(Server):
    """Pulsar's Java client in one JVM; it writes again what it has read of a topic."""

    def __init__(self, service_url: str) -> None:
        self._service_url = service_url

    def start(self) -> None:
        jars = server_jars()
        self._directory = tempfile.TemporaryDirectory(prefix="pulsar-lake-bench-java-")
        folder = Path(self._directory.name)
        logging = {**config.log4j("WARN"), "appender.console.target": "SYSTEM_ERR"}
        config.write(folder / "log4j2.properties", logging)
        memory = "-Xmx3g -XX:MaxDirectMemorySize=1g"
        command = config.jvm(
            jars, folder, str(_SOURCE), self._service_url, memory=memory, short_lived=False
        )
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    def stop(self) -> None:
        """It ends with its input."""
        try:
            self._child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
        self._directory.cleanup()

    @property
    def pid(self) -> int:
        return self._child.pid

    def load(self, topic: str, count: int) -> int:
        """Keep so many messages of a topic: how many."""
        return self._ask(f"load {topic} {count}")

    def write(self, topic: str) -> int:
        """Write what it keeps, each receipt waited for: how many."""
        return self._ask(f"write {topic} {BATCH}")

    def _ask(self, line: str) -> int:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(f"{line}\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline().strip()
        if not answer:
            raise BrokenCaseError("the Java client failed; its reason is in the log")
        return int(answer)
