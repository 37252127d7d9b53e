"""A million rows from Spark to a topic of four partitions, from the statement to its end.

The rows are in a Parquet file, which Spark has read before. The loop is what one writes without the
product: ``foreachPartition`` over ``pulsar-client``, Avro by ``fastavro``.
"""

import json
import operator
import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.case import Bench, Case
from benchmarks.data.events import READING
from benchmarks.measure import Contender, Result, at_least, at_most, paired, take_turns
from benchmarks.servers import NAMESPACE

ONCE, AT_LEAST, LOOP = "INSERT", "INSERT, at least once", "foreachPartition, pulsar-client"
_ROWS, _QUICK = 1_000_000, 20_000
_TASKS = 4
_SEED = 20_260_101
_BATCH = 1000
"""Messages of a batch of the loop."""


def _run(bench: Bench) -> list[Result]:
    count = _QUICK if bench.quick else _ROWS
    world = bench.world
    path = world.directory / "readings.parquet"
    table = _readings(count)
    pq.write_table(table, path, row_group_size=count // _TASKS)
    lake = world.lake(world.config("writing"))
    spark = lake.spark
    rows = spark.read.parquet(str(path)).repartition(_TASKS).cache()
    assert rows.count() == count
    target: dict[str, str] = {}

    def prepare(name: str) -> None:
        topic = f"written-{uuid.uuid4().hex[:12]}"
        columns = ", ".join(f"{field.name} {_ddl(field.type)}" for field in _payload(table.schema))
        spark.sql(
            f"CREATE TABLE pulsar.`{NAMESPACE}`.`{topic}` ({columns}) "
            f"TBLPROPERTIES ('partitions'='{_TASKS}')"
        )
        target[name] = topic

    def insert(name: str, delivery: str) -> int:
        writer = rows.writeTo(f"pulsar.`{NAMESPACE}`.`{target[name]}`")
        writer.option("delivery", delivery).append()
        return _stored(bench, target[name])

    def loop(name: str) -> int:
        topic = f"persistent://{NAMESPACE}/{target[name]}"
        send = partial(_send, world.cluster.service_url, topic, json.dumps(READING.schema))
        rows.foreachPartition(send)
        return _stored(bench, target[name])

    contenders = {
        ONCE: Contender(partial(insert, ONCE, "exactly-once"), count, partial(prepare, ONCE)),
        AT_LEAST: Contender(
            partial(insert, AT_LEAST, "at-least-once"), count, partial(prepare, AT_LEAST)
        ),
        LOOP: Contender(partial(loop, LOOP), count, partial(prepare, LOOP)),
    }
    seconds = take_turns(contenders, bench.repeats)
    rows.unpersist()
    faster = paired(seconds[LOOP], seconds[ONCE], operator.truediv)
    staging = paired(seconds[ONCE], seconds[AT_LEAST], lambda one, other: 100 * (1 - other / one))
    return [
        *(bench.result(name, "s", taken) for name, taken in seconds.items()),
        bench.result("faster than the loop", "x", faster, at_least(5)),
        bench.result("of it, staging", "%", staging, at_most(30)),
    ]


def _readings(count: int) -> pa.Table:
    """Return readings with a key and an event time, as a write has them."""
    table = pa.Table.from_batches(list(READING.batches(count, _SEED)))
    times = pc.multiply(table["at"], 1000).cast(pa.timestamp("us", tz="UTC"))
    return table.append_column("__key", table["sensor"]).append_column("__eventTime", times)


def _stored(bench: Bench, topic: str) -> int:
    """Messages that its brokers have taken."""
    return bench.world.admin.messages(f"{NAMESPACE}/{topic}")


def _payload(schema: pa.Schema) -> list[pa.Field]:
    return [field for field in schema if not field.name.startswith("__")]


def _ddl(kind: pa.DataType) -> str:
    return {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "STRING"}[kind]


def _send(url: str, topic: str, schema: str, rows: Iterator[Any]) -> None:
    """In Spark's Python workers."""
    import io

    import fastavro
    import pulsar

    parsed = fastavro.parse_schema(json.loads(schema))
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(
        topic,
        compression_type=pulsar.CompressionType.LZ4,
        batching_enabled=True,
        batching_max_messages=_BATCH,
        batching_max_allowed_size_in_bytes=4 << 20,
        block_if_queue_full=True,
        max_pending_messages=20_000,
    )
    for row in rows:
        value = row.asDict()
        key, at = value.pop("__key"), value.pop("__eventTime")
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        producer.send_async(
            out.getvalue(),
            lambda result, message: None,
            partition_key=key,
            event_timestamp=int(at.timestamp() * 1000),
        )
    producer.flush()
    client.close()


CASES = (Case("inserts", "INSERT beside a loop over pulsar-client", _run),)
