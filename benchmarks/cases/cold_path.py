"""The cold half of a topic against Spark's own Delta scan: a session's first query, and planning.

The first query runs in a new process, whose session has run `SELECT 1`, with Delta's extension in
both: what differs is the table that is named. Planning is from the text to Spark's tasks, in a
warm session, over a table of many files that do not exist.
"""

import json
import operator
import subprocess
import sys
from functools import partial
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.contenders.queries import topic_table
from benchmarks.data.events import EVENT
from benchmarks.data.topics import JSON
from benchmarks.data.wide_table import Wide, fill_table
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from benchmarks.servers import NAMESPACE
from reader.clients import Clients
from reader.model import Topic
from reader.storage import open_storage
from spark_ext.session.handoff import settings_file

_DAY_MS = 86_400_000
_REACH = at_most(0.5)


def _run(bench: Bench) -> list[Result]:
    return _first_query(bench) + _planning(bench)


# -- the first query of a session ------------------------------------------------------------------


def _first_query(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(JSON)
    config = world.config("cold")
    world.offloaded(config, topic)
    settings = settings_file(config)
    assert settings is not None
    storage = open_storage(config.storage)
    path = storage.spark_uri(storage.table_uri(Topic.parse(topic.name)))
    sources = {"topic": topic_table(topic), "Delta": f"delta.`{path}`"}
    expected = [topic.rows, topic.sum_of_ids, topic.total("cents")]
    seconds: dict[str, list[float]] = {name: [] for name in sources}

    def query_in(name: str) -> object:
        query = f"SELECT count(*), sum(id), sum(cents) FROM {sources[name]}"
        taken, row = _in_new_process(settings, query)
        seconds[name].append(taken)
        return row

    contenders = {name: Contender(partial(query_in, name), expected) for name in sources}
    take_turns(contenders, 1 if bench.quick else bench.repeats, warm_ups=0)
    ratio = paired(seconds["topic"], seconds["Delta"], operator.truediv)
    return [
        *(bench.result(f"first query, {name}", "s", taken) for name, taken in seconds.items()),
        bench.result("first query, of Delta's time", "x", ratio, _REACH),
    ]


def _in_new_process(settings: str, query: str) -> tuple[float, list[int]]:
    command = [sys.executable, "-m", "benchmarks.contenders.new_process", settings, query, "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BrokenCaseError(f"the new process exited with {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"][0], answer["rows"][0]


# -- planning --------------------------------------------------------------------------------------


def _planning(bench: Bench) -> list[Result]:
    sizes = (1_000,) if bench.quick else (10_000, 100_000)
    return [one for files in sizes for one in _planned(bench, files)]


def _planned(bench: Bench, files: int) -> list[Result]:
    world, topic = bench.world, Topic.parse(f"{NAMESPACE}/cold-path-{files}")
    world.admin.create_topic(str(topic), partitions=4)
    config = world.config(f"cold-path-{files}")
    with Clients(config) as clients:
        wide = Wide(topic, 4, files, EVENT.schema, clients.admin.cluster())
        table = fill_table(clients.storage, wide, commits=max(5, files // 1000))
    spark = world.lake(config).spark
    low = wide.span(files // 2)[0]
    day = (
        f"__publishTime >= timestamp_millis({low}) "
        f"AND __publishTime < timestamp_millis({low + _DAY_MS})"
    )
    # The table alone, without a listing of as many ledgers.
    sources = {
        "topic": f"pulsar.`public/default`.`{topic.name}$tiers=parquet`",
        "Delta": f"delta.`{table.uri}`",
    }
    texts = {
        f"{name}, {what}": f"SELECT id, cents FROM {source}{where}"
        for what, where in (("all", ""), ("one day", f" WHERE {day}"))
        for name, source in sources.items()
    }
    contenders = {name: _tasks(spark, text) for name, text in texts.items()}
    seconds = take_turns(contenders, bench.repeats)
    results = [
        bench.result(f"{files:,} files, {name}", "s", taken) for name, taken in seconds.items()
    ]
    for what in ("all", "one day"):
        ratio = paired(seconds[f"topic, {what}"], seconds[f"Delta, {what}"], operator.truediv)
        reach = _REACH if what == "one day" else None
        results.append(bench.result(f"{files:,} files, {what}: of Delta's", "x", ratio, reach))
    return results


def _tasks(spark: Any, text: str) -> Contender:
    """From the query's text to the list of Spark's tasks, which has to be the same each time."""

    def count() -> int:
        return int(spark.sql(text)._jdf.queryExecution().toRdd().getNumPartitions())

    return Contender(count, count())


CASES = (
    Case("cold_path", "the cold half of a topic against Spark's own Delta scan", _run, (JSON,)),
)
