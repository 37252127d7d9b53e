"""The way of rows into a topic: statements, a stream, and what dies while it sends."""

import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.spark.sink.conftest import Target
from tests.support.stream_program import TASKS, kill_some

pytestmark = [pytest.mark.journey, pytest.mark.timeout(600)]  # many queries

ROWS = 600
SLOW = 2
"""Messages a second and partition: minutes for all of them, in which a query starts twice."""


def test_each_row_once(
    lake: PulsarLake, make: Callable[..., Target], admin: Admin, tmp_path: Path
) -> None:
    """Statements, by position and by name; a stream that is stopped while it sends, whose tasks are
    killed while they send, and whose last commit is lost."""
    source, target = make("source"), make("target")
    table = source.table
    lake.spark.sql(f"INSERT INTO {table} VALUES (0, 'a', 1.5), (1, NULL, NULL)")
    lake.spark.sql(
        f"INSERT INTO {table} (name, id, __key, __eventTime, __messageProperties) "
        "SELECT 'x', 2, 'k', TIMESTAMP '2024-05-06 07:08:09.123456Z', map('a', '1')"
    )
    rows = {row[0]: row[1:] for row in source.rows("id", "name", "amount")}
    assert rows == {0: ("a", 1.5), 1: (None, None), 2: ("x", None)}
    [row] = [one for one in source.rows("__key", "__eventTime", "__messageProperties") if one[0]]
    assert (row[0], row[2]) == ("k", [("a", "1")])
    assert row[1].isoformat() == "2024-05-06T07:08:09.123000+00:00"  # ms on the wire

    lake.spark.sql(
        f"INSERT INTO {table} BY NAME "
        f"SELECT CAST(id % 7 AS STRING) AS __key, id FROM range(3, {ROWS})"
    )
    stream = lake.spark.readStream.table(table).select("id", "name", "amount", "__key")

    def start() -> StreamingQuery:
        writer = stream.writeStream.trigger(availableNow=True).option("batchingMaxMessages", "5")
        return writer.option("checkpointLocation", str(tmp_path)).toTable(target.table)

    def start_to_send() -> StreamingQuery:
        before = admin.messages(target.topic)
        query = start()
        wait_until("some of it is sent", lambda: admin.messages(target.topic) > before, 120)
        return query

    admin.set_publish_rate(target.topic, messages=SLOW)
    start_to_send().stop()
    query = start_to_send()

    def has_failed() -> bool:
        kill_some(os.getpid(), TASKS)
        return not query.isActive

    wait_until("a task that dies", has_failed)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination()
    assert admin.messages(target.topic) < ROWS
    admin.set_publish_rate(target.topic, messages=-1)
    assert start().awaitTermination(120)
    check(target, ROWS)

    for lost in (tmp_path / "commits").iterdir():
        lost.unlink()
    lake.spark.sql(f"INSERT INTO {table} BY NAME SELECT id FROM range({ROWS}, {ROWS} + 20)")
    for _ in range(2):  # the micro-batch that is run again, and what came behind it
        assert start().awaitTermination(120)
    check(target, ROWS + 20)


def check(target: Target, count: int) -> None:
    """Each number is there once, and those of a key in order."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for number, key in target.rows("id", "__key"):
        by_key[key].append(number)
    assert sorted(number for numbers in by_key.values() for number in numbers) == [*range(count)]
    assert all(by_key[str(key)] == sorted(by_key[str(key)]) for key in range(7))
