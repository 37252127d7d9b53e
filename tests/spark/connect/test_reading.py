"""What a Connect client reads: rows of every state, one snapshot an action, errors as a line."""

from threading import Event, Thread
from typing import Any

import pytest

from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.conftest import COLD, OPEN, ORDER, SEALED, TOTAL, Orders, order
from tests.spark.connect.client import Client, ClientError

pytestmark = pytest.mark.timeout(600)  # the first may start all servers and two sessions of Spark


@pytest.mark.journey
def test_the_client_has_neither_a_jvm_nor_this_project(client: Client, orders: Orders) -> None:
    assert client.ask("sql", f"SELECT count(*) FROM {orders.table}") == [[TOTAL]]
    loaded = client.ask("modules")
    ours = [one for one in loaded if one.split(".")[0] in ("reader", "spark_ext", "offloader")]
    assert ours == []
    assert "grpc" in loaded


@pytest.mark.journey
def test_sql_over_every_tier(client: Client, orders: Orders) -> None:
    text = f"SELECT count(*), sum(id), max(amount) FROM {orders.table} WHERE id >= 10"
    assert client.ask("sql", text) == [[TOTAL - 10, sum(range(10, TOTAL)), (TOTAL - 1) * 0.5]]
    tables = client.ask("sql", f"SHOW TABLES IN pulsar.`{orders.namespace}`")
    assert [one[1] for one in tables] == ["orders"]


@pytest.mark.journey
def test_a_data_frame_over_every_tier(client: Client, orders: Orders) -> None:
    borders = f"id IN (0, {COLD - 1}, {COLD}, {COLD + SEALED}, {TOTAL - 1}, {TOTAL})"
    expected = [0, COLD - 1, COLD, COLD + SEALED, TOTAL - 1]
    found = client.ask("filtered", orders.table, borders)
    assert found == [[one, f"c{one % 7}"] for one in expected]
    assert client.ask("of_format", orders.topic) == [[sum(range(TOTAL))]]


def test_a_time_filter_reaches_both_halves(client: Client, orders: Orders) -> None:
    """Rows of one phase were all sent before those of the next one."""
    [[last_cold, last_sealed]] = client.ask(
        "sql",
        f"SELECT CAST(max(__publishTime) FILTER (WHERE id < {COLD}) AS STRING),"
        f" CAST(max(__publishTime) FILTER (WHERE id < {COLD + SEALED}) AS STRING)"
        f" FROM {orders.table}",
    )

    def count(condition: str) -> int:
        text = f"SELECT count(*), count(DISTINCT id) FROM {orders.table} WHERE {condition}"
        [[rows, ids]] = client.ask("sql", text)
        assert rows == ids
        return int(rows)

    assert count(f"__publishTime > '{last_cold}'") == SEALED + OPEN
    assert count(f"__publishTime > '{last_sealed}'") == OPEN
    assert count(f"__publishTime BETWEEN '1970-01-01' AND '{last_cold}'") == COLD


def test_an_action_is_one_snapshot(
    client: Client, cluster: Cluster, admin: Admin, lake_namespace: str
) -> None:
    """However many references it has, and whatever is published meanwhile."""
    topic = admin.create_topic(f"{lake_namespace}/growing", partitions=2)
    table = f"pulsar.`{lake_namespace}`.growing"
    sent: list[int] = []  # how many there were in each partition
    ended = Event()

    def send(first: int, stop: int) -> None:
        # Even ids are in one partition, odd ones in the other: a snapshot has the first ones of
        # each, and may end between the two sends.
        for index, partition in enumerate(admin.partitions(topic)):
            some = map(order, range(2 * first + index, 2 * stop, 2))
            publish(cluster.service_url, partition, some, schema=json_schema(ORDER))
        sent.append(stop)

    def raise_if_stopped() -> None:
        while not ended.wait(0.3):
            send(sent[-1], sent[-1] + 10)

    def grown(action: str, *arguments: object) -> Any:
        """What it gives, once there is more than any action before has seen."""
        seen = len(sent) + 1  # what was just sent, and not noted yet
        wait_until("more messages", lambda: len(sent) > seen)
        return client.ask(action, *arguments)

    send(0, 25)
    writer = Thread(target=raise_if_stopped)
    writer.start()
    try:
        by_ids = f"SELECT max(id) DIV 2 + 1 AS n FROM {table} GROUP BY __partition"
        text = f"SELECT (SELECT count(*) FROM {table}), (SELECT sum(n) FROM ({by_ids})), count(*)"
        counts = [grown("sql", f"{text} FROM {table}")[0] for _ in range(3)]
        frames = grown("one_frame_often", table, 3)
    finally:
        ended.set()
        writer.join()
    assert all(one == [one[0]] * 3 for one in counts), counts
    assert all(one[0] == one[1] for one in frames), frames
    # Each action looks anew: over Connect a DataFrame is a plan, and no snapshot is kept with it.
    rows = [one[0] for one in [*counts, *frames]]
    assert sorted(rows) == rows
    assert rows[0] < rows[1] < rows[2] < rows[3]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "DELETE FROM {table} WHERE id = 1",
            "a topic is a log, to which rows are added: DELETE is not possible (hint: INSERT INTO",
        ),
        ("SELECT * FROM {table} VERSION AS OF 99", "cannot read the table at "),
        ("SELECT * FROM {table} VERSION AS OF 'soon'", "a version of a table is a number"),
    ],
)
def test_an_error_is_one_line(client: Client, orders: Orders, text: str, told: str) -> None:
    with pytest.raises(ClientError) as found:
        client.ask("sql", text.format(table=orders.table))
    assert found.value.kind == "AnalysisException"
    [line] = found.value.text.strip().splitlines()
    assert line.startswith(told)
    assert line.endswith((")", "'soon'"))


@pytest.mark.journey
def test_what_is_not_there(client: Client, orders: Orders) -> None:
    with pytest.raises(ClientError, match=r"TABLE_OR_VIEW_NOT_FOUND.*`nope`"):
        client.ask("sql", f"SELECT * FROM pulsar.`{orders.namespace}`.nope")


def test_no_session_chooses_other_settings(client: Client, server: str) -> None:
    with pytest.raises(ClientError, match="cannot be set in a session"):
        client.ask("choose_settings", server, "spark.sql.catalog.pulsar.config", "/etc/passwd")
