"""Sealed hot segments: few columns against all, counts and extremes against a scan."""

import operator
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.case import Bench, Case
from benchmarks.contenders.queries import collected, scanned, topic_table
from benchmarks.contenders.source import one_percent
from benchmarks.data.topics import LONG
from benchmarks.measure import (
    Contender,
    Result,
    at_least,
    at_most,
    clocked_turns,
    paired,
    take_turns,
)
from offloader.config import Config

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _columns(bench: Bench) -> list[Result]:
    topic = bench.topic(LONG)
    spark, table = bench.world.bare.spark, topic_table(topic)
    payload = [field["name"] for field in topic.spec.kind.schema["fields"]]
    selected = {"two columns": ["id", "cents"], f"all {len(payload)} columns": payload}
    expected = (topic.rows, topic.sum_of_ids)

    def contender(names: list[str]) -> Contender:
        text = f"SELECT {', '.join(names)} FROM {table}"
        return Contender(lambda: scanned(spark, text), expected)

    seconds, cpu = clocked_turns(
        {name: contender(names) for name, names in selected.items()},
        bench.repeats,
        [time.perf_counter, bench.world.cpu],
    )
    two, ten = selected
    share, share_of_cpu = (
        paired(taken[two], taken[ten], operator.truediv) for taken in (seconds, cpu)
    )
    return [
        *(bench.result(name, "s", taken) for name, taken in seconds.items()),
        *(bench.result(f"{name}: CPU", "s", taken) for name, taken in cpu.items()),
        bench.result("two columns: share of the time of all", "x", share, at_most(0.5)),
        bench.result("two columns: share of the CPU", "x", share_of_cpu),
    ]


def _counts(bench: Bench) -> list[Result]:
    """`first`: nothing is known of the topic; `repeated`: it was read before."""
    world, topic = bench.world, bench.topic(LONG)
    table = topic_table(topic)
    first, repeated = world.config("first"), world.config("repeated")
    fresh, known = world.lake(first).spark, world.lake(repeated).spark
    times = one_percent(world.config("none"), topic)
    extremes = tuple(
        (_EPOCH + timedelta(microseconds=one)).replace(tzinfo=None)
        for one in (times.first, times.last)
    )
    count = f"SELECT count(*) FROM {table}"
    range_ = (
        f"SELECT CAST(min(__publishTime) AS TIMESTAMP_NTZ), "
        f"CAST(max(__publishTime) AS TIMESTAMP_NTZ) FROM {table}"
    )

    def forget() -> None:
        _forget(first)

    contenders = {
        "full scan": Contender(
            lambda: scanned(fresh, f"SELECT * FROM {table}"), (topic.rows, topic.sum_of_ids), forget
        ),
        "count(*), first": Contender(lambda: collected(fresh, count), [(topic.rows,)], forget),
        "min and max, first": Contender(lambda: collected(fresh, range_), [extremes], forget),
        "count(*), repeated": Contender(lambda: collected(known, count), [(topic.rows,)]),
    }
    seconds = take_turns(contenders, bench.repeats)
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    for name, target in (
        ("count(*), first", 2),
        ("min and max, first", 2),
        ("count(*), repeated", 10),
    ):
        ratio = paired(seconds["full scan"], seconds[name], operator.truediv)
        results.append(
            bench.result(f"{name}: faster than a full scan", "x", ratio, at_least(target))
        )
    return results


def _forget(config: Config) -> None:
    shutil.rmtree(Path(str(config.query.cache_dir)), ignore_errors=True)


CASES = (
    Case("hot_columns", "sealed hot segments: two of ten columns against all", _columns, (LONG,)),
    Case(
        "hot_counts", "count(*), min and max of a hot topic against a full scan", _counts, (LONG,)
    ),
)
