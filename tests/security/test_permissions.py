"""What a role may read is read from every tier; what it may not is refused in every tier."""

from typing import Any

import httpx
import pytest
from pyspark.errors import AnalysisException

from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.admin import AdminClient
from reader.pulsar.http import AdminHttp
from spark_ext import PulsarLake
from spark_ext.planner.protocol import LoadRelation, Relation
from spark_ext.planner.relations import Relations
from spark_ext.session.handoff import load_settings, settings_file
from testbed.admin import Admin, wait_until
from tests.security.conftest import READER, Orders
from tests.support.fixtures import MakeConfig

REFUSED = "no permission to consume topic acme/open/orders"
WITHOUT_CONSUME = ("writer", "unprivileged")
"""A role that may produce to the topic, and so look it up; and one without permissions."""


@pytest.mark.parametrize("tiers", [None, "bookkeeper", "broker"])
def test_consume_is_all_that_a_query_needs(
    settings: MakeConfig, orders: Orders, lake: PulsarLake, tiers: str | None
) -> None:
    with PulsarLake(settings(READER)) as mine:
        assert mine.table(orders.topic, tiers=tiers).count() == orders.count
        states = {one.state for one in mine.segments(orders.topic)}
    assert states == {"offloaded", "sealed", "open"}


@pytest.mark.parametrize("role", WITHOUT_CONSUME)
@pytest.mark.parametrize("tiers", [None, "parquet", "bookkeeper", "broker"])
def test_without_it_no_tier_is_planned(
    settings: MakeConfig, orders: Orders, lake: PulsarLake, role: str, tiers: str | None
) -> None:
    with PulsarLake(settings(role)) as other:
        with pytest.raises(AnalysisException, match=REFUSED) as error:
            other.table(orders.topic, tiers=tiers)
    assert "grant the role consume" in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("role", WITHOUT_CONSUME)
def test_nor_by_any_other_way(
    settings: MakeConfig, orders: Orders, lake: PulsarLake, role: str
) -> None:
    config = settings(role)
    with AdminClient(settings(READER).pulsar) as allowed:
        token = to_token(
            take_snapshot(Clients(settings(READER), admin=allowed), Topic.parse(orders.topic))
        )
    with PulsarLake(config) as other:
        spark = other.spark
        ways = (
            lambda: spark.sql("SELECT * FROM pulsar.`acme/open`.orders VERSION AS OF 0"),
            lambda: spark.sql(
                "SELECT * FROM pulsar.`acme/open`.orders TIMESTAMP AS OF current_timestamp()"
            ),
            lambda: spark.sql(f"SELECT * FROM pulsar.`acme/open`.`orders$hot@{token}`"),
            lambda: spark.sql("SELECT * FROM pulsar.`acme/open`.`orders$compacted`"),
            lambda: spark.read.format("pulsar").option("topic", orders.topic).load(),
            lambda: other.segments(orders.topic),
            lambda: other.explain(orders.topic),
        )
        for way in ways:
            with pytest.raises(Exception, match=REFUSED):
                way()
        with AdminClient(config.pulsar) as admin:
            with pytest.raises(ConfigurationError, match=REFUSED):
                from_token(admin, Topic.parse(orders.topic), token)


def test_a_permission_that_was_taken_away_ends_the_plans_of_a_dataframe(
    settings: MakeConfig, superuser: Admin, orders: Orders, lake: PulsarLake
) -> None:
    config = settings("passing")
    superuser.grant("acme/open", "passing", "consume")
    path = settings_file(config)
    with AdminClient(config.pulsar, allowed_seconds=0) as admin:

        def may_consume() -> bool:
            try:
                admin.require_consume(Topic.parse(orders.topic))
            except ConfigurationError:
                return False
            return True

        wait_until("the permission", may_consume)
        relations = Relations(lambda path: Clients(load_settings(path), admin=admin))

        def load(name: str) -> Relation:
            return relations.load(path, LoadRelation("pulsar", "acme/open", name))

        view = load("orders").view
        assert view is not None
        hot = view.text.split("`acme/open`.`")[-1].split("`")[0]
        table = load(hot).table
        assert table is not None and table.rows == 20
        superuser.revoke("acme/open", "passing")
        wait_until("its end", lambda: not may_consume())
        with pytest.raises(ConfigurationError, match=REFUSED):
            load(hot)


def test_the_answer_of_the_broker_is_asked_for_once(settings: MakeConfig, orders: Orders) -> None:
    asked: list[str] = []

    class Counted(AdminHttp):
        def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
            asked.append(path)
            return super().request(method, path, **kwargs)

    config = settings(READER).pulsar
    with AdminClient(config, http=Counted(config)) as admin:
        for _ in range(3):
            admin.require_consume(Topic.parse(orders.topic))
    assert len(asked) == 1


@pytest.mark.parametrize("name", ["acme/open/gone", "acme/gone/gone", "gone/gone/gone"])
def test_what_is_not_there_is_told_to_nobody_who_may_not_ask(
    settings: MakeConfig, superuser: Admin, name: str
) -> None:
    topic = Topic.parse(name)
    with AdminClient(settings("unprivileged").pulsar) as admin:
        with pytest.raises(ConfigurationError, match="no permission to consume"):
            admin.require_consume(topic)
    with AdminClient(settings(READER).pulsar) as admin:
        if name == "acme/open/gone":
            admin.require_consume(topic)  # its table would be readable
        else:
            with pytest.raises(ConfigurationError, match="no permission to consume"):
                admin.require_consume(topic)


def test_a_permission_for_one_topic_is_one_for_its_partitions(
    settings: MakeConfig, superuser: Admin, orders: Orders
) -> None:
    superuser.grant(orders.topic, "narrow", "consume")
    config = settings("narrow")
    with AdminClient(config.pulsar) as admin:
        found = take_snapshot(
            Clients(config, admin=admin), Topic.parse(orders.topic), tiers="bookkeeper"
        )
    assert {one.partition.index for one in found.hot} == {0, 1}


def test_what_one_may_not_see_is_not_listed(
    settings: MakeConfig, orders: Orders, lake: PulsarLake
) -> None:
    named = ["acme/open", "acme/hidden", "acme/none"]
    with PulsarLake(settings(READER, namespaces=named)) as mine:
        spark = mine.spark
        shown = spark.sql("SHOW NAMESPACES IN pulsar").collect()
        assert [row[0].strip("`") for row in shown] == ["acme/open"]
        tables = spark.sql("SHOW VIEWS IN pulsar.`acme/open`").collect()
        assert [row.viewName for row in tables] == ["orders"]
        with pytest.raises(AnalysisException, match="no permission for namespace acme/hidden"):
            spark.sql("SHOW VIEWS IN pulsar.`acme/hidden`")
        for hidden in ("acme/hidden", "acme/none"):
            with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
                spark.sql(f"USE pulsar.`{hidden}`")
    with PulsarLake(settings(READER)) as mine:
        with pytest.raises(AnalysisException, match="no permission to list all tenants"):
            mine.spark.sql("SHOW NAMESPACES IN pulsar").collect()
    with PulsarLake(settings("superuser")) as all_of_it:
        shown = all_of_it.spark.sql("SHOW NAMESPACES IN pulsar").collect()
        assert {"acme/open", "acme/hidden"} <= {row[0].strip("`") for row in shown}
