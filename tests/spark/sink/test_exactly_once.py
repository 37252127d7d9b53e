"""Each row once, whatever is run again."""

from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from offloader.config import Config
from reader.config import StorageConfig
from reader.storage import open_storage
from spark_ext import PulsarLake
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
