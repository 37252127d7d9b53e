"""Streams that end by themselves, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row

from spark_ext import PulsarLake

Batches = list[list[Row]]


def run(
    stream: DataFrame,
    checkpoint: Path,
    *,
    collect: Callable[[DataFrame], list[Row]] = DataFrame.collect,
) -> Batches:
    """All that there is now, batch by batch; ``collect`` is called with each before it is done."""
    found: Batches = []
    query = (
        stream.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda frame, number: found.append(collect(frame)))
        .start()
    )
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return found


def reader(lake: PulsarLake, **options: Any) -> Any:
    """Of all that there is, but for what the options say."""
    return lake.spark.readStream.options(**{"startingPosition": "earliest", **options})


def ids(batches: Batches) -> list[int]:
    """The numbers of all orders, sorted."""
    return sorted(row.id for batch in batches for row in batch)
