"""The way of a stream from what a topic has had to what comes, through kills and restarts."""

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_ext import PulsarLake
from testbed.admin import wait_until
from tests.spark.stream.moves import Moves
from tests.spark.stream.runs import reader
from tests.spark.stream.sinks import Sinks, check_rows, published
from tests.support.stream_program import PLANNER, RENAMED, kill_some, write_rows

pytestmark = [pytest.mark.journey, pytest.mark.timeout(600)]  # many queries


def die(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """End the worker of a task behind its first rows."""
    for number, batch in enumerate(batches):
        if number:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch.slice(0, 1)
        yield batch.slice(1)
    os.kill(os.getpid(), signal.SIGKILL)


def test_from_the_past_into_the_future(lake: PulsarLake, moves: Moves, tmp_path: Path) -> None:
    """Each message is in one micro-batch, between the two offsets of its checkpoint.

    A task dies in a micro-batch. Until it is run again its rows are offloaded, compacted, and
    deleted in Pulsar. The query runs on while ledgers are sealed, offloaded and deleted, its
    planner is killed, and a partition is added.
    """
    sinks = Sinks(pafs.LocalFileSystem(), str(tmp_path))
    moves.send(60)
    moves.seal()
    moves.send(40)
    moves.to_compacted_files()
    moves.seal()
    moves.send(60)

    def write(frame: DataFrame, number: int, dies_at: int = -1) -> None:
        if number == dies_at:
            frame = frame.mapInArrow(die, frame.schema)
        write_rows(frame, f"{tmp_path}/rows/{number}")

    def start(stream: DataFrame, dies_at: int = -1) -> StreamingQuery:
        writer = stream.withColumnsRenamed(RENAMED).withColumn("number", stream.id).writeStream
        writer = writer.option("checkpointLocation", str(tmp_path / "rows-checkpoint"))
        writer = writer.trigger(processingTime="100 milliseconds")
        return writer.foreachBatch(lambda frame, n: write(frame, n, dies_at)).start()

    query = start(reader(lake, maxMessagesPerTrigger=110).table(moves.table), dies_at=1)
    try:
        with pytest.raises(StreamingQueryException):
            assert not query.awaitTermination(120), "it ended without an error"
    finally:
        query.stop()
    begun = sinks.offsets("rows")
    assert sorted(begun) == [0, 1]
    assert sorted(sinks.written("rows")) == [0]
    moves.to_compacted_files()

    query = start(lake.spark.sql(f"SELECT * FROM STREAM {moves.table}"))

    def all_there() -> bool:
        if not query.isActive:
            query.awaitTermination()
        return sum(map(len, sinks.written("rows").values())) >= len(moves.sent)

    try:
        wait_until("all rows", all_there, 120)
        moves.seal()
        moves.send(20)
        wait_until("rows of another ledger", all_there, 120)
        kill_some(os.getpid(), PLANNER)
        moves.to_compacted_files()
        wait_until("rows that another planner has found", all_there, 120)
        moves.add_partition()
        moves.send(60)
        wait_until("rows of a new partition", all_there, 120)
        query.processAllAvailable()
    finally:
        query.stop()
    assert begun.items() <= sinks.offsets("rows").items()
    check_rows(sinks, published(moves.sent))
    assert {place[0] for place in published(moves.sent)} == {0, 1, 2}
