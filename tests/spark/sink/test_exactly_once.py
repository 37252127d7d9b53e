"""Each row once, whatever is run again."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from offloader.config import Config
from reader.config import StorageConfig
from reader.storage import open_storage
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.spark.sink.conftest import Target

Make = Callable[..., Target]


def numbers(lake: PulsarLake, count: int, first: int = 0) -> DataFrame:
    return lake.spark.range(first, first + count).selectExpr("id", "'x' AS name", "0.5D AS amount")


def staged(config: Config) -> list[str]:
    """Objects of writes below the storage's root."""
    return [one.path for one in open_storage(config.storage).objects().below("~sink")]


def test_nothing_is_left_of_a_write_without_a_name(
    lake: PulsarLake, lake_config: Config, make: Make
) -> None:
    before = staged(lake_config)
    target = make()
    frame = numbers(lake, 100_000).writeTo(target.table).option("compression", "none")
    frame.append()  # more than what travels to the driver
    assert target.ids() == list(range(100_000))
    assert staged(lake_config) == before


def test_few_producer_names(lake: PulsarLake, make: Make) -> None:
    """Brokers remember each of them for hours."""
    target = make()
    for number in range(3):
        numbers(lake, 2, 2 * number).writeTo(target.table).append()
    assert target.ids() == list(range(6))
    assert len({name for (name,) in target.rows("__producerName")}) == 1


def test_a_named_write_is_done_once(lake: PulsarLake, make: Make) -> None:
    target = make()
    app = f"nightly {uuid.uuid4()}"

    def write(version: int, first: int) -> None:
        writer = numbers(lake, 10, first).writeTo(target.table)
        writer.option("txnAppId", app).option("txnVersion", str(version)).append()

    write(4, 0)
    write(4, 0)
    write(4, 50)  # whatever its rows are now
    write(3, 70)
    assert target.ids() == list(range(10))
    write(5, 10)
    assert target.ids() == list(range(20))


def test_a_micro_batch_that_is_run_again(lake: PulsarLake, make: Make, tmp_path: Path) -> None:
    """Its commit was lost after everything was sent."""
    source, target = make("source"), make("target")
    numbers(lake, 500).writeTo(source.table).append()

    def run() -> None:
        stream = lake.spark.readStream.table(source.table).select("id", "name", "amount")
        writer = stream.writeStream.trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path)).toTable(target.table)
        assert query.awaitTermination(120)

    run()
    for lost in (tmp_path / "commits").iterdir():
        lost.unlink()
    run()
    assert target.ids() == list(range(500))
    numbers(lake, 20, 500).writeTo(source.table).append()
    run()
    assert target.ids() == list(range(520))


def test_a_copied_checkpoint_with_another_topic(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    """Two streams of one id, to Spark: each has its own rows."""
    source, blue, green = make("source"), make("blue"), make("green")

    def run(checkpoint: Path, target: Target) -> None:
        stream = lake.spark.readStream.table(source.table).select("id", "name", "amount")
        writer = stream.writeStream.trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(checkpoint)).toTable(target.table)
        assert query.awaitTermination(120)

    numbers(lake, 10).writeTo(source.table).append()
    run(tmp_path / "one", blue)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    for first in (10, 20):
        numbers(lake, 10, first).writeTo(source.table).append()
        run(tmp_path / "one", blue)
        run(tmp_path / "two", green)
    assert (blue.ids(), green.ids()) == (list(range(30)), list(range(10, 30)))


def test_a_stream_that_is_stopped_while_it_sends(
    lake: PulsarLake, make: Make, admin: Admin, tmp_path: Path
) -> None:
    source, target = make("source"), make("target")
    numbers(lake, 1500).writeTo(source.table).append()

    def start() -> StreamingQuery:
        stream = lake.spark.readStream.table(source.table).select("id", "name", "amount")
        writer = stream.writeStream.trigger(availableNow=True).option("batchingMaxMessages", "20")
        return writer.option("checkpointLocation", str(tmp_path)).toTable(target.table)

    admin.set_publish_rate(target.topic, messages=15)  # 50 s for all of it
    query = start()
    wait_until("some of it is sent", lambda: admin.messages(target.topic) > 0, timeout=120)
    query.stop()
    assert admin.messages(target.topic) < 1500
    admin.set_publish_rate(target.topic, messages=-1)
    assert start().awaitTermination(120)
    assert target.ids() == list(range(1500))


def test_a_write_that_fails_has_sent_nothing(lake: PulsarLake, make: Make) -> None:
    target = make(partitions=1)
    failing = numbers(lake, 2000).selectExpr(
        "IF(id = 1999, raise_error('no more'), id) AS id", "name", "amount"
    )
    with pytest.raises(PySparkException, match="no more"):
        failing.writeTo(target.table).append()
    assert target.ids() == []
    numbers(lake, 2000).writeTo(target.table).append()
    assert target.ids() == list(range(2000))


def test_at_least_once_needs_neither_storage_nor_deduplication(
    lake: PulsarLake, lake_config: Config, make: Make
) -> None:
    target = make()
    storage = {"storage": StorageConfig()}
    with PulsarLake(lake_config.model_copy(update=storage)) as without:
        frame = numbers(without, 5000)
        with pytest.raises(PySparkException, match=r"exactly once is staged, and storage.uri is n"):
            frame.writeTo(target.table).append()
        writer = frame.writeTo(target.table).option("delivery", "at-least-once")
        writer.option("enableDeduplication", "false").append()
    assert target.ids() == list(range(5000))
    with pytest.raises(PySparkException, match="set-deduplication-status -e") as refused:
        numbers(lake, 1).writeTo(target.table).option("enableDeduplication", "false").append()
    assert len(str(refused.value).splitlines()) == 1
