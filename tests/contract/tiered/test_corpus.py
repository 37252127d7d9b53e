"""The contract's topics, moved by Pulsar's own offloaders: rows are what was published."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
_CASES = [
    (driver, case)
    for driver in DRIVERS
    for case in CORPUS
    if driver == "S3" or case.name in _OF_DIRECTORIES
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
) -> Iterator[dict[tuple[str, str], Moved]]:
    """All of them, each in two ledgers, of which no bookie has an entry any more."""
    found: dict[tuple[str, str], Moved] = {}
    for driver in DRIVERS:
        namespace = f"{lake_namespace}-{driver.lower()}"
        admin.create_namespace(namespace)
        tiered.use(namespace, driver)
        for one, case in _CASES:
            if one == driver:
                topic = f"{namespace}/{case.name}"
                found[driver, case.name] = Moved(topic, publish_case(cluster, admin, topic, case))
    move_all(lake_config, tiered, [one.topic for one in found.values()])
    yield found


def _id(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("driver", "case"), _CASES, ids=_id)
def test_rows_are_what_was_published(
    driver: str, case: Case, moved: dict[tuple[str, str], Moved], lake_config: Config
) -> None:
    """Read from the objects alone, chosen by itself, and from the table that is made of them."""
    one = moved[driver, case.name]
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
    driver: str, moved: dict[tuple[str, str], Moved], lake_config: Config
) -> None:
    topic = moved[driver, "avro-partitioned"].topic
    assert rows_of(lake_config, topic, "broker") == rows_of(lake_config, topic, "tiered")


@pytest.mark.parametrize("tiers", [None, "tiered"])
def test_spark_gives_the_same(
    tiers: str | None,
    moved: dict[tuple[str, str], Moved],
    lake: PulsarLake,
    lake_config: Config,
) -> None:
    topic = moved["S3", "avro-orders"].topic
    rows = keyed(lake.table(topic, tiers=tiers).toArrow().to_pylist())
    assert rows == rows_of(lake_config, topic, "tiered")
