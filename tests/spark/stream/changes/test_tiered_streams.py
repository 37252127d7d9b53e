"""Streams over ledgers that Pulsar's own tiered storage has: each row once, whatever moves."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.tiered import TieredStorage
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import ids, reader, run, running


def test_the_progress_tells_rows_of_it(
    lake: PulsarLake,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tiered: TieredStorage,
    tmp_path: Path,
) -> None:
    """In the table, in objects, on bookies and in open ledgers."""
    topic = make(2)
    tiered.use(topic.namespace)
    topic.send(0, 40)
    topic.seal()
    offload(topic.name)
    topic.send(40, 50)
    topic.seal()
    tiered.offload(topic.name)
    topic.send(90, 60)
    topic.seal()
    topic.send(150, 30)
    stream = reader(lake).table(topic.table)
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "noop"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    [source] = query.recentProgress[0]["sources"]
    read = {name: int(n) for name, n in source["metrics"].items() if name.startswith("rowsFrom")}
    assert read == {
        "rowsFromParquet": 40,
        "rowsFromTieredStorage": 50,
        "rowsFromBookKeeper": 90,
        "rowsFromBroker": 0,
    }
    assert source["numInputRows"] == 180
    assert ids(run(stream, tmp_path / "rows")) == list(range(180))


def test_a_running_stream_while_ledgers_move_on(
    lake: PulsarLake,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tiered: TieredStorage,
    tmp_path: Path,
) -> None:
    """From bookies to objects, from there to the table, and then Pulsar deletes all of them."""
    topic = make(1)
    tiered.use(topic.namespace)
    topic.send(0, 100)
    topic.seal()
    stream: DataFrame = reader(lake, maxMessagesPerTrigger=20).table(topic.table)
    with running(stream, tmp_path) as query:
        query.wait_for_some()
        tiered.offload(topic.name)
        topic.send(100, 100)
        topic.seal()
        query.wait_for_some()
        offload(topic.name)
        topic.send(200, 10)
        topic.trim()
        query.wait_for(range(210))
