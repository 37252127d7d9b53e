"""Streams that end by themselves, and such that run on, for the tests of this folder."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery

from spark_ext import PulsarLake
from testbed.admin import wait_until

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
        assert query.awaitTermination(600)
    finally:
        query.stop()
    return found


def reader(lake: PulsarLake, **options: Any) -> Any:
    """Of all that there is, but for what the options say."""
    return lake.spark.readStream.options(**{"startingPosition": "earliest", **options})


def ids(batches: Batches) -> list[int]:
    """The numbers of all orders, sorted."""
    return sorted(row.id for batch in batches for row in batch)


class Running:
    """What has come of a query that has no end."""

    def __init__(self) -> None:
        self.batches: Batches = []
        self.numbers: list[int] = []
        """The micro-batch of each of ``batches``."""
        self.query: StreamingQuery | None = None

    @property
    def ids(self) -> list[int]:
        return ids(self.batches)

    def take(self, frame: DataFrame, number: int) -> None:
        rows = frame.collect()
        self.numbers.append(number)
        self.batches.append(rows)

    def wait_for(self, expected: Iterable[int], seconds: float = 120) -> None:
        """Until the orders of these numbers have come, each once, and no others.

        Raises what has ended the query.
        """
        wanted = sorted(expected)
        assert self.query is not None

        def have_come() -> bool:
            assert self.query is not None
            if not self.query.isActive:
                self.query.awaitTermination()
                pytest.fail("the query has ended")
            return len(self.ids) >= len(wanted)

        wait_until(f"{len(wanted)} orders", have_come, seconds)
        assert self.ids == wanted

    def wait_for_some(self) -> None:
        """Until the first ones have come."""
        wait_until("a micro-batch", lambda: self.batches, 120)

    def failure(self, seconds: int = 120) -> str:
        """The error that ends the query."""
        assert self.query is not None
        with pytest.raises(StreamingQueryException) as found:
            assert not self.query.awaitTermination(seconds), "it ended without an error"
            pytest.fail("it runs on")
        return str(found.value)


@contextmanager
def running(
    stream: DataFrame, checkpoint: Path, *, every: str = "100 milliseconds"
) -> Iterator[Running]:
    """A query that runs until the end of the block, whatever comes to its topics."""
    found = Running()
    found.query = (
        stream.writeStream.option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=every)
        .foreachBatch(found.take)
        .start()
    )
    try:
        yield found
        if found.query.isActive:
            found.query.processAllAvailable()  # what has come is committed, too
    finally:
        found.query.stop()
