"""A topic is a log: what would overwrite, replace, change or drop it is refused, or asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from offloader.config import Config
from reader.config import WriteConfig
from spark_ext import PulsarLake
from testbed.admin import Admin
from tests.spark.sink.conftest import Target

Make = Callable[..., Target]


@pytest.fixture
def dropping(lake_config: Config, lake: PulsarLake) -> Iterator[PulsarLake]:
    """A session whose settings allow to drop topics."""
    settings = lake_config.model_copy(update={"write": WriteConfig(drop_topics=True)})
    assert lake.spark is not None  # is there first: the other one is a session beside it
    with PulsarLake(settings) as other:
        yield other


def row(lake: PulsarLake) -> DataFrame:
    return lake.spark.sql("SELECT 9L AS id, 'z' AS name, 0.5D AS amount")


STATEMENTS = [
    ("INSERT OVERWRITE {0} VALUES (1, 'a', 1.5)", "INSERT OVERWRITE"),
    ("INSERT INTO {0} REPLACE WHERE id = 1 VALUES (1, 'a', 1.5)", "an overwrite"),
    ("INSERT INTO {0} REPLACE USING (id) VALUES (1, 'a', 1.5)", "INSERT OVERWRITE"),
    ("DELETE FROM {0} WHERE id = 1", "DELETE"),
    ("UPDATE {0} SET id = 1", "UPDATE"),
    ("MERGE INTO {0} AS t USING {0} AS s ON t.id = s.id WHEN MATCHED THEN DELETE", "MERGE"),
    ("CREATE OR REPLACE TABLE {0} AS SELECT 1 AS id", "REPLACE TABLE"),
    ("CREATE OR REPLACE TABLE {0} (id INT)", "REPLACE TABLE"),
    ("REPLACE TABLE {0} AS SELECT 1 AS id", "REPLACE TABLE"),
    ('CREATE OR REPLACE TABLE IDENTIFIER("{0}") AS SELECT 1 AS id', "REPLACE TABLE"),
]
WRITERS: list[tuple[Callable[[DataFrame, Target], object], str]] = [
    (lambda frame, to: frame.writeTo(to.table).overwritePartitions(), "an overwrite"),
    (lambda frame, to: frame.writeTo(to.table).overwrite(lit(True)), "an overwrite"),
    (lambda frame, to: frame.writeTo(to.table).createOrReplace(), "REPLACE TABLE"),
    (lambda frame, to: frame.writeTo(to.table).replace(), "REPLACE TABLE"),
    (lambda frame, to: frame.write.mode("overwrite").insertInto(to.table), "an overwrite"),
    (lambda frame, to: frame.write.mode("overwrite").saveAsTable(to.table), "REPLACE TABLE"),
    (
        lambda frame, to: frame.write.format("pulsar").option("topic", to.topic)
        .mode("overwrite").save(),
        "an overwrite",
    ),
]  # fmt: skip


def test_what_is_written_stays(dropping: PulsarLake, make: Make) -> None:
    """Also where a topic may be dropped."""
    target = make()
    row(dropping).writeTo(target.table).append()

    def refused(run: Callable[[], object], what: str) -> None:
        with pytest.raises(AnalysisException, match=f"a topic is a log.*: {what} is not") as no:
            run()
        assert len(str(no.value).splitlines()) == 1
        assert target.rows("id", "name", "amount") == [(9, "z", 0.5)]

    for statement, what in STATEMENTS:
        refused(lambda text=statement: dropping.spark.sql(text.format(target.table)), what)  # type: ignore[misc]
    for write, what in WRITERS:
        refused(lambda way=write: way(row(dropping), target), what)  # type: ignore[misc]


def test_drop_table_is_refused(lake: PulsarLake, make: Make) -> None:
    target = make()
    row(lake).writeTo(target.table).append()
    with pytest.raises(AnalysisException, match=r"not allowed \(set write.drop_topics = true"):
        lake.spark.sql(f"DROP TABLE {target.table}")
    assert target.ids() == [9]
    lake.spark.sql("DROP TABLE IF EXISTS pulsar.`public/default`.`no such topic`")


def test_drop_table_deletes_a_topic(
    dropping: PulsarLake, make: Make, admin: Admin, namespace: str
) -> None:
    target, other = make(), make("other", partitions=0)
    row(dropping).writeTo(target.table).append()
    for one in (target, other):
        dropping.spark.sql(f"DROP TABLE {one.table}")
        assert not dropping.spark.catalog.tableExists(one.table)
    assert admin.request("GET", f"/v2/persistent/{namespace}") == []
    assert admin.request("GET", f"/v2/persistent/{namespace}/partitioned") == []
    with pytest.raises(AnalysisException, match="cannot be found"):
        dropping.spark.sql(f"DROP TABLE {target.table}")


def test_a_topic_that_is_dropped_and_made_again(
    dropping: PulsarLake, make: Make, admin: Admin
) -> None:
    """It is another one: no write to it was done before, and deduplication is asked for anew."""
    target = make()

    def written() -> list[int]:
        named = {"txnAppId": "job", "txnVersion": "1"}
        row(dropping).writeTo(target.table).options(**named).append()
        row(dropping).writeTo(target.table).append()
        routed = row(dropping).withColumn("__topic", lit(target.topic))
        routed.write.format("pulsar").mode("append").save()
        assert deduplicated(admin, target) == {"Enabled"}
        return target.ids()

    assert written() == [9, 9, 9]
    dropping.spark.sql(f"DROP VIEW IF EXISTS {target.compacted}")
    dropping.spark.sql(f"DROP TABLE {target.table}")
    make()
    assert written() == [9, 9, 9]


def deduplicated(admin: Admin, target: Target) -> set[str]:
    return {
        str(admin.request("GET", f"{one}/stats")["deduplicationStatus"])
        for one in (f"/v2/persistent/{target.topic}-partition-{index}" for index in range(2))
    }


def test_tables_of_delta_by_their_path(lake: PulsarLake, tmp_path: Path) -> None:
    """They are nobody's but Delta's, also while a catalog of topics is the current one."""
    table = f"delta.`{tmp_path}/t`"
    session = lake.spark.newSession()
    session.sql(f"CREATE TABLE {table} (id INT, name STRING) USING delta")
    session.sql("USE pulsar")
    session.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    session.sql(f"INSERT INTO {table} (name, id) VALUES ('c', 3)")
    session.sql(f"DELETE FROM {table} WHERE id = 1")
    session.sql(f"UPDATE {table} SET name = 'z' WHERE id = 2")
    session.sql(
        f"MERGE INTO {table} AS t USING (SELECT 3 AS id, 'm' AS name) AS s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name"
    )
    found = session.sql(f"SELECT id, name FROM {table}").collect()
    assert sorted(map(tuple, found)) == [(2, "z"), (3, "m")]
    session.sql(f"INSERT OVERWRITE {table} VALUES (5, 'e')")
    assert [tuple(one) for one in session.sql(f"SELECT * FROM {table}").collect()] == [(5, "e")]
