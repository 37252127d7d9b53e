"""A query's snapshot holds while its segments move: offloaded, then deleted from BookKeeper."""

from typing import Any

import pyarrow as pa
import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.admin import AdminClient
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from reader.storage import open_storage
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from testbed.s3 import S3
from tests.support.fixtures import Offload


def rows_of(frame: Any) -> list[bytes]:
    return sorted(bytes(row["value"]) for row in frame.select("value").toArrow().to_pylist())


def read_again(config: Config, topic: str, token: str) -> list[bytes]:
    """The hot half of a snapshot, planned now from its token."""
    with AdminClient(config.pulsar) as client:
        snapshot = from_token(client, Topic.parse(topic), token)
    wanted = RowFormat(snapshot.fields, snapshot.schemas, pa.schema([("value", pa.binary())]))
    rows = []
    with Clients(config) as clients:
        for split in plan_snapshot(snapshot, columns=["value"]).splits:
            for batch in read_rows(clients, SplitsRead((split,)), wanted):
                rows += batch.column("value").to_pylist()
    return sorted(rows)


def numbered(first: int, stop: int) -> list[bytes]:
    return [b"message %06d" % number for number in range(first, stop)]


@pytest.fixture
def trimmed_namespace(admin: Admin, namespace: str) -> str:
    """A namespace in which Pulsar deletes whatever no subscription holds."""
    admin.set_retention(namespace, 0, 0)
    return namespace


@pytest.mark.journey
def test_a_dataframe_outlives_its_ledgers(
    cluster: Cluster,
    admin: Admin,
    trimmed_namespace: str,
    lake: PulsarLake,
    lake_config: Config,
    offload: Offload,
) -> None:
    topic = f"{trimmed_namespace}/moving"
    full = f"persistent://{topic}"
    admin.create_topic(topic)
    # As the offloader does before anything else: without it nothing would be kept.
    admin.create_subscription(topic, "pulsar-lake")
    publish(cluster.service_url, full, numbered(0, 500), batch=10)
    admin.seal(topic)
    publish(cluster.service_url, full, numbered(500, 700), batch=10)

    before = lake.table(topic)
    filtered = before.where("length(value) > 0")
    expected = numbered(0, 700)
    assert rows_of(before) == expected
    with AdminClient(lake_config.pulsar) as client:
        token = to_token(take_snapshot(Clients(lake_config, admin=client), Topic.parse(topic)))

    publish(cluster.service_url, full, numbered(700, 800))
    admin.seal(topic)
    old = admin.ledgers(full)
    offload(topic)
    assert rows_of(before) == expected, "the snapshot must not see the new messages"

    admin.trim(topic)
    wait_until("the old ledgers to be gone", lambda: not set(old[:2]) & set(admin.ledgers(full)))
    assert rows_of(before) == expected
    assert rows_of(filtered) == expected
    assert before.count() == 700
    # Bookies may serve a deleted ledger for a while; a plan made now finds it in the table only.
    assert read_again(lake_config, topic, token) == expected
    assert rows_of(lake.table(topic)) == numbered(0, 800)


def test_a_view_takes_a_new_snapshot_at_every_query(
    cluster: Cluster, admin: Admin, namespace: str, lake: PulsarLake
) -> None:
    topic = f"{namespace}/viewed"
    publish(cluster.service_url, f"persistent://{topic}", numbered(0, 10))
    lake.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT * FROM pulsar.`{namespace}`.viewed"
    )
    assert lake.spark.sql("SELECT count(*) AS n FROM seen").collect()[0]["n"] == 10
    publish(cluster.service_url, f"persistent://{topic}", numbered(10, 15))
    assert lake.spark.sql("SELECT count(*) AS n FROM seen").collect()[0]["n"] == 15


