"""One query over many topics at once, of streams and of tables alike: each row as JSON.

A streaming query takes about a second, however many topics it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from reader.model import Topic
from spark_ext import PulsarLake
from tests.spark.stream.runs import reader, run

__all__ = ["Rows", "queried", "streamed", "together"]

Rows = dict[str, list[str]]
"""By topic, sorted."""


def queried(lake: PulsarLake, topics: Sequence[str], tiers: str | None = None) -> Rows:
    """Return the rows of all topics by one query."""
    return together(_union(_tables(lake, topics, tiers)).collect())


def streamed(
    lake: PulsarLake, topics: Sequence[str], checkpoint: Path, **options: Any
) -> list[Rows]:
    """What is new since the checkpoint, by batch. Topics of the same columns are one source."""
    by_columns: dict[str, list[str]] = defaultdict(list)
    for topic, table in zip(topics, _tables(lake, topics), strict=True):
        by_columns[table.schema.simpleString()].append(Topic.parse(topic).local_name)
    sources = [
        reader(lake, topics=",".join(names), **options).format("pulsar").load()
        for names in by_columns.values()
    ]
    return [together(batch) for batch in run(_union(sources), checkpoint)]


def _tables(lake: PulsarLake, topics: Sequence[str], tiers: str | None = None) -> list[DataFrame]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda topic: lake.table(topic, tiers=tiers), topics))


def together(rows: Iterable[tuple[str, str]]) -> Rows:
    found: Rows = defaultdict(list)
    for topic, row in rows:
        found[topic].append(row)
    return {topic: sorted(found[topic]) for topic in sorted(found)}


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    """Unite by halves: Spark analyses what it has united again with each union."""
    some = [_as_json(frame) for frame in frames]
    while len(some) > 1:
        halves = zip_longest(some[::2], some[1::2])
        some = [first.unionAll(second) if second else first for first, second in halves]
    return some[0]


def _as_json(frame: DataFrame) -> DataFrame:
    """Return each row as JSON, in which bytes are base64 and times are microseconds of UTC."""
    options = {
        "ignoreNullFields": "false",
        "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
        "timeZone": "UTC",
    }
    row = sql.to_json(sql.struct("*"), options)
    return frame.select("__topic", row.alias("row"))
