"""A wholly offloaded topic: against Spark's own Delta scan of its table, and a client's loop."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader, python_rows
from benchmarks.contenders.queries import collected, plan, scanned, topic_table
from benchmarks.contenders.source import OnePercent, one_percent
from benchmarks.data.topics import LONG, UNBATCHED, Published, TopicSpec
from benchmarks.measure import Contender, Result, at_least, at_most, paired, take_turns
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

SCAN = "full scan"
LOOP, BARE_LOOP = "pulsar-client loop, values as dicts", "pulsar-client loop, not decoded"
_FACTOR, _SECONDS = 1.05, 0.5  # of Delta's time, and on top of it


@dataclass(frozen=True, slots=True)
class Fields:
    """What the queries use of a topic: text to filter and to group by, numbers to add up."""

    filtered: str
    value: str
    grouped: str
    added: str
    greatest: str


def _run(spec: TopicSpec, fields: Fields, bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(spec)
    config = world.config("cold")
    spark = world.offloaded(config, topic).spark
    storage = open_storage(config.storage)
    table = TopicTable.open(storage, Topic.parse(topic.name))
    assert table is not None
    sources = {"topic": topic_table(topic), "Delta": f"delta.`{storage.spark_uri(table.uri)}`"}
    contenders = {
        f"{query}, {name}": Contender(partial(work, spark, source), expected)
        for query, (work, expected) in _queries(topic, fields, one_percent(config, topic)).items()
        for name, source in sources.items()
    }
    client = world.client
    contenders[LOOP] = Contender(lambda: python_rows(client, topic), (topic.rows, topic.sum_of_ids))
    contenders[BARE_LOOP] = Contender(
        lambda: python_reader(client, topic), (topic.rows, topic.payload_bytes)
    )
    seconds = take_turns(contenders, bench.repeats)
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    for query in _queries(topic, fields, None):
        ours, delta = seconds[f"{query}, topic"], seconds[f"{query}, Delta"]
        over = paired(ours, delta, lambda one, other: one - _FACTOR * other)
        results.append(
            bench.result(f"{query}: beyond {_FACTOR} x Delta", "s", over, at_most(_SECONDS))
        )
        target = at_least(15 if query == SCAN else 50)
        ratio = paired(seconds[LOOP], ours, operator.truediv)
        results.append(bench.result(f"{query}: faster than the loop", "x", ratio, target))
    text = "SELECT * FROM {}"
    plans = {_operators(plan(spark, text.format(source))) for source in sources.values()}
    same = float(len(plans) == 1)
    results.append(bench.result("plan has Delta's operators", "yes = 1", [same], at_least(1)))
    if len(plans) > 1:
        bench.say("the plans differ; they are in the log")
        print(*plans, sep="\n--- and ---\n", flush=True)
    return results


def _operators(text: str) -> str:
    """A plan without the names of tables and files."""
    named = re.sub(r"(FileScan parquet) [^\[]*", r"\1 ", text)
    return re.sub(r"Location: [^,]*, ", "", named)


def _queries(
    topic: Published, fields: Fields, range_: OnePercent | None
) -> dict[str, tuple[Callable[[Any, str], object], object]]:
    """By name: what runs it on a session and a source, and the answer."""
    rows, by = topic.truth, fields.grouped
    some = rows.filter(pc.equal(rows[fields.filtered], fields.value))
    kinds = (
        pa.TableGroupBy(rows, by)
        .aggregate([(by, "count"), (fields.added, "sum"), (fields.greatest, "max")])
        .sort_by(by)
    )
    grouped = [
        (one[by], one[f"{by}_count"], one[f"{fields.added}_sum"], one[f"{fields.greatest}_max"])
        for one in kinds.to_pylist()
    ]
    part = range_ or OnePercent(0, 0, 0, 0, 0, 0)
    return {
        "count(*)": (_sql("SELECT count(*) FROM {}"), [(topic.rows,)]),
        "filter": (
            _sql(
                f"SELECT count(*), sum({fields.added}) FROM {{}} "
                f"WHERE {fields.filtered} = '{fields.value}'"
            ),
            [(some.num_rows, pc.sum(some[fields.added]).as_py())],
        ),
        "group by": (
            _sql(
                f"SELECT {by}, count(*), sum({fields.added}), max({fields.greatest}) FROM {{}} "
                f"GROUP BY {by} ORDER BY {by}"
            ),
            grouped,
        ),
        "1 % of the time": (
            _sql(f"SELECT count(*), sum(id) FROM {{}} WHERE {part.where}"),
            [(part.rows, part.ids)],
        ),
        SCAN: (
            lambda spark, source: scanned(spark, f"SELECT * FROM {source}"),
            (topic.rows, topic.sum_of_ids),
        ),
    }


def _sql(text: str) -> Callable[[Any, str], object]:
    return lambda spark, source: collected(spark, text.format(source))


def _case(name: str, spec: TopicSpec, fields: Fields) -> Case:
    about = f"SQL on topic {spec.name}, offloaded, beside Spark's Delta scan and a client's loop"
    return Case(name, about, partial(_run, spec, fields), (spec,))


CASES = (
    _case("cold_queries", LONG, Fields("country", "FR", "kind", "cents", "user")),
    _case("cold_unbatched", UNBATCHED, Fields("state", "low", "state", "id", "at")),
)
