"""One query over many topics at once, of streams and of tables alike: each row as JSON.

A streaming query takes about a second, however many topics it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
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


def queried(lake: PulsarLake, topics: Sequence[str]) -> Rows:
    return together(_union(lake.table(topic) for topic in topics).collect())


def streamed(
    lake: PulsarLake, topics: Sequence[str], checkpoint: Path, **options: Any
) -> list[Rows]:
    """What is new since the checkpoint, by batch. Topics of the same columns are one source."""
    by_columns: dict[str, list[str]] = defaultdict(list)
    for topic in topics:
        columns = lake.table(topic).schema.simpleString()
        by_columns[columns].append(Topic.parse(topic).local_name)
    sources = [
        reader(lake, topics=",".join(names), **options).format("pulsar").load()
        for names in by_columns.values()
    ]
    return [together(batch) for batch in run(_union(sources), checkpoint)]


def together(rows: Iterable[tuple[str, str]]) -> Rows:
    found: Rows = defaultdict(list)
    for topic, row in rows:
        found[topic].append(row)
    return {topic: sorted(found[topic]) for topic in sorted(found)}


def _union(frames: Iterable[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, map(_as_json, frames))


def _as_json(frame: DataFrame) -> DataFrame:
    row = sql.to_json(sql.struct("*"), {"ignoreNullFields": "false"})  # bytes in base64
    return frame.select("__topic", row.alias("row"))
