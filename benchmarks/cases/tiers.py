"""Spark SQL over one topic, each tier alone: five queries from a count to a full scan."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from benchmarks.bench import Bench, Result, take_turns
from demo.chart import NAMES

__all__ = ["NAME", "run"]

NAME = "Spark SQL by tier"
_TIERS = ("parquet", "bookkeeper", "broker")


def run(bench: Bench) -> list[Result]:
    spark, topic = bench.lake.spark, bench.stage.topic
    for tier in _TIERS:
        bench.lake.table(topic, tiers=tier).createOrReplaceTempView(tier)
    results: list[Result] = []
    rows = []
    for case, work in _queries(spark).items():
        contenders = {tier: partial(work, tier) for tier in _TIERS}
        seconds = take_turns(case, contenders, bench.repeats)
        results += [Result.of(case, tier, "s", times) for tier, times in seconds.items()]
        results += _ratios(case, seconds)
        rows.append([case, *(_cell(times) for times in seconds.values()), *_factors(seconds)])
    header = ["query", *(NAMES[tier] for tier in _TIERS), "BK/Pq", "br/BK"]
    bench.screen.table(header, rows)
    bench.screen.line("seconds: median (min-max); ratios of BookKeeper to Parquet, broker to BK")
    return results


def _queries(spark: Any) -> dict[str, Callable[[str], object]]:
    """Each takes the name of a view, and returns what all tiers must agree on."""

    def sql(text: str) -> Callable[[str], object]:
        return lambda view: [tuple(row) for row in spark.sql(text.format(view)).collect()]

    def scan(view: str) -> None:
        spark.table(view).write.format("noop").mode("overwrite").save()

    low, high = _one_percent(spark)
    return {
        "count(*)": sql("SELECT count(*) FROM {}"),
        "filter, group by": sql(
            "SELECT kind, count(*), sum(cents), max(quantity) FROM {} "
            "WHERE country = 'FR' GROUP BY kind ORDER BY kind"
        ),
        "two columns": sql("SELECT sum(cents), max(user) FROM {}"),
        "all columns": scan,
        "1 % of publish time": sql(
            "SELECT count(*), sum(cents) FROM {} "
            f"WHERE __publishTime BETWEEN timestamp_micros({low}) AND timestamp_micros({high})"
        ),
    }


def _one_percent(spark: Any) -> tuple[int, int]:
    """From µs to µs: publish times around the middle that one row in a hundred has."""
    text = "SELECT percentile(unix_micros(__publishTime), array(0.495, 0.505)) FROM parquet"
    low, high = spark.sql(text).collect()[0][0]
    return int(low), int(high)


def _ratios(case: str, seconds: dict[str, list[float]]) -> list[Result]:
    return [
        Result.of(case, f"{a}/{b}", "ratio", [_ratio(seconds, a, b)])
        for a, b in (("bookkeeper", "parquet"), ("broker", "bookkeeper"))
    ]


def _factors(seconds: dict[str, list[float]]) -> list[str]:
    pairs = (("bookkeeper", "parquet"), ("broker", "bookkeeper"))
    return [f"{_ratio(seconds, a, b):.1f}" for a, b in pairs]


def _ratio(seconds: dict[str, list[float]], a: str, b: str) -> float:
    return median(seconds[a]) / median(seconds[b])


def _cell(times: list[float]) -> str:
    return f"{median(times):.2f} ({min(times):.2f}-{max(times):.2f})"
