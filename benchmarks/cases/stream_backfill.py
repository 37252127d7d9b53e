"""Backfills to nowhere, from a query's start to its end (`Trigger.AvailableNow`)."""

import operator
from functools import partial
from typing import Any

import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader
from benchmarks.contenders.queries import scanned, topic_table
from benchmarks.contenders.streams import streamed
from benchmarks.data.topics import LONG
from benchmarks.measure import Contender, Result, at_least, paired, take_turns
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

OURS, DELTA = "topic", "Delta"
QUERY, LOOP = "the same as a query", "pulsar-client loop, not decoded"
ALL, SOME = "all columns", "filter, two columns"


def _cold(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(LONG)
    config = world.config("cold")
    spark = world.offloaded(config, topic).spark
    storage = open_storage(config.storage)
    table = TopicTable.open(storage, Topic.parse(topic.name))
    assert table is not None
    french = topic.truth.filter(pc.equal(topic.truth["country"], "FR"))
    expected = {
        ALL: (topic.rows, topic.sum_of_ids),
        SOME: (french.num_rows, pc.sum(french["id"]).as_py()),
    }
    path = storage.spark_uri(table.uri)

    def run(source: str, what: str) -> tuple[int, int]:
        reader = spark.readStream
        rows = (
            reader.table(topic_table(topic))
            if source == OURS
            else reader.format("delta").load(path)
        )
        return streamed(rows if what == ALL else _some(rows))

    contenders = {
        f"{what}, {source}": Contender(partial(run, source, what), expected[what])
        for what in (ALL, SOME)
        for source in (OURS, DELTA)
    }
    seconds = take_turns(contenders, bench.repeats)
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    for what, least in ((ALL, 1.0), (SOME, 1.5)):
        ratio = paired(seconds[f"{what}, {DELTA}"], seconds[f"{what}, {OURS}"], operator.truediv)
        results.append(
            bench.result(f"{what}: faster than Delta's source", "x", ratio, at_least(least))
        )
    return results


def _some(rows: Any) -> Any:
    return rows.where("country = 'FR'").select("id", "cents")


def _hot(bench: Bench) -> list[Result]:
    topic, client = bench.topic(LONG), bench.world.client
    spark, table = bench.world.bare.spark, topic_table(topic)
    contenders = {
        OURS: Contender(
            lambda: streamed(spark.readStream.table(table)), (topic.rows, topic.sum_of_ids)
        ),
        QUERY: Contender(
            lambda: scanned(spark, f"SELECT * FROM {table}"), (topic.rows, topic.sum_of_ids)
        ),
        LOOP: Contender(lambda: python_reader(client, topic), (topic.rows, topic.payload_bytes)),
    }
    seconds = take_turns(contenders, bench.repeats)
    faster, slower = (
        paired(seconds[one], seconds[other], operator.truediv)
        for one, other in ((LOOP, OURS), (OURS, QUERY))
    )
    return [
        *(bench.result(name, "s", taken) for name, taken in seconds.items()),
        bench.result("faster than the loop", "x", faster, at_least(5)),
        bench.result("of the query's time", "x", slower),
    ]


CASES = (
    Case("stream_cold", "a stream of an offloaded topic beside Delta's source", _cold, (LONG,)),
    Case("stream_sealed", "a stream of sealed hot ledgers beside a client's loop", _hot, (LONG,)),
)
