"""A write whose tasks are not done at their first attempt, in a process of its own.

    python -m tests.spark.sink.retried_write SETTINGS ROWS MODE=TABLE…

One write after the other. ``fail``: the first attempt of each task fails behind its last row.
``hang``: that of task 0 waits there for longer than anybody would. ``run``: nothing is wrong with
them.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import TaskContext

from spark_ext import PulsarLake

TASKS = 4


def main(settings: str, rows: str, *writes: str) -> None:
    def fail(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            raise RuntimeError("the first attempt")

    def hang(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() == 0:
            time.sleep(600)

    ways: dict[str, Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]] = {
        "fail": fail,
        "hang": hang,
    }
    with PulsarLake(settings) as lake:
        for mode, table in (write.split("=", 1) for write in writes):
            frame = lake.spark.range(0, int(rows), 1, TASKS)
            if mode in ways:
                frame = frame.mapInArrow(ways[mode], "id BIGINT")
            frame = frame.selectExpr("id", "CAST(id AS STRING) AS name", "0.5D AS amount")
            # More than what travels to the driver, and many entries.
            options = {"compression": "none", "batchingMaxMessages": "100"}
            frame.writeTo(table).options(**options).append()


if __name__ == "__main__":
    main(*sys.argv[1:])
