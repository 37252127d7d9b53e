"""From the shell's Enter to the answer: `pulsar-lake sql` in new processes, beside plain PySpark.

The plain script reads the Parquet files of the offloaded topic, whose rows are the hot topic's,
too. And what a hot query that was never asked before takes in a session that runs.
"""

import json
import operator
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.contenders.queries import collected, topic_table
from benchmarks.data.topics import JSON, Published
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

SMALL = replace(JSON, name="small", rows=JSON.quick_rows, ledgers=JSON.quick_ledgers)
"""A topic that somebody tries it with: what is measured is the start, not the scan."""

_QUERY = "SELECT country, count(*) n, sum(cents) cents FROM {} GROUP BY country"
_COMMAND = [sys.executable, "-c", "from offloader.cli.app import main; main()"]
_PLAIN = Path(__file__).parents[1] / "contenders" / "plain_spark.py"
_SHOWN = re.compile(r"^\|\s*(\w+)\|\s*(\d+)\|\s*(\d+)\|$", re.MULTILINE)

Answer = dict[str, tuple[int, int]]


def _run(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(SMALL)
    cold = world.config("first-answer")
    world.offloaded(cold, topic)
    table = TopicTable.open(open_storage(cold.storage), Topic.parse(topic.name))
    assert table is not None
    files = [str(one) for one in Path(table.uri).rglob("*.parquet")]
    query, expected = _QUERY.format(topic_table(topic)), _expected(topic)

    def ours(store: str) -> Contender:
        settings = world.directory / f"{store}.toml"
        settings.write_text(_toml(world.settings(store, spark={"delta": False})))
        command = [*_COMMAND, "sql", query, "--format", "json", "--config", str(settings)]
        return Contender(lambda: _of_rows(json.loads(_output(command))), expected)

    plain = [sys.executable, str(_PLAIN), _QUERY.format("t"), *files]
    contenders = {
        "offloaded": ours("first-answer"),
        "hot": ours("first-answer-hot"),
        "plain PySpark": Contender(lambda: _shown(_output(plain)), expected),
    }
    seconds = take_turns(contenders, bench.repeats)
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    for name, most in (("offloaded", 1.0), ("hot", 1.4)):
        ratio = paired(seconds[name], seconds["plain PySpark"], operator.truediv)
        results.append(bench.result(f"{name}: of plain PySpark's time", "x", ratio, at_most(most)))
    return results


def _warm(bench: Bench) -> list[Result]:
    """Each query has a bound that none had before, so none of it was planned before."""
    topic = bench.topic(SMALL)
    spark = bench.world.bare.spark
    bounds = count(1)

    def fresh() -> list[tuple[Any, ...]]:
        bound = next(bounds)
        text = f"SELECT count(*), min(id) - {bound} FROM {topic_table(topic)} WHERE id >= {bound}"
        ((rows, least),) = collected(spark, text)
        return [(rows + bound, least)]

    contenders = {
        "fresh hot query": Contender(fresh, [(topic.rows, 0)]),
        "range(1000)": Contender(
            partial(collected, spark, "SELECT count(*) FROM range(1000)"), [(1000,)]
        ),
    }
    seconds = take_turns(contenders, bench.repeats, warm_ups=5)
    ratio = paired(seconds["fresh hot query"], seconds["range(1000)"], operator.truediv)
    return [
        *(bench.result(name, "s", taken) for name, taken in seconds.items()),
        bench.result("fresh hot query: of range(1000)'s time", "x", ratio, at_most(3)),
    ]


def _expected(topic: Published) -> Answer:
    grouped = topic.truth.group_by("country").aggregate([("country", "count"), ("cents", "sum")])
    return {one["country"]: (one["country_count"], one["cents_sum"]) for one in grouped.to_pylist()}


def _of_rows(rows: list[dict[str, Any]]) -> Answer:
    return {one["country"]: (one["n"], one["cents"]) for one in rows}


def _shown(text: str) -> Answer:
    return {country: (int(n), int(cents)) for country, n, cents in _SHOWN.findall(text)}


def _output(command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise BrokenCaseError(f"{command[3]} exited with {done.returncode}")
    return done.stdout


def _toml(settings: dict[str, dict[str, Any]]) -> str:
    lines: list[str] = []
    for name, keys in settings.items():
        # JSON's texts, numbers and truth values are TOML's as well.
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
    return "\n".join(lines)


CASES = (
    Case("first_answer", "`pulsar-lake sql` in new processes, beside PySpark", _run, (SMALL,)),
    Case("first_answer_warm", "a new hot query in a warm session", _warm, (SMALL,)),
)