def test_messages_deleted_before_they_were_offloaded_are_an_error(
    cluster: Cluster, admin: Admin, trimmed_namespace: str, lake_config: Config
) -> None:
    topic = f"{trimmed_namespace}/lost"
    full = f"persistent://{topic}"
    admin.create_topic(topic)
    admin.create_subscription(topic, "other")
    publish(cluster.service_url, full, numbered(0, 50))
    admin.seal(topic)
    with AdminClient(lake_config.pulsar) as client:
        token = to_token(take_snapshot(Clients(lake_config, admin=client), Topic.parse(topic)))
    old = admin.ledgers(full)
    admin.skip_all(topic, "other")
    admin.trim(topic)
    wait_until("the ledger to be gone", lambda: old[0] not in admin.ledgers(full))
    with pytest.raises(NotFoundError, match="is not in the table"):
        read_again(lake_config, topic, token)


def test_plain_delta_readers_agree_with_spark(
    cluster: Cluster, admin: Admin, namespace: str, lake: PulsarLake, offload: Offload, s3: S3
) -> None:
    import duckdb
    import pyarrow.dataset as pads
    from deltalake import DeltaTable

    from tests.contract.corpus.topics.published import CASES

    case = next(one for one in CASES if one.name == "avro-orders")
    topic = f"{namespace}/plain"
    publish(
        cluster.service_url, f"persistent://{topic}", case.messages, schema=case.schema, batch=20
    )
    admin.seal(topic)
    offload(topic)

    spark = lake.table(topic, tiers="parquet")
    expected = spark.orderBy("__ledgerId", "__entryId", "__batchIndex").toArrow()
    options = open_storage(lake.config.storage).delta_options()
    table = DeltaTable(f"{s3.uri}/{topic}", storage_options=options)
    # Without threads: delta-rs's filesystem object may abort the interpreter at exit (1.6.6).
    whole = table.to_pyarrow_dataset().to_table(use_threads=False)
    order = [("__ledgerId", "ascending"), ("__entryId", "ascending"), ("__batchIndex", "ascending")]
    assert whole.sort_by(order).select(expected.schema.names).to_pylist() == expected.to_pylist()
    assert isinstance(table.to_pyarrow_dataset(), pads.Dataset)

    orders = table.to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.execute("SET threads TO 1")
        connection.register("orders", orders)
        [found] = connection.execute(
            "SELECT count(*), sum(id), count(customer), max(__publishTime) FROM orders"
        ).fetchall()
    row = spark.selectExpr(
        "count(*) AS a", "sum(id) AS b", "count(customer) AS c", "max(__publishTime) AS d"
    ).collect()[0]
    assert found[:3] == (row["a"], row["b"], row["c"])
    assert found[3].timestamp() == row["d"].timestamp()


def test_forty_fields_still_prune_by_time(
    cluster: Cluster, admin: Admin, namespace: str, lake: PulsarLake, offload: Offload
) -> None:
    from testbed.publish import avro_schema

    fields = [{"name": f"field_{n}", "type": "long"} for n in range(40)]
    schema = avro_schema({"type": "record", "name": "Wide", "fields": fields})
    topic = f"{namespace}/wide"
    times = []
    for part in range(3):
        publish(
            cluster.service_url,
            f"persistent://{topic}",
            [{f"field_{n}": part for n in range(40)} for _ in range(20)],
            schema=schema,
        )
        admin.seal(topic)
        offload(topic)  # a commit, and so a file, each
        times.append(lake.spark.sql("SELECT current_timestamp() AS now").collect()[0]["now"])
    frame = lake.table(topic).where(
        f"__publishTime > timestamp_micros({int(times[1].timestamp() * 1e6)})"
    )
    assert {row["field_7"] for row in frame.select("field_7").collect()} == {2}
    assert files_read(frame) == 1
    explanation = lake.explain(topic, start=times[1])
    assert (explanation.files, explanation.files_read) == (3, 1)


def files_read(frame: Any) -> int:
    """The Parquet files that the frame's scans opened, by Spark's own metric."""
    plan = frame._jdf.queryExecution().executedPlan()
    frame.collect()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.finalPhysicalPlan()
    leaves = plan.collectLeaves()
    total = 0
    for i in range(leaves.size()):
        metrics = leaves.apply(i).metrics()
        if metrics.contains("numFiles"):
            total += metrics.apply("numFiles").value()
    return total
