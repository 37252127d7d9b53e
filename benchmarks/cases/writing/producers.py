"""A million rows to a topic without partitions, every receipt waited for: rows a CPU second.

CPU of the process that writes; the servers are not counted. The clients get ready payloads on a
topic without a schema; ours encodes Avro out of Arrow columns.
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

OURS, PYTHON, JAVA = "ours, from columns", "pulsar-client", "Java client"
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
        messages = _messages(batches)
        client = world.client
        writers: dict[str, tuple[bool, Callable[[str], int]]] = {
            OURS: (True, lambda topic: own_producer(clients, topic, batches)),
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
        bench.result(
            "as fast as pulsar-client",
            "x",
            paired(taken[PYTHON], taken[OURS], operator.truediv),
            at_least(10),
        ),
        bench.result(
            "as fast as the Java client",
            "x",
            paired(taken[JAVA], taken[OURS], operator.truediv),
            at_least(3),
        ),
    ]


def _messages(batches: list[pa.RecordBatch]) -> list[tuple[bytes, str, int]]:
    found: list[tuple[bytes, str, int]] = []
    names = [field["name"] for field in READING.schema["fields"]]
    for batch in batches:
        payloads = as_avro(batch.select(names), READING.schema).to_pylist()
        keys, times = batch.column("__key").to_pylist(), batch.column("at").to_pylist()
        found += zip(payloads, keys, times, strict=True)
    return found


CASES = (Case("producers", "rows to a topic, beside the official clients", _run),)
