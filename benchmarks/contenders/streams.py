"""Streaming queries as the cases run them: to nowhere, their rows counted on the way."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.measure import BrokenCaseError

_OBSERVED = "seen"
_POLL, _PATIENCE = 0.05, 60.0


@contextmanager
def streaming(writer: Any) -> Iterator[Any]:
    """The query of a `DataStreamWriter`, with a new checkpoint; stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="pulsar-lake-bench-stream-") as folder:
        query = writer.option("checkpointLocation", f"file://{folder}").start()
        try:
            yield query
        finally:
            query.stop()


def streamed(frame: Any) -> tuple[int, int]:
    """All that there is now of a stream that has a column `id`: (rows, sum of ids)."""
    from pyspark.sql import functions as sf

    counted = (sf.count(sf.lit(1)).alias("rows"), sf.sum("id").alias("ids"))
    writer = frame.observe(_OBSERVED, *counted).writeStream.format("noop")
    with streaming(writer.trigger(availableNow=True)) as query:
        query.awaitTermination()
        seen = [one["observedMetrics"].get(_OBSERVED) for one in progress(query)]
    found = [one for one in seen if one]
    return sum(one["rows"] for one in found), sum(one["ids"] or 0 for one in found)


def progress(query: Any) -> list[dict[str, Any]]:
    """What Spark told of each micro-batch, the idle ones too; the last hundred."""
    return list(query.recentProgress)


def wait_for_rows(query: Any, rows: int) -> None:
    """Until micro-batches had so many rows, all together. Raises BrokenCaseError."""
    deadline = time.monotonic() + _PATIENCE
    while (seen := sum(one["numInputRows"] for one in progress(query))) < rows:
        if time.monotonic() > deadline or not query.isActive:
            raise BrokenCaseError(f"the stream has shown {seen} of {rows} rows")
        time.sleep(_POLL)
