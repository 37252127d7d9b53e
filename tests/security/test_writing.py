"""Rows that roles write, on the secured cluster: by TLS, with a token, as its brokers allow."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.security.conftest import READER

WRITER = "writer"
Make = Callable[..., str]


@pytest.fixture
def make(superuser: Admin) -> Make:
    """Makes a topic in `acme/open`, deduplication `on` or as the broker has it: off."""

    def deduplicates(partition: str) -> bool:
        path = f"/v2/persistent/{partition.removeprefix('persistent://')}/stats"
        return bool(superuser.request("GET", path)["deduplicationStatus"] == "Enabled")

    def made(*, on: bool) -> str:
        topic = superuser.create_topic(f"acme/open/written-{uuid.uuid4().hex[:8]}", partitions=2)
        if on:
            path = f"/v2/persistent/{topic.removeprefix('persistent://')}/deduplicationEnabled"
            superuser.request("POST", path, json=True)
            wait_until("deduplication", lambda: all(map(deduplicates, superuser.partitions(topic))))
        return topic.removeprefix("persistent://")

    return made


def write(lake: PulsarLake, topic: str, **options: str) -> None:
    rows = lake.spark.range(100).selectExpr("CAST(CAST(id AS STRING) AS BINARY) AS value")
    namespace, _, name = topic.rpartition("/")
    rows.writeTo(f"pulsar.`{namespace}`.`{name}`").options(**options).append()


def found(settings: Callable[..., Config], topic: str) -> list[int]:
    with PulsarLake(settings(READER)) as reading:
        rows = reading.table(topic).selectExpr("CAST(CAST(value AS STRING) AS INT)").collect()
    return sorted(number for (number,) in rows)


def one_line(caught: Any) -> str:
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    return text


def test_produce_is_all_that_a_write_needs(
    settings: Callable[..., Config], make: Make, lake: PulsarLake
) -> None:
    topic = make(on=True)
    with PulsarLake(settings(WRITER)) as mine:
        write(mine, topic)
        write(mine, topic, txnAppId=topic, txnVersion="1")
        write(mine, topic, txnAppId=topic, txnVersion="1")
    assert found(settings, topic) == sorted([*range(100)] * 2)


def test_who_may_not_turn_deduplication_on(
    settings: Callable[..., Config], make: Make, lake: PulsarLake
) -> None:
    topic = make(on=False)
    with PulsarLake(settings(WRITER)) as mine:
        with pytest.raises(PySparkException, match="cannot be turned on") as caught:
            write(mine, topic)
        assert "set-deduplication-status -e" in one_line(caught)
        write(mine, topic, delivery="at-least-once")
    assert found(settings, topic) == list(range(100))
    with PulsarLake(settings("acme-admin")) as administrator:
        write(administrator, topic)
    with PulsarLake(settings(WRITER)) as mine:
        write(mine, topic)
    assert found(settings, topic) == sorted([*range(100)] * 3)


@pytest.mark.parametrize("role", [READER, "unprivileged"])
@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_who_may_not_produce(
    settings: Callable[..., Config], make: Make, lake: PulsarLake, role: str, delivery: str
) -> None:
    topic = make(on=True)
    with PulsarLake(settings(role)) as other:
        with pytest.raises(PySparkException, match="no permission") as caught:
            write(other, topic, delivery=delivery)
    one_line(caught)
    assert found(settings, topic) == []


def test_who_may_not_produce_where_rows_say(
    settings: Callable[..., Config], make: Make, lake: PulsarLake
) -> None:
    topic = make(on=True)
    with PulsarLake(settings(READER)) as other:
        rows = other.spark.range(9).selectExpr("X'00' AS value", f"'{topic}' AS __topic")
        with pytest.raises(PySparkException, match="no permission for producing to") as caught:
            rows.write.format("pulsar").mode("append").save()
    one_line(caught)
    assert found(settings, topic) == []


def test_topics_are_made_by_the_tenants_administrator(
    settings: Callable[..., Config], superuser: Admin, lake: PulsarLake
) -> None:
    name = f"made_{uuid.uuid4().hex[:8]}"
    statement = f"CREATE TABLE pulsar.`acme/open`.{name} (id BIGINT)"
    for role in (WRITER, READER):
        with PulsarLake(settings(role)) as other:
            with pytest.raises(PySparkException, match="no permission") as caught:
                other.spark.sql(statement)
        one_line(caught)
    with PulsarLake(settings("acme-admin")) as administrator:
        administrator.spark.sql(statement)
        administrator.spark.sql(f"INSERT INTO pulsar.`acme/open`.{name} VALUES (1)")
    with PulsarLake(settings(READER)) as reading:
        assert [row.id for row in reading.table(f"acme/open/{name}").collect()] == [1]
