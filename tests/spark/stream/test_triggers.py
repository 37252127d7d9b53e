"""Options of a stream, with each kind of trigger."""

import datetime as dt
import json
import time
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.spark.stream.conftest import Make
from tests.spark.stream.runs import ids, reader, run, running


def test_a_micro_batch_waits_for_messages(lake: PulsarLake, make: Make, tmp_path: Path) -> None:
    topic = make(2)
    topic.send(0, 50)
    options = {"minMessagesPerTrigger": 40, "maxTriggerDelay": "1h"}
    with running(reader(lake, **options).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(50))
        topic.send(50, 20)
        time.sleep(1.5)
        assert len(stream.batches) == 1
        topic.send(70, 20)
        stream.wait_for(range(90))
        assert [len(one) for one in stream.batches] == [50, 40]


def test_a_micro_batch_waits_for_no_longer_than_the_delay(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    topic = make(2)
    topic.send(0, 50)
    options = {"minMessagesPerTrigger": 40, "maxTriggerDelay": "3s"}
    with running(reader(lake, **options).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(50))
        for count in (55, 60):
            topic.send(count - 5, 5)
            stream.wait_for(range(count))
        assert [len(one) for one in stream.batches] == [50, 5, 5]

        def begun() -> list[float]:
            """When each was begun: how long its rows take is not what the delay counts."""
            assert stream.query is not None
            progress = [one for one in stream.query.recentProgress if one["numInputRows"]]
            return [dt.datetime.fromisoformat(one["timestamp"]).timestamp() for one in progress]

        wait_until("the progress of the last one", lambda: len(begun()) == 3)
        _, second, third = begun()
        assert 2 < third - second < 100


@pytest.mark.parametrize("most", [None, 60])
def test_all_that_is_available_waits_for_nothing(
    lake: PulsarLake, make: Make, tmp_path: Path, most: int | None
) -> None:
    """With less than minMessagesPerTrigger left, too."""
    topic = make(2)
    topic.send(0, 100)
    options: dict[str, object] = {"minMessagesPerTrigger": 50, "maxTriggerDelay": "1h"}
    if most is not None:
        options["maxMessagesPerTrigger"] = most
    stream = reader(lake, **options).table(topic.table)
    assert ids(run(stream, tmp_path)) == list(range(100))
    topic.send(100, 10)
    assert ids(run(stream, tmp_path)) == list(range(100, 110))
    assert run(stream, tmp_path) == []


def test_an_ending_is_reached_and_nothing_follows(
    lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path
) -> None:
    """A time and positions; with a minimum, which does not hold back the rest."""
    topic = make(1)
    topic.send(0, 40)
    [partition] = admin.partitions(topic.name)
    ledger = admin.ledgers(partition)[-1]
    rows = lake.spark.table(topic.table).collect()
    time.sleep(0.05)
    topic.send(40, 40)
    endings = {
        "time": max(row["__publishTime"] for row in rows).astimezone().isoformat(),
        "positions": json.dumps({"0": f"{ledger}:{max(row['__entryId'] for row in rows)}"}),
    }
    for name, ending in endings.items():
        options = {"endingPosition": ending, "minMessagesPerTrigger": 1000}
        with running(reader(lake, **options).table(topic.table), tmp_path / name) as stream:
            stream.wait_for(range(40))
            topic.send(1000, 10)
            time.sleep(1)
            assert stream.query is not None
            assert stream.query.isActive
            assert stream.ids == list(range(40))
        assert run(reader(lake).table(topic.table), tmp_path / name) == []


def test_latest_is_where_the_query_was_started_first(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    topic = make(2)
    topic.send(0, 20)
    stream = reader(lake, startingPosition="latest").table(topic.table)
    with running(stream, tmp_path):
        wait_until("the start is kept", (tmp_path / "sources" / "0" / "bounds").exists)
    topic.send(20, 20)  # no micro-batch was made before
    with running(stream, tmp_path) as first:
        first.wait_for(range(20, 40))
        topic.send(40, 20)
        first.wait_for(range(20, 60))
    topic.send(60, 20)
    with running(stream, tmp_path) as second:
        second.wait_for(range(60, 80))


def test_what_was_read_may_be_deleted_before_a_restart(
    lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20)
    stream = reader(lake).table(topic.table)
    assert ids(run(stream, tmp_path)) == list(range(20))
    admin.seal(topic.name)
    topic.send(20, 20)
    assert ids(run(stream, tmp_path)) == list(range(20, 40))
    topic.send(40, 20)
    topic.trim()
    assert ids(run(stream, tmp_path)) == list(range(40, 60))


@pytest.mark.long
def test_progress_that_is_written_behind_the_rows(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    """asyncProgressTrackingEnabled: no row is missed, and only those of the end come again."""
    topic = make(2)
    topic.send(0, 1)
    frame = reader(lake, maxMessagesPerTrigger=30).table(topic.table)
    written = tmp_path / "written"

    def write(row: Row) -> None:
        with written.open("a") as file:
            file.write(f"{row.id}\n")

    def start(writer: DataStreamWriter, name: str) -> StreamingQuery:
        writer = writer.option("checkpointLocation", str(tmp_path / name))
        writer = writer.option("asyncProgressTrackingEnabled", "true")
        return writer.trigger(processingTime="100 milliseconds").start()

    def ids_from(first: int) -> list[int]:
        found = [int(line) for line in written.read_text().split()] if written.exists() else []
        return [one for one in found if one >= first]

    sent = 1
    for stop in (201, 401):
        topic.send(sent, stop - sent)
        sent = stop
        # The sinks that Spark allows keep nothing that could be read after a restart.
        writer = frame.writeStream.foreach(write)
        query = start(writer.option("_asyncProgressTrackingOverrideSinkSupportCheck", True), "rows")
        try:
            wait_until("the last row", lambda stop=stop: stop - 1 in ids_from(0), 120)  # type: ignore[misc]
            query.processAllAvailable()
        finally:
            query.stop()
    assert sorted(set(ids_from(0))) == list(range(401))
    again = len(ids_from(0)) - 401
    assert again <= 201  # what the first run had not written down
    stateful = frame.groupBy("customer").count().writeStream.format("memory").queryName("counts")
    refused = start(stateful.outputMode("complete"), "stateful")
    with pytest.raises(
        StreamingQueryException, match="Stateful streaming queries does not support"
    ):
        assert refused.awaitTermination(60)
    with pytest.raises(Exception, match="does not support async progress tracking"):
        start(frame.writeStream.foreachBatch(lambda rows, number: None), "batches")


def test_triggers_that_a_stream_does_not_have(lake: PulsarLake, make: Make, tmp_path: Path) -> None:
    topic = make(1)
    topic.send(0, 20)
    frame: DataFrame = reader(lake).table(topic.table)
    refusals = {
        "continuous": ({"continuous": "1 second"}, "Continuous processing does not support"),
        "real": ({"realTime": "5 minutes"}, "INPUT_STREAM_NOT_SUPPORTED"),
    }
    for name, (trigger, told) in refusals.items():
        writer = frame.writeStream.format("console").outputMode("update").trigger(**trigger)
        with pytest.raises(Exception, match=told):
            writer.option("checkpointLocation", str(tmp_path / name)).start().awaitTermination(60)
    writer = frame.writeStream.format("memory").queryName("once_rows").trigger(once=True)
    once = writer.option("checkpointLocation", str(tmp_path / "once")).start()
    assert once.awaitTermination(60)
    assert lake.spark.table("once_rows").count() == 20
