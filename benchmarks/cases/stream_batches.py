"""Small micro-batches of fresh messages: what a trigger takes, and how late a row comes.

Queries have the same rhythm, and their first micro-batches are left out, so that both are warm.
"""

import operator
import random
import threading
import time
from statistics import median
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.contenders.streams import progress, streaming, wait_for_rows
from benchmarks.data.events import EVENT
from benchmarks.measure import BrokenCaseError, Result, at_most, paired
from benchmarks.servers import NAMESPACE
from testbed.publish import json_schema, publish

OURS, RATE = "topic", "rate source"
_ROWS, _BATCH = 300, 100
_RHYTHM = "500 milliseconds"
_FIRST = 3
"""Micro-batches of a query that do not count."""
_PARTS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")

_PAUSES = (0.2, 2.0)
"""Seconds between two messages: what has been quiet is asked for less often."""
_PATIENCE = 60.0


def _warm(bench: Bench) -> list[Result]:
    batches = 3 if bench.quick else 12
    topic = f"{NAMESPACE}/stream-batches"
    bench.world.admin.create_topic(topic)
    schema = json_schema(EVENT.schema)
    values = next(EVENT.batches(_ROWS, 1)).to_pylist()

    def send() -> None:
        client = bench.world.client
        publish(client, topic, values, schema=schema, batch=_BATCH, compression="LZ4")

    send()  # a topic without a message has no column
    spark = bench.world.bare.spark
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", _ROWS).load()
    taken: dict[str, list[dict[str, float]]] = {OURS: [], RATE: []}
    for number in range(1 + bench.repeats):
        for name, turns in taken.items():
            frame = _latest(spark, topic) if name == OURS else rate
            writer = frame.writeStream.format("noop").trigger(processingTime=_RHYTHM)
            with streaming(writer) as query:
                if name == OURS:
                    wait_until_idle(query)
                for done in range(_FIRST + batches):
                    if name == OURS:
                        send()
                    wait_for_rows(query, (done + 1) * _ROWS)
                durations = [one["durationMs"] for one in progress(query) if one["numInputRows"]]
            if number:
                turns.append(_medians(durations[_FIRST:]))
    whole = {name: [one["triggerExecution"] for one in turns] for name, turns in taken.items()}
    return [
        *(bench.result(f"a trigger, {name}", "ms", runs) for name, runs in whole.items()),
        *(
            bench.result(f"of it {part}, {name}", "ms", [one[part] for one in turns])
            for part in _PARTS
            for name, turns in taken.items()
        ),
        bench.result(
            "of the rate source's trigger",
            "x",
            paired(whole[OURS], whole[RATE], operator.truediv),
            at_most(2.5),
        ),
    ]


def _medians(durations: list[dict[str, int]]) -> dict[str, float]:
    return {
        part: median(float(one.get(part, 0)) for one in durations)
        for part in ("triggerExecution", *_PARTS)
    }


def wait_until_idle(query: Any) -> None:
    """Until the query waits for messages: from then on it sees what is published."""
    deadline = time.monotonic() + _PATIENCE
    while "Waiting" not in query.status["message"]:
        if time.monotonic() > deadline:
            raise BrokenCaseError(f"the stream does not become idle: {query.status}")
        time.sleep(0.05)


def _latest(spark: Any, topic: str) -> Any:
    return (
        spark.readStream.format("pulsar")
        .option("topic", topic)
        .option("startingPosition", "latest")
        .load()
    )


def _lateness(bench: Bench) -> list[Result]:
    """From a message's receipt until the function of `foreachBatch` has its row."""
    topic = f"{NAMESPACE}/stream-lateness"
    bench.world.admin.create_topic(topic)
    producer = bench.world.client.create_producer(topic, batching_enabled=False)
    producer.send(b"first")
    arrived: dict[bytes, float] = {}
    came = threading.Condition()

    def note(frame: Any, number: int) -> None:
        rows = frame.select("value").collect()
        now = time.perf_counter()
        with came:
            arrived.update((bytes(row.value), now) for row in rows)
            came.notify_all()

    chance = random.Random(1)
    late = []
    with streaming(_latest(bench.world.bare.spark, topic).writeStream.foreachBatch(note)) as query:
        wait_until_idle(query)
        for number in range(3 + (5 if bench.quick else 10 * bench.repeats)):
            time.sleep(chance.uniform(*_PAUSES))
            value = b"%d" % number
            producer.send(value)
            sent = time.perf_counter()
            with came:
                if not came.wait_for(lambda: value in arrived, _PATIENCE):  # noqa: B023
                    raise BrokenCaseError(f"message {number} has not come")
            late.append(arrived[value] - sent)
    producer.close()
    return [bench.result("from the receipt to foreachBatch", "s", late[3:], at_most(1))]


CASES = (
    Case("stream_batches", "a warm small micro-batch beside Spark's rate source", _warm),
    Case("stream_lateness", "from a message's receipt to its row in foreachBatch", _lateness),
)
