"""Every way in which Spark writes rows; what it refuses of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from offloader.config import Config
from spark_ext import PulsarLake, error_of
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.sink.conftest import Target

Make = Callable[..., Target]


def numbers(lake: PulsarLake, count: int, first: int = 0) -> DataFrame:
    return lake.spark.range(first, first + count).selectExpr(
        "id", "concat('n', id) AS name", "id * 0.5D AS amount"
    )


def test_insert_by_name_from_the_same_topic(lake: PulsarLake, make: Make) -> None:
    target = make()
    lake.spark.sql(f"INSERT INTO {target.table} (id, name, __key) VALUES (1, 'a', 'k')")
    # All that a row has, what only Pulsar can say included.
    lake.spark.sql(f"INSERT INTO {target.table} BY NAME SELECT * FROM {target.table}")
    lake.spark.sql(f"INSERT INTO {target.table} SELECT id + 1, name, 2.5 FROM {target.table}")
    found = sorted(target.rows("id", "name", "amount", "__key"), key=str)
    once = (1, "a", None, "k")
    assert found == [once, once, (2, "a", 2.5, None), (2, "a", 2.5, None)]


def test_ways_of_a_batch(lake: PulsarLake, make: Make) -> None:
    """All of them into one topic, each with ten rows."""
    target = make()
    lake.spark.sql(
        "WITH some AS (SELECT id, 'c' AS name, 0.0D AS amount FROM range(10)) "
        f"INSERT INTO {target.table} SELECT * FROM some"
    )
    keyed = numbers(lake, 10, 10).selectExpr("*", "CAST(id AS STRING) AS __key")
    keyed.writeTo(target.table).option("batchingMaxMessages", "2").append()
    numbers(lake, 10, 20).write.insertInto(target.table)
    numbers(lake, 10, 30).write.mode("append").saveAsTable(target.table)
    frame = numbers(lake, 10, 40).write.format("pulsar").option("topic", target.topic)
    frame.mode("append").save()
    # A topic that is named wins over the column.
    elsewhere = numbers(lake, 10, 50).selectExpr("*", "'public/default/nowhere' AS __topic")
    elsewhere.writeTo(target.table).append()
    assert target.ids() == list(range(60))
    keys = {key for (key,) in target.rows("__key") if key is not None}
    assert keys == {str(number) for number in range(10, 20)}


def test_rows_name_their_topic(lake: PulsarLake, make: Make) -> None:
    even, odd = make("even"), make("odd", partitions=0)
    frame = numbers(lake, 20).selectExpr(
        "*", f"IF(id % 2 = 0, '{even.topic}', 'persistent://{odd.topic}') AS __topic"
    )
    frame.write.format("pulsar").mode("append").save()
    assert (even.ids(), odd.ids()) == (list(range(0, 20, 2)), list(range(1, 20, 2)))


def test_ways_of_a_stream(
    lake: PulsarLake, lake_config: Config, make: Make, namespace: str, tmp_path: Path
) -> None:
    """By a topic's name, by the column, and into a table that is not there (the journey has one
    that is)."""
    source, named, routed = (make(name) for name in ("source", "named", "routed"))
    made = Target(lake_config, namespace, "made")
    numbers(lake, 30).writeTo(source.table).append()
    payload = lake.spark.readStream.table(source.table).select("id", "name", "amount")

    def writer(name: str, frame: DataFrame) -> DataStreamWriter:
        opened = frame.writeStream.trigger(availableNow=True)
        return opened.option("checkpointLocation", str(tmp_path / name))

    queries = [
        writer("named", payload).format("pulsar").option("topic", named.topic).start(),
        writer("routed", payload.selectExpr("*", f"'{routed.topic}' AS __topic"))
        .format("pulsar")
        .start(),
        writer("made", payload.selectExpr("id", "name AS __key")).toTable(made.table),
    ]
    for query in queries:
        assert query.awaitTermination(120)
    assert [one.ids() for one in (named, routed, made)] == [list(range(30))] * 3
    assert sorted(made.rows("id", "__key")) == [(number, f"n{number}") for number in range(30)]


@pytest.mark.parametrize("way", ["format", "table"])
def test_continuous_processing_is_refused(
    lake: PulsarLake, make: Make, tmp_path: Path, way: str
) -> None:
    """Spark would drop each row without a word."""
    target = make()
    stream = lake.spark.readStream.format("rate").load()
    frame = stream.selectExpr("value AS id", "'x' AS name", "0.5D AS amount")
    writer = frame.writeStream.trigger(continuous="1 second")
    writer = writer.option("checkpointLocation", str(tmp_path))
    with pytest.raises(AnalysisException, match="written to topics in micro-batches"):
        if way == "format":
            writer.format("pulsar").option("topic", target.topic).start()
        else:
            writer.toTable(target.table)


def test_a_topic_whose_name_is_like_ours(lake: PulsarLake, make: Make) -> None:
    plain, like = make("plain"), make("plain$sink")
    lake.spark.sql(f"INSERT INTO {like.table} VALUES (1, 'a', 0.5)")
    numbers(lake, 1, 2).writeTo(like.table).append()
    assert (plain.ids(), like.ids()) == ([], [1, 2])
    with pytest.raises(AnalysisException, match="is read as something else than a topic"):
        make("plain$compacted")


def test_rows_without_a_key_are_spread(lake: PulsarLake, make: Make) -> None:
    """Each task begins at a random partition, however few its rows are."""
    target = make(partitions=4)
    frame = lake.spark.range(0, 24, 1, 24).selectExpr("id", "'a' AS name", "0.5D AS amount")
    frame.writeTo(target.table).append()
    assert len({partition for (partition,) in target.rows("__partition")}) > 1


def test_types_of_a_new_topic(lake: PulsarLake, make: Make, namespace: str) -> None:
    target = make("texts", "c VARCHAR(10), d CHAR(3)")
    lake.spark.sql(f"INSERT INTO {target.table} VALUES ('longer than ten', 'd')")
    assert target.rows("c", "d") == [("longer than ten", "d")]
    for kind, name in (("VARIANT", "variant"), ("INTERVAL MONTH", "interval month")):
        with pytest.raises(AnalysisException, match=f"column 'c' is {name}, which no field") as no:
            lake.spark.sql(f"CREATE TABLE pulsar.`{namespace}`.none (c {kind})")
        assert len(str(no.value).splitlines()) == 1
    with pytest.raises(AnalysisException, match="metadata columns alone has no payload"):
        lake.spark.sql(f"CREATE TABLE pulsar.`{namespace}`.none AS SELECT 'k' AS __key")


def test_metadata_columns_of_any_case(lake: PulsarLake, make: Make) -> None:
    target, routed = make(), make("routed")
    frame = numbers(lake, 1).selectExpr("*", "'k' AS __KEY")
    frame.writeTo(target.table).append()
    frame = frame.selectExpr("*", f"'{routed.topic}' AS __Topic")
    frame.write.format("pulsar").mode("append").save()
    assert target.rows("id", "__key") == routed.rows("id", "__key") == [(0, "k")]


def test_create_table_as_select(lake: PulsarLake, lake_config: object, namespace: str) -> None:
    target = Target(lake_config, namespace, "made")  # type: ignore[arg-type]
    lake.spark.sql(
        f"CREATE TABLE {target.table} TBLPROPERTIES ('schemaType'='JSON', 'partitions'='3') AS "
        "SELECT id, struct(id AS n, array('a', NULL) AS l) AS s, 'k' AS __key FROM range(5)"
    )
    found = sorted(target.rows("id", "s", "__key"))
    assert found == [(n, {"n": n, "l": ["a", None]}, "k") for n in range(5)]
    lake.spark.sql(f"CREATE TABLE IF NOT EXISTS {target.table} (id INT)")
    with pytest.raises(AnalysisException, match="already exists"):
        lake.spark.sql(f"CREATE TABLE {target.table} (id INT)")


def test_properties_of_a_new_topic(
    lake: PulsarLake, make: Make, admin: Admin, namespace: str
) -> None:
    target = make("kept", partitions=4, retentionTime="2d", retentionSize="3g")
    assert len(admin.partitions(target.topic)) == 4
    primitive = make("plain", "value INT", partitions=0, schemaType="INT32")
    lake.spark.sql(f"INSERT INTO {primitive.table} VALUES (5)")
    assert primitive.rows("value") == [(5,)]
    with pytest.raises(AnalysisException, match=r"no property partition \(did you mean"):
        lake.spark.sql(
            f"CREATE TABLE pulsar.`{namespace}`.x (i INT) TBLPROPERTIES('partition'='2')"
        )


def test_tombstones(lake: PulsarLake, make: Make) -> None:
    target = make()
    lake.spark.sql(f"INSERT INTO {target.table} (id, __key) VALUES (1, 'a'), (2, 'b')")
    lake.spark.sql(f"INSERT INTO {target.table} (__key, __tombstone) VALUES ('a', true)")
    lake.spark.sql(f"INSERT INTO {target.table} (__key) VALUES ('b')")  # a record of NULLs
    found = {
        tuple(row) for row in lake.spark.sql(f"SELECT __key, id FROM {target.compacted}").collect()
    }
    assert found == {("b", None)}


def test_an_unknown_topic(lake: PulsarLake, namespace: str) -> None:
    table = f"pulsar.`{namespace}`.nothing"
    for statement in ("VALUES (1)", "(id) VALUES (1)", "BY NAME SELECT 1 AS id"):
        with pytest.raises(AnalysisException) as refused:
            lake.spark.sql(f"INSERT INTO {table} {statement}")
        assert str(refused.value).startswith(
            f"topic {namespace}/nothing does not exist (CREATE TABLE makes one)"
        )
        assert "$" not in str(refused.value)
    with pytest.raises(AnalysisException, match=r"does not exist .CREATE TABLE makes one"):
        numbers(lake, 1).writeTo(table).append()
    frame = numbers(lake, 1).write.format("pulsar").option("topic", f"{namespace}/nothing")
    with pytest.raises(PySparkException, match=r"does not exist .CREATE TABLE makes one"):
        frame.mode("append").save()


def test_columns_that_the_schema_lacks(lake: PulsarLake, make: Make) -> None:
    target = make()
    frame = numbers(lake, 2).withColumnRenamed("name", "title").write.format("pulsar")
    frame = frame.option("topic", target.topic).mode("append")
    with pytest.raises(AnalysisException, match=r"column .title. \(string\) is not in the schema"):
        frame.save()
    frame.option("mergeSchema", "true").save()
    assert sorted(target.rows("id", "title", "name")) == [(0, "n0", None), (1, "n1", None)]


def test_a_row_that_does_not_fit_behind_others(lake: PulsarLake, make: Make) -> None:
    """Sent at once, those before it are there, and the error says that they may be."""
    target = make("small", "id INT", partitions=1)
    frame = lake.spark.range(0, 200_000, 1, 1).selectExpr("IF(id = 199999, 5000000000, id) AS id")
    with pytest.raises(PySparkException, match="rows before it may have been sent"):
        writer = frame.writeTo(target.table).option("delivery", "at-least-once")
        writer.option("compression", "none").append()
    assert 0 < len(target.ids()) < 200_000


def test_a_row_that_does_not_fit(lake: PulsarLake, make: Make) -> None:
    """An error of its own, and nothing of the statement is sent."""
    target = make("small", "id INT", partitions=1)
    frame = lake.spark.range(10_000).selectExpr("IF(id = 9999, 5000000000, id) AS id")
    with pytest.raises(PySparkException) as failed:
        frame.writeTo(target.table).append()
    ours = error_of(failed.value)
    assert ours is not None
    assert "5000000000 is out of the range of int" in ours.message
    lines = str(failed.value).splitlines()
    assert len(lines) == 3  # what Spark says first, the error, and the same as JSON
    assert lines[1].endswith(str(ours))
    assert target.ids() == []


def test_options_of_no_use(lake: PulsarLake, make: Make) -> None:
    target = make()
    for option, value, told in (
        ("topics", "a", r"no option topics \(did you mean topic\?\)"),
        ("delivery", "transaction", "option delivery: not one of its values"),
        ("compression", "rar", "option compression: not one of its values"),
        ("batchingMaxMessages", "0", "option batchingMaxMessages"),
        ("encryptionKeys", "nobody", "there is no public key 'nobody'"),
        ("config", "/elsewhere.toml", "settings of Pulsar cannot be chosen by an option"),
    ):
        with pytest.raises(AnalysisException, match=told) as refused:
            numbers(lake, 1).writeTo(target.table).option(option, value).append()
        assert len(str(refused.value).splitlines()) == 1
    assert target.ids() == []


def test_by_position_as_the_topic_is_described(
    lake: PulsarLake, lake_config: Config, admin: Admin, cluster: Cluster, namespace: str
) -> None:
    """A field is added in the middle, and names differ only by letters that Spark compares."""
    topic = admin.create_topic(f"{namespace}/grown", partitions=1)
    target = Target(lake_config, namespace, "grown")
    members = [{"name": name, "type": "int"} for name in ("s", "\u017f")]
    pair = {"type": "record", "name": "P", "fields": members}
    for names in (["id", "kis"], ["id", "country", "k\u0131s", "kis"]):
        fields: list[dict[str, Any]] = [
            {"name": name, "type": ["null", "string"], "default": None} for name in names
        ]
        schema = json_schema(
            {"type": "record", "name": "R", "fields": [*fields, {"name": "p", "type": pair}]}
        )
        row = {name: f"{name} 1" for name in names} | {"p": {"s": 1, "\u017f": 2}}
        publish(cluster.service_url, topic, [row], schema=schema)
    columns = ["id", "kis", "p", "country", "k\u0131s_2"]
    described = [row[0] for row in lake.spark.sql(f"DESCRIBE {target.table}").collect()]
    assert described[:5] == columns
    values = "'2', 'b', named_struct('s', 3, 't', 4), 'c', 'd'"
    lake.spark.sql(f"INSERT INTO {target.table} VALUES ({values})")
    named = "id, kis, p.s, p.`\u017f_2`, country, `k\u0131s_2`"
    found = lake.spark.sql(f"SELECT {named} FROM {target.table} WHERE id = '2'").collect()
    assert [tuple(row) for row in found] == [("2", "b", 3, 4, "c", "d")]
    everything = lake.spark.sql(f"SELECT *, __error FROM {target.table}").collect()
    assert [row["__error"] for row in everything] == [None] * 3
