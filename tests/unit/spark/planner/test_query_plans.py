"""Plans out of Spark's plan, over nodes that answer as Spark's do."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql.types import LongType, StructType

from reader.clients import Clients, process_clients
from reader.model import Partition, Position, Tier
from reader.model.reasons import Reason
from reader.plan.plan import Plan, make_plan
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from spark_ext.planner.encoding import encode
from spark_ext.planner.protocol import HotRead
from spark_ext.planner.query_plans import catalog_clients, command_queries, plans_of
from spark_ext.planner.topic_names import HOT, TOPIC_PROPERTY
from spark_ext.session.settings import LakeConfig
from tests.unit.plan.values import LEDGER, TOPIC, segment, snapshot

CATALOG = "spark.sql.catalog.pulsar"


class Seq:
    def __init__(self, *items: Any) -> None:
        self.items = items

    def iterator(self) -> Any:
        rest = list(self.items)
        return SimpleNamespace(hasNext=lambda: bool(rest), next=lambda: rest.pop(0))


def node(kind: str, *children: Any, inner: Any = None, subqueries: Any = (), **fields: Any) -> Any:
    """As in Spark, the inner children of a node are its subqueries, unless it says otherwise."""
    named = {name: (lambda value=value: value) for name, value in fields.items()}
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind),
        children=lambda: Seq(*children),
        subqueries=lambda: Seq(*subqueries),
        innerChildren=lambda: Seq(*(subqueries if inner is None else inner)),
        **named,
    )


def some(value: str) -> Any:
    return SimpleNamespace(isDefined=lambda: True, get=lambda: value)


class Ledgers:
    """Pulsar lists the first one, of 100 MB."""

    def require_consume(self, topic: Any) -> None: ...

    def partitions(self, topic: Any) -> list[Partition]:
        return [Partition(topic, 0)]

    def schemas(self, topic: Any) -> tuple[()]:
        return ()

    def ledgers(self, partition: Any, *, transactions: bool = True) -> Any:
        metadata = replace(LEDGER, last_entry=99_999)
        ledgers = (LedgerInfo(7, 100_000, 100 << 20, metadata, False, 1),)
        end = Position(7, 99_999)
        return PartitionLedgers(partition, ledgers, end, end, False, "2026", 0, {})


class Spark:
    """A session whose catalog has these settings; ``executed`` are the plans that it makes."""

    def __init__(self, executed: Any, config: Path | None = None) -> None:
        values = {
            CATALOG: "io.pulsarlake.spark.catalog.PulsarCatalog",
            CATALOG + ".config": "/set/since",
        }
        catalog = SimpleNamespace(config=lambda: str(config))
        manager = SimpleNamespace(catalog=lambda name: catalog)
        self.conf = SimpleNamespace(get=lambda name, default: values.get(name, default))
        self.sparkContext = SimpleNamespace(defaultParallelism=7)
        leaves = SimpleNamespace(hot=lambda scan: scan)
        mode = SimpleNamespace(SKIP=lambda: "skip")
        execution = SimpleNamespace(CommandExecutionMode=mode)
        self.active: list[Any] = []
        sessions = SimpleNamespace(setActiveSession=self.active.append)
        sql = SimpleNamespace(execution=execution, classic=SimpleNamespace(SparkSession=sessions))
        apache = SimpleNamespace(spark=SimpleNamespace(sql=sql))
        self._jvm = SimpleNamespace(
            io=SimpleNamespace(
                pulsarlake=SimpleNamespace(
                    spark=SimpleNamespace(reads=SimpleNamespace(PlanLeaves=leaves))
                )
            ),
            org=SimpleNamespace(apache=apache),
        )
        state = SimpleNamespace(
            executePlan=lambda plan, _: executed_as(plan, executed), catalogManager=lambda: manager
        )
        self._jsparkSession = SimpleNamespace(sessionState=lambda: state)


def executed_as(analyzed: Any, executed: Any) -> Any:
    return SimpleNamespace(analyzed=lambda: analyzed, executedPlan=lambda: executed)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "lake.toml"
    path.write_text(f'[storage]\nuri = "{tmp_path}"\n')
    return path


@pytest.fixture
def clients(config: Path) -> Clients:
    admin: Any = Ledgers()
    return Clients(LakeConfig.load(config), admin=admin)


TOKEN = to_token(snapshot(segment(7, 100_000), replace(segment(8), tier=Tier.BROKER)))


def read() -> tuple[Any, Any]:
    """A reference to the topic, analysed and executed."""
    name = f"{TOPIC.name}{HOT}{TOKEN}"
    identifier = SimpleNamespace(catalog=lambda: some("pulsar"))
    properties = SimpleNamespace(get={TOPIC_PROPERTY: some(TOPIC.full_name)}.get)
    relation = node("DataSourceV2Relation", name=f"pulsar.`public/default`.`{name}`")
    desc = SimpleNamespace(identifier=lambda: identifier, properties=lambda: properties)
    view = node("View", relation, child=relation, desc=desc)
    columns = StructType().add("__index", LongType()).json()
    read = HotRead("public/default", name, None, columns, ())
    return node("Project", view), node("BatchScanExec", scan=json.dumps(encode(read, HotRead)))


def same(plan: Plan, clients: Clients) -> bool:
    snap = from_token(clients.admin, TOPIC, TOKEN)
    return plan.splits == make_plan(clients, snap, ["__index"], parallelism=7).splits


def test_splits_are_those_of_the_tasks(clients: Clients, config: Path) -> None:
    analyzed, executed = read()
    spark = Spark(executed, config)
    [plan] = plans_of(clients, spark, executed_as(analyzed, executed))
    assert plan.topic == TOPIC
    assert {one.reason.kind for one in plan.splits} == {Reason.SEALED}
    assert same(plan, clients)
    alone = make_plan(clients, from_token(clients.admin, TOPIC, TOKEN), ["__index"])
    assert len(plan.splits) > len(alone.splits), "cut by what runs at once"


def test_the_query_of_a_command_is_planned(clients: Clients, config: Path) -> None:
    analyzed, executed = read()
    command = node("CreateViewCommand", inner=(node("ResolvedIdentifier"), analyzed))
    run = executed_as(command, node("ExecutedCommandExec"))
    [plan] = plans_of(clients, Spark(executed, config), run)
    assert plan.topic == TOPIC
    assert same(plan, clients)


def test_subqueries_are_no_commands() -> None:
    subquery = node("Aggregate")
    assert list(command_queries(node("Filter", node("Range"), subqueries=(subquery,)))) == []
    query = node("Range")
    command = node("CacheTableAsSelect", inner=(query,))
    assert list(command_queries(command)) == [query]
    assert list(command_queries(node("CommandResult", inner=(command,)))) == []


def test_a_catalog_decides_how_it_is_read(clients: Clients, config: Path, tmp_path: Path) -> None:
    assert catalog_clients(clients, Spark(None, config), "pulsar") is clients
    other = tmp_path / "other.toml"
    other.write_text(config.read_text() + "[query]\ntail_entries = 7\n")
    found = catalog_clients(clients, Spark(None, other), "pulsar")
    assert found is process_clients(LakeConfig.load(other))
    assert found.settings.query.tail_entries == 7
