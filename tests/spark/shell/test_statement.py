"""A statement that runs: its rows in batches, its progress, its end."""

from typing import Any

import pyarrow as pa
import pytest

from offloader.cli.shell.statements import tokens
from reader.background import in_thread
from spark_ext import PulsarLake
from testbed.admin import wait_until
from tests.spark.conftest import TOTAL, Orders
from tests.unit.shell.test_statements import PARTS


def table(lake: PulsarLake, text: str) -> pa.Table:
    def run() -> pa.Table:
        statement = lake.statement(text)
        schema = statement.run()
        return pa.Table.from_batches(statement.batches(schema), schema)

    return in_thread(run).result(120)  # in a thread of its own, as in the shell


TYPES = (
    "SELECT true AS b, 1Y AS i8, 2S AS i16, 3 AS i32, 4L AS i64, 1.5F AS f, 2.5D AS d, 1.25BD AS n,"
    " 'ä' AS s, X'00ff' AS raw, DATE'2026-01-02' AS day,"
    " TIMESTAMP'2026-01-02 03:04:05.678901' AS t, "
    "TIMESTAMP_NTZ'2026-01-02 03:04:05' AS ntz, map('k', array(1, NULL)) AS m, "
    "named_struct('x', 1, 'y', 'z') AS st, INTERVAL '1' DAY AS gap, NULL AS nothing"
)


@pytest.mark.parametrize(
    "text",
    [
        TYPES,
        "SELECT id FROM range(0, 1000, 1, 23)",
        "SELECT id % 7 AS k, count(*) AS n FROM range(1000) GROUP BY 1 ORDER BY 1",
        "SELECT id FROM range(100) ORDER BY id DESC LIMIT 5",
        "SELECT id FROM range(10) WHERE id < 0",
        "SHOW NAMESPACES IN pulsar LIKE 'public/default'",
        "SET spark.sql.session.timeZone",
    ],
)
def test_rows_are_those_of_toarrow(lake: PulsarLake, text: str) -> None:
    found, expected = table(lake, text), lake.spark.sql(text).toArrow()
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def test_long_offsets_where_the_session_has_them(lake: PulsarLake) -> None:
    text = "SELECT 'alpha' AS a, X'00ff' AS b UNION ALL SELECT 'beta', NULL"
    lake.spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        found, expected = table(lake, text), lake.spark.sql(text).toArrow()
    finally:
        lake.spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()


def test_rows_of_each_tier(lake: PulsarLake, orders: Orders) -> None:
    found = table(lake, f"SELECT id FROM {orders.table} ORDER BY id")
    assert found.column("id").to_pylist() == list(range(TOTAL))


def test_tasks_have_the_settings_of_the_session(lake: PulsarLake) -> None:
    """This one is looked at where code is made for the tasks, not where the query is analysed."""
    text = "SELECT map_from_entries(array((id, 1), (id, 2))) AS m FROM range(1)"
    with pytest.raises(Exception, match="DUPLICATED_MAP_KEY"):
        table(lake, text)
    lake.spark.conf.set("spark.sql.mapKeyDedupPolicy", "LAST_WIN")
    try:
        assert table(lake, text).to_pylist() == [{"m": [(0, 2)]}]
    finally:
        lake.spark.conf.unset("spark.sql.mapKeyDedupPolicy")


def test_a_result_is_not_read_before_it_is_wanted(lake: PulsarLake) -> None:
    statement = lake.statement("SELECT id, repeat('x', 1000) AS s FROM range(0, 400000, 1, 40)")
    batches = statement.batches(statement.run())
    next(batches)
    # Spark tells it a moment later.
    wait_until("all tasks", lambda: statement.progress().tasks == 40)
    assert statement.progress().tasks_done < 20
    assert sum(one.num_rows for one in batches) < 400_000
    wait_until("the last task", lambda: statement.progress().tasks_done >= 40)
    assert statement.progress().tasks_done == statement.progress().tasks == 40
    assert statement.progress().rows == 400_000


def test_what_is_cancelled_ends(lake: PulsarLake) -> None:
    statement = lake.statement("SELECT count(*) FROM range(1000000000000000)")

    def run() -> int:
        return sum(one.num_rows for one in statement.batches(statement.run()))

    running = in_thread(run)
    wait_until("a task", lambda: statement.progress().tasks)
    statement.cancel()
    with pytest.raises(Exception, match="cancelled"):
        running.result(240)


def test_what_is_cancelled_before_its_first_job_begins_none(lake: PulsarLake) -> None:
    def run() -> int:
        statement = lake.statement("SELECT count(*) FROM range(1000)")
        schema = statement.run()
        statement.cancel()
        return sum(one.num_rows for one in statement.batches(schema))

    with pytest.raises(Exception, match="cancelled"):
        in_thread(run).result(240)
    assert table(lake, "SELECT 1 AS x").to_pylist() == [{"x": 1}]


@pytest.mark.parametrize("text", [text for text, _ in PARTS])
def test_semicolons_are_those_of_sparks_own_lexer(lake: PulsarLake, text: str) -> None:
    jvm: Any = lake.spark.sparkContext._jvm
    stream, parser = jvm.org.antlr.v4.runtime, jvm.org.apache.spark.sql.catalyst.parser
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(stream.CharStreams.fromString(text)))
    found = lexer.getAllTokens()
    expected = [
        one.getStartIndex() for one in found if one.getType() == parser.SqlBaseLexer.SEMICOLON
    ]
    assert [one.start for one in tokens(text) if one.text == ";"] == expected


def test_names_without_spark(lake: PulsarLake, orders: Orders) -> None:
    assert orders.namespace in lake.namespaces()
    assert lake.topics(orders.namespace) == ["orders"]
    assert lake.columns(orders.topic).names[:3] == ["id", "customer", "amount"]
