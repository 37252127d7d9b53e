"""The contract's topics, moved by Pulsar's own offloaders: rows are what was published."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import pytest

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message
from testbed.tiered import DRIVERS, TieredStorage
from tests.contract.against_java import offload_in_thread, query_rows
from tests.contract.corpus import CORPUS, Case, publish_case
from tests.contract.test_sources import expected_rows, keyed, rows_of
from tests.contract.tiered.moved import move_all

# Of the directories some: with schemas and partitions, compressed entries, and single ones.
_OF_DIRECTORIES = ("avro-partitioned", "json-orders", "nulls", "bytes-lz4-batched")
_SHORT = ("S3", "BLOCK")
_LONG = ("lz4", "zlib", "snappy")
_CASES = [
    (driver, case)
    for driver in DRIVERS
    for case in CORPUS
    if driver == "S3" or case.name in _OF_DIRECTORIES
]


def _is_long(driver: str, case: Case) -> bool:
    return driver not in _SHORT or (driver == "S3" and any(one in case.name for one in _LONG))


_PARAMETERS = [
    pytest.param(driver, case, marks=pytest.mark.long if _is_long(driver, case) else ())
    for driver, case in _CASES
]


@dataclass(frozen=True)
class Moved:
    topic: str
    sent: list[Message]


@pytest.fixture(scope="module")
def moved(
    cluster: Cluster,
    admin: Admin,
    lake_config: Config,
    tiered: TieredStorage,
    lake_namespace: str,
) -> Callable[[str, str], Moved]:
    """One of a driver's, all of which are made at once: each in two ledgers, of which no bookie
    has an entry any more."""

    @cache
    def of(driver: str) -> dict[str, Moved]:
        namespace = f"{lake_namespace}-{driver.lower()}"
        admin.create_namespace(namespace)
        tiered.use(namespace, driver)

        def published(case: Case) -> Moved:
            topic = f"{namespace}/{case.name}"
            return Moved(topic, publish_case(cluster, admin, topic, case))

        cases = [case for one, case in _CASES if one == driver]
        with ThreadPoolExecutor(4) as pool:
            topics = dict(zip((one.name for one in cases), pool.map(published, cases), strict=True))
        move_all(lake_config, tiered, [one.topic for one in topics.values()])
        return topics

    return lambda driver, case: of(driver)[case]


def _id(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("driver", "case"), _PARAMETERS, ids=_id)
def test_rows_are_what_was_published(
    driver: str, case: Case, moved: Callable[[str, str], Moved], lake_config: Config
) -> None:
    """Read from the objects alone, chosen by itself, and from the table that is made of them."""
    one = moved(driver, case.name)
    rows = rows_of(lake_config, one.topic, "tiered")
    expected = expected_rows(case, one.topic, one.sent)
    assert rows.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: rows[key][name] for name in row} == row, key
    assert all(row["__index"] is not None for row in rows.values()), "with all columns"
    assert query_rows(lake_config, one.topic) == rows
    offload_in_thread(lake_config, one.topic)
    assert rows_of(lake_config, one.topic, "parquet") == rows


@pytest.mark.parametrize("driver", ["S3", "BLOCK"])
def test_the_broker_gives_the_same(
    driver: str, moved: Callable[[str, str], Moved], lake_config: Config
) -> None:
    topic = moved(driver, "avro-partitioned").topic
    assert rows_of(lake_config, topic, "broker") == rows_of(lake_config, topic, "tiered")


@pytest.mark.parametrize("tiers", [None, pytest.param("tiered", marks=pytest.mark.long)])
def test_spark_gives_the_same(
    tiers: str | None,
    moved: Callable[[str, str], Moved],
    lake: PulsarLake,
    lake_config: Config,
) -> None:
    topic = moved("S3", "avro-orders").topic
    rows = keyed(lake.table(topic, tiers=tiers).toArrow().to_pylist())
    assert rows == rows_of(lake_config, topic, "tiered")
