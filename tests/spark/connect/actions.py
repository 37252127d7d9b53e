"""What a client of Spark Connect does: pyspark alone, nothing of this project, no JVM.

Each takes the session and texts, and gives what JSON can hold.
"""

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tests.spark.connect.rows_as_json import union

Rows = list[list[Any]]


def rows(frame: DataFrame) -> Rows:
    """Of a batch query."""
    return [list(row) for row in frame.collect()]


def sql(spark: SparkSession, text: str) -> Rows:
    """The rows of a statement."""
    return rows(spark.sql(text))


def filtered(spark: SparkSession, table: str, condition: str) -> Rows:
    """Two columns of a DataFrame, in order."""
    return rows(spark.table(table).where(condition).select("id", "customer").orderBy("id"))


def configure(spark: SparkSession, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        spark.conf.set(name, value)


def whole_rows(spark: SparkSession, tables: list[str]) -> Rows:
    """Of many tables by one query: each row as its topic and JSON."""
    return rows(union(map(spark.table, tables)))


def of_format(spark: SparkSession, topic: str) -> Rows:
    """Without the catalog."""
    return rows(spark.read.format("pulsar").option("topic", topic).load().selectExpr("sum(id)"))


def one_frame_often(spark: SparkSession, table: str, times: int) -> Rows:
    """Of each action on one DataFrame: how many rows it has, by two references to it."""
    frame = spark.table(table).select("id")
    both = frame.selectExpr("id", "'a' AS side").unionAll(frame.selectExpr("id", "'b' AS side"))
    counts = both.groupBy().pivot("side", ["a", "b"]).count()
    return [rows(counts)[0] for _ in range(times)]


def name_rows(spark: SparkSession, table: str, view: str) -> None:
    """A temporary view of a DataFrame."""
    spark.table(table).createOrReplaceTempView(view)


def numbers(spark: SparkSession, first: int, stop: int) -> DataFrame:
    """Orders that are made on the server."""
    return spark.range(first, stop).selectExpr(
        "id", "concat('c', id % 7) AS customer", "id * 0.5D AS amount"
    )


def write_to(spark: SparkSession, table: str, first: int, stop: int) -> None:
    numbers(spark, first, stop).writeTo(table).append()


def write_named(spark: SparkSession, table: str, first: int, stop: int, option: str) -> None:
    """With an option."""
    numbers(spark, first, stop).writeTo(table).option(option, "zstd").append()


def insert_into(spark: SparkSession, table: str, first: int, stop: int) -> None:
    """Of rows that are the client's own."""
    own = [(one, f"c{one % 7}", one * 0.5) for one in range(first, stop)]
    frame = spark.createDataFrame(own, "id bigint, customer string, amount double")
    frame.write.insertInto(table)


def _stream(spark: SparkSession, table: str, **options: Any) -> DataFrame:
    given = {"startingPosition": "earliest", **options}
    return spark.readStream.options(**given).table(table)


def stream_to_files(spark: SparkSession, table: str, folder: str) -> Rows:
    """All that there is, in files; run again with the same folder it goes on."""
    writer = _stream(spark, table).select("id", "customer").writeStream.format("parquet")
    query = (
        writer.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{folder}/rows")
    )
    assert query.awaitTermination(120)
    return rows(spark.read.parquet(f"{folder}/rows").select("id"))


def stream_to_memory(spark: SparkSession, table: str) -> Rows:
    """A sink in the server, and what the query's progress says of the rows."""
    query = (
        _stream(spark, table)
        .groupBy("customer")
        .count()
        .writeStream.format("memory")
        .queryName("by_customer")
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    progress = query.recentProgress
    read = sum(int(one["sources"][0]["numInputRows"]) for one in progress)
    return [[read], *rows(spark.table("by_customer"))]


def stream_to_function(spark: SparkSession, table: str, folder: str) -> list[int]:
    """A function of the client, for each micro-batch; it writes how many rows came how often."""

    def note(batch: DataFrame, number: int) -> None:
        ids = [row.id for row in batch.collect()]
        Path(folder, f"{number}.ids").write_text(" ".join(map(str, ids)))

    query = (
        _stream(spark, table, maxMessagesPerTrigger=200)
        .writeStream.foreachBatch(note)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    return sorted(int(one.stem) for one in Path(folder).glob("*.ids"))


def stream_to_topic(spark: SparkSession, table: str, target: str, folder: str) -> None:
    """Run again with the same folder it goes on."""
    columns = _stream(spark, table).select("id", "customer", "amount")
    query = (
        columns.writeStream.option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .toTable(target)
    )
    assert query.awaitTermination(120)


def stream_with(spark: SparkSession, table: str, option: str) -> None:
    """With an option that is not checked before."""
    _stream(spark, table, **{option: "1"}).writeStream.format("noop").start().stop()


def choose_settings(spark: SparkSession, url: str, key: str, value: str) -> Rows:
    """Of a session that has not used them yet."""
    other = SparkSession.builder.remote(url).create()
    try:
        other.conf.set(key, value)
        return sql(other, "SHOW NAMESPACES IN pulsar")
    finally:
        other.stop()
