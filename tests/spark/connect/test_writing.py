"""What a Connect client writes to topics, and what its streams read and write."""

from pathlib import Path

import pytest

from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.conftest import ORDER, TOTAL, Orders, order
from tests.spark.connect.client import Client, ClientError


@pytest.fixture
def table(cluster: Cluster, admin: Admin, namespace: str) -> str:
    """A topic of orders with the numbers 0 … 9."""
    topic = admin.create_topic(f"{namespace}/written", partitions=2)
    publish(cluster.service_url, topic, map(order, range(10)), schema=json_schema(ORDER))
    return f"pulsar.`{namespace}`.written"


def numbers(client: Client, table: str) -> list[int]:
    """Of all orders; each has the values of its number."""
    found = client.ask("sql", f"SELECT id, customer, amount FROM {table} ORDER BY id")
    assert found == [list(order(one[0]).values()) for one in found]
    return [one[0] for one in found]


@pytest.mark.journey
def test_rows_by_each_way(client: Client, table: str) -> None:
    client.ask("sql", f"INSERT INTO {table} VALUES (10, 'c3', 5), (11, 'c4', 5.5)")
    client.ask("sql", f"INSERT INTO {table} (amount, id, customer) SELECT 6, 12, 'c5'")
    client.ask("write_to", table, 13, 20)
    client.ask("insert_into", table, 20, 30)
    assert numbers(client, table) == list(range(30))
    # Out of the topic itself: what it read is what there was before.
    select = f"SELECT id + 30, concat('c', (id + 30) % 7), (id + 30) * 0.5 FROM {table}"
    client.ask("sql", f"INSERT INTO {table} {select}")
    assert numbers(client, table) == list(range(60))


def test_a_temporary_view_keeps_its_snapshot(client: Client, table: str) -> None:
    client.ask("name_rows", table, "before")
    client.ask("write_to", table, 10, 20)
    counts = f"SELECT (SELECT count(*) FROM before), count(*) FROM {table}"
    assert client.ask("sql", counts) == [[10, 20]]


def test_a_write_that_cannot_be_is_one_line(client: Client, table: str) -> None:
    with pytest.raises(ClientError) as found:
        client.ask("write_named", table, 0, 1, "compresion")
    told = "a write to Pulsar has no option compresion (did you mean compression?)"
    assert found.value.text.strip() == told
    with pytest.raises(ClientError) as found:
        client.ask("sql", f"INSERT OVERWRITE {table} VALUES (1, 'c1', 0.5)")
    [line] = found.value.text.strip().splitlines()
    assert "INSERT OVERWRITE is not possible (hint: " in line
    assert numbers(client, table) == list(range(10))


def test_a_row_that_does_not_fit(client: Client, table: str) -> None:
    with pytest.raises(ClientError) as found:
        client.ask(
            "sql", f"INSERT INTO {table} (id, __eventTime) VALUES (1, TIMESTAMP '1960-01-01')"
        )
    lines = found.value.text.strip().splitlines()
    # The line as it is, and once more as JSON; before and behind, what Spark adds.
    assert sum("column __eventTime of a row is not after 1970-01-01" in one for one in lines) == 2
    assert len(lines) == 4
    assert numbers(client, table) == list(range(10))


def test_a_stream_into_files(client: Client, table: str, tmp_path: Path) -> None:
    folder = str(tmp_path)
    found = client.ask("stream_to_files", table, folder)
    assert sorted(one[0] for one in found) == list(range(10))
    client.ask("write_to", table, 10, 15)
    found = client.ask("stream_to_files", table, folder)
    assert sorted(one[0] for one in found) == list(range(15))


def test_a_stream_over_every_tier_into_memory(client: Client, orders: Orders) -> None:
    read, *groups = client.ask("stream_to_memory", orders.table)
    assert read == [TOTAL]
    expected = {f"c{one}": len(range(one, TOTAL, 7)) for one in range(7)}
    assert dict(groups) == expected


def test_a_stream_into_a_function_of_the_client(
    client: Client, orders: Orders, tmp_path: Path
) -> None:
    batches = client.ask("stream_to_function", orders.table, str(tmp_path))
    assert batches == list(range(len(batches)))
    assert len(batches) > 2
    ids = [int(one) for file in tmp_path.glob("*.ids") for one in file.read_text().split()]
    assert sorted(ids) == list(range(TOTAL))


def test_a_stream_into_a_topic(client: Client, orders: Orders, table: str, tmp_path: Path) -> None:
    """Exactly once: what the checkpoint has is not sent again."""
    client.ask("stream_to_topic", orders.table, table, str(tmp_path))
    assert numbers(client, table) == sorted([*range(10), *range(TOTAL)])
    client.ask("stream_to_topic", orders.table, table, str(tmp_path))
    assert len(numbers(client, table)) == TOTAL + 10


def test_a_stream_that_cannot_be_is_one_line(client: Client, table: str) -> None:
    with pytest.raises(ClientError) as found:
        client.ask("stream_with", table, "startingOffsets")
    [line] = found.value.text.strip().splitlines()
    assert line.startswith("a stream has no option startingOffsets (one of ")
    with pytest.raises(ClientError) as found:
        client.ask("stream_with", table + "x", "failOnDataLoss")
    [line] = found.value.text.strip().splitlines()
    assert "does not exist" in line
