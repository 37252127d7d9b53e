"""What a query reads, by Spark's own plan of it: what is shown is what its tasks read."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from reader.model.reasons import Pruned
from reader.plan.filters import Predicate
from reader.plan.plan import Plan
from reader.plan.reads import SplitsRead
from spark_ext import PulsarLake
from tests.spark.conftest import COLD, Orders

LATER = "__publishTime > TIMESTAMP '2199-01-01'"
Explain = Callable[[str], list[Plan]]
Read = tuple[int, int, int, int, str]


@pytest.fixture
def explain(lake: PulsarLake, orders: Orders) -> Explain:
    """The plans of a query; ``{orders}`` in it is the topic."""
    return lambda text: lake.explain_query(text.format(orders=orders.table))[0]


def shown(plans: list[Plan]) -> set[Read]:
    """Partition, ledger, entries and tier of all that the plans say is read of hot segments."""
    return {
        (one.segment.partition.index, one.segment.ledger_id, s.first_entry, s.last_entry, s.tier)
        for plan in plans
        for one in plan.segments
        for s in one.splits
        if (s.tier, s.reason) == (one.segment.tier, one.segment.reason) and one.read
    }


def scans(node: Any) -> list[Any]:
    """The scans of hot rows in a physical plan."""
    if node.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        return scans(node.initialPlan())
    found = [node] if node.getClass().getSimpleName() == "BatchScanExec" else []
    children = node.children()
    return found + [scan for i in range(children.size()) for scan in scans(children.apply(i))]


def tasks_of_spark(frame: DataFrame) -> list[SplitsRead]:
    """The very tasks that the planner gave to Spark."""
    execution: Any = frame._jdf.queryExecution()
    return [
        pickle.loads(partition.pickedPartition())
        for scan in scans(execution.executedPlan())
        for partition in scan.batch().planInputPartitions()
    ]


@pytest.mark.journey
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {orders}",
        "SELECT id FROM {orders} WHERE id > 3",
        "SELECT __eventTime FROM {orders}",
        "SELECT __index FROM {orders}",
        "SELECT id FROM {orders} WHERE __partition = 1",
        "SELECT id FROM {orders} WHERE " + LATER,
        "SELECT a.id FROM {orders} a JOIN {orders} b ON a.id = b.id WHERE a.__partition = 0",
        "WITH x AS (SELECT * FROM {orders}) SELECT max(id) FROM x WHERE __ledgerId > 0",
    ],
)
def test_what_is_shown_is_what_tasks_read(query: str, orders: Orders, lake: PulsarLake) -> None:
    frame = lake.spark.sql(query.format(orders=orders.table))
    read = {
        (s.partition.index, s.ledger_id, s.first_entry, s.last_entry, s.tier)
        for task in tasks_of_spark(frame)
        for s in task.splits
    }
    assert shown(lake.query_plans(frame)) == read


def test_the_tier_of_an_open_ledger(explain: Explain) -> None:
    """Whatever columns a query needs."""
    for query in ("SELECT * FROM {orders}", "SELECT id FROM {orders}"):
        [plan] = explain(query)
        tails = [one for one in plan.segments if one.segment.state == "open" and one.read]
        assert tails
        assert {one.segment.tier for one in tails} == {"bookkeeper"}


def test_publish_times(explain: Explain) -> None:
    [plan] = explain("SELECT id FROM {orders} WHERE id >= 0 AND " + LATER)
    assert Predicate("__publishTime", ">", (7_226_582_400_000_000,)) in plan.predicates
    cold = [one for one in plan.segments if one.segment.tier == "parquet"]
    assert cold
    assert not any(one.read for one in cold)
    assert plan.files_read == 0 < plan.files
    [plan] = explain("SELECT id FROM {orders} WHERE id > 3 OR " + LATER)
    assert plan.files_read == plan.files > 0


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 3", []),
        (
            "__publishTime >= TIMESTAMP '2020-01-01 00:00:00.5' AND id > 3",
            [Predicate("__publishTime", ">=", (1_577_836_800_500_000,))],
        ),
        ("__publishTime > TIMESTAMP '2020-01-01' OR id > 3", []),
        ("NOT (__publishTime > TIMESTAMP '2020-01-01' AND id > 3)", []),
    ],
)
def test_publish_times_of_a_plan(where: str, expected: list[Predicate], explain: Explain) -> None:
    [plan] = explain("SELECT * FROM {orders} WHERE " + where)
    assert [one for one in plan.predicates if one.column == "__publishTime"] == expected


def test_a_name_in_a_literal_is_none(explain: Explain, orders: Orders) -> None:
    assert explain("SELECT '{orders}' AS name") == []
    assert [str(one.topic) for one in explain("SELECT '{orders}x', id FROM {orders}")] == [
        f"{orders.namespace}/orders"
    ]


def test_a_name_without_its_namespace(orders: Orders, lake: PulsarLake) -> None:
    other = lake.spark.newSession()
    with PulsarLake(lake.config, spark=other) as joined:
        other.sql(f"USE pulsar.`{orders.namespace}`")
        [plan] = joined.query_plans(other.sql("SELECT id FROM orders WHERE id = 7"))
        [text] = joined.explain_query("SELECT id FROM orders")[0]
    assert str(plan.topic) == str(text.topic) == f"{orders.namespace}/orders"
    assert plan.splits
    assert text.files_read


def test_forced_tiers(explain: Explain, orders: Orders) -> None:
    name = orders.table.removesuffix("orders")
    [parquet] = explain(f"SELECT * FROM {name}`orders$tiers=parquet`")
    assert not parquet.splits
    assert parquet.files_read == parquet.files > 0
    [broker] = explain(f"SELECT * FROM {name}`orders$tiers=broker`")
    assert broker.version is None
    assert {split.tier for split in broker.splits} == {"broker"}
    both = explain(
        f"SELECT a.id FROM {name}`orders$tiers=parquet` a, {name}`orders$tiers=bookkeeper` b "
        "WHERE a.id = b.id"
    )
    assert [(plan.files_read > 0, bool(plan.splits)) for plan in both] == [
        (True, False),
        (False, True),
    ]


def test_the_compacted_view(explain: Explain, orders: Orders) -> None:
    name = orders.table.removesuffix("orders")
    [plan] = explain(f"SELECT id FROM {name}`orders$compacted`")
    assert {"id", "__key", "__ledgerId"} <= set(plan.columns)
    assert plan.splits
    assert plan.files_read


def test_one_topic_twice_with_other_filters(explain: Explain) -> None:
    plans = explain(
        "SELECT a.id FROM {orders} a JOIN {orders} b ON a.id = b.id + 1 "
        "WHERE a.__partition = 0 AND b.__partition = 1"
    )
    assert len(plans) == 2
    for plan in plans:
        assert len({split.partition for split in plan.splits}) == 1
    assert {split.partition.index for plan in plans for split in plan.splits} == {0, 1}
    tokens = {plan.version for plan in plans}
    assert len(tokens) == 1, "one snapshot"


def test_subqueries(explain: Explain) -> None:
    plans = explain("SELECT id FROM {orders} WHERE id = (SELECT max(id) FROM {orders})")
    assert plans
    assert all(plan.splits for plan in plans)


def test_of_what_spark_needs_nothing(explain: Explain) -> None:
    [plan] = explain("SELECT * FROM {orders} WHERE 1 = 0")
    assert not plan.splits
    assert {one.pruned.kind for one in plan.segments if one.pruned} >= {Pruned.UNNEEDED}
    assert not any(one.read for one in plan.segments)


def test_dataframes(orders: Orders, lake: PulsarLake) -> None:
    frame = lake.table(orders.topic).where("id < 9").select("id").alias("x")
    [plan] = lake.query_plans(frame.union(frame))
    assert plan.columns == ("id",)
    assert frame.count() == 9
    [again] = lake.query_plans(frame)
    assert again.splits == plan.splits, "the snapshot of the DataFrame, not a new one"


def test_a_topic_without_a_table_and_one_without_rows(lake: PulsarLake, topics: Any) -> None:
    hot, empty = topics
    [plan], _ = lake.explain_query(f"SELECT * FROM {hot}")
    assert (plan.version, plan.files) == (None, 0)
    assert plan.splits
    [plan], _ = lake.explain_query(f"SELECT * FROM {empty}")
    assert not plan.splits
    assert str(plan)


@pytest.fixture(scope="module")
def topics(cluster: Any, admin: Any) -> tuple[str, str]:
    """Names in SQL of a topic that was never offloaded, and of one without messages."""
    from testbed.publish import publish

    made = []
    for name, count in (("hot", 5), ("empty", 0)):
        topic = admin.create_topic(f"public/default/explain-{name}-{id(admin)}")
        if count:
            publish(cluster.service_url, topic, [b"x"] * count)
        made.append(topic.removeprefix("persistent://public/default/"))
    hot, empty = (f"pulsar.`public/default`.`{one}`" for one in made)
    return hot, empty


@pytest.mark.parametrize(
    "command",
    [
        "CREATE TABLE never_made USING parquet AS",
        "CREATE TEMPORARY VIEW never_made AS",
        "CACHE TABLE never_made AS",
    ],
)
def test_a_command_is_not_run(
    command: str, lake: PulsarLake, orders: Orders, explain: Explain
) -> None:
    """But what its query reads is shown; of a view, what reading it would."""
    [plan] = explain(command + " SELECT id FROM {orders} WHERE id >= 0")
    assert str(plan.topic) == f"{orders.namespace}/orders"
    assert "id" in plan.columns
    assert plan.splits
    assert plan.files_read == plan.files > 0
    assert not lake.spark.catalog.tableExists("never_made")
    assert lake.table(orders.topic, tiers="parquet").count() == COLD


def test_a_users_view_over_a_topic(orders: Orders, lake: PulsarLake) -> None:
    lake.spark.sql(f"SELECT id FROM {orders.table}").createOrReplaceTempView("mine")
    [plan] = lake.explain_query("SELECT * FROM mine WHERE id > 1")[0]
    assert plan.columns == ("id",)
