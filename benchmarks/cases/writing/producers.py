"""A million rows to a topic without partitions, every receipt waited for: rows a CPU second.

CPU of the process that writes; the servers are not counted. The clients get ready payloads on a
topic without a schema, and so does ours once; else it encodes Avro out of Arrow columns.
"""

from __future__ import annotations

import json
import operator
import uuid
from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.writers import JavaWriter, own_producer, python_producer
from benchmarks.data.encode import as_avro
from benchmarks.data.events import READING
from benchmarks.measure import Contender, Result, at_least, clocked_turns, paired
from benchmarks.world import NAMESPACE
from reader.clients import Clients
from reader.model import SchemaInfo, Topic
from testbed.usage import cpu_seconds, process_seconds

__all__ = ["CASES", "as_rows"]

OURS, READY = "from columns", "ready payloads"
PYTHON, JAVA = "pulsar-client", "Java client"
_ROWS, _QUICK = 1_000_000, 20_000
_AT_ONCE = 10_000  # as Spark hands rows to Python
_SEED = 20_260_101


def as_rows(count: int) -> list[pa.RecordBatch]:
    """Readings with a key and an event time, as a write has them."""
    found = []
    for rows in READING.batches(count, _SEED):
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        columns["__key"] = columns["sensor"]
        micros = pc.multiply(columns["at"], 1000)
        columns["__eventTime"] = micros.cast(pa.timestamp("us", tz="UTC"))
        whole = pa.record_batch(columns)
        found += [whole.slice(at, _AT_ONCE) for at in range(0, whole.num_rows, _AT_ONCE)]
    return found


def _run(bench: Bench) -> list[Result]:
    count = _QUICK if bench.quick else _ROWS
    batches = as_rows(count)
    world = bench.world
    with Clients(world.config("none")) as clients, JavaWriter(world.cluster.service_url) as java:

        def fresh(schema: bool) -> str:
            topic = f"{NAMESPACE}/written-{uuid.uuid4().hex[:12]}"
            world.admin.create_topic(topic)
            if schema:
                info = SchemaInfo(-1, "AVRO", json.dumps(READING.schema))
                clients.admin.put_schema(Topic.parse(topic), info)
            return topic

        source = fresh(schema=True)
        own_producer(clients, source, batches)
        java.load(source, count)
        ready = _ready(batches)
        messages = _messages(ready)
        client = world.client
        writers: dict[str, tuple[bool, Callable[[str], int]]] = {
            OURS: (True, lambda topic: own_producer(clients, topic, batches)),
            READY: (False, lambda topic: own_producer(clients, topic, ready)),
            PYTHON: (False, lambda topic: python_producer(client, topic, messages)),
            JAVA: (False, java.write),
        }
        target: dict[str, str] = {}

        def prepare(name: str) -> None:
            target[name] = fresh(writers[name][0])

        contenders = {
            name: Contender(
                lambda name=name: writers[name][1](target[name]),  # type: ignore[misc]
                count,
                partial(prepare, name),
            )
            for name in writers
        }

        def cpu() -> float:
            return cpu_seconds() + process_seconds(java.pid)

        [taken] = clocked_turns(contenders, bench.repeats, [cpu])
    return [
        *(
            bench.result(name, "rows/CPU s", [count / one for one in spent])
            for name, spent in taken.items()
        ),
        *(
            bench.result(
                f"{ours}: {other}",
                "x",
                paired(taken[other], taken[ours], operator.truediv),
                at_least(target),
            )
            for other, target in ((PYTHON, 10), (JAVA, 3))
            for ours in (OURS, READY)
        ),
    ]


def _ready(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """The same rows with the Avro record of each as its payload."""
    names = [field["name"] for field in READING.schema["fields"]]
    return [
        pa.record_batch(
            {
                "value": as_avro(batch.select(names), READING.schema),
                "__key": batch.column("__key"),
                "__eventTime": batch.column("__eventTime"),
            }
        )
        for batch in batches
    ]


def _messages(ready: list[pa.RecordBatch]) -> list[tuple[bytes, str, int]]:
    found: list[tuple[bytes, str, int]] = []
    for batch in ready:
        times = pc.divide(batch.column("__eventTime").cast(pa.int64()), 1000)
        found += zip(*(one.to_pylist() for one in (*batch.columns[:2], times)), strict=True)
    return found


CASES = (Case("producers", "rows to a topic, beside the official clients", _run),)
