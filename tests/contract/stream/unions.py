"""One query over many topics at once, of streams and of tables alike: each row as JSON.

A streaming query takes about a second, however many topics it has.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from reader.model import Topic
from spark_ext import PulsarLake
from tests.spark.connect.rows_as_json import union
from tests.spark.stream.runs import reader, run

Rows = dict[str, list[str]]
"""By topic, sorted."""


def queried(lake: PulsarLake, topics: Sequence[str], tiers: str | None = None) -> Rows:
    """Return the rows of all topics by one query."""
    return together(union(_tables(lake, topics, tiers)).collect())


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
    return [together(batch) for batch in run(union(sources), checkpoint)]


def _tables(lake: PulsarLake, topics: Sequence[str], tiers: str | None = None) -> list[DataFrame]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda topic: lake.table(topic, tiers=tiers), topics))


def together(rows: Iterable[tuple[str, str]]) -> Rows:
    found: Rows = defaultdict(list)
    for topic, row in rows:
        found[topic].append(row)
    return {topic: sorted(found[topic]) for topic in sorted(found)}
