"""Answers of Spark 4.1 with Iceberg's runtime, of which the argument is the jar.

Each line of standard input is a request, answered by a line: an error as JSON, or ``null``. A
request has a session of its own: ``{"conf": {…}, "table": name or directory, "out": directory}``;
``sql`` before it, or the rows of a ``query`` in place of a table's. With ``conditions`` and
``files``: instead, for each condition, which rows fulfil it, of the table and of the Parquet files;
and of each of ``columns`` the least, the greatest, and how many there are. ``skipping``: conditions
for which Spark may skip row groups of the files, too.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def answers(spark: SparkSession, given: dict[str, Any]) -> DataFrame:
    sources = {
        "iceberg": spark.table(given["table"]),
        "parquet": spark.read.option("mergeSchema", "true").parquet(*given["files"]),
    }
    conditions = [one.replace("{moment}", "TIMESTAMP") for one in given["conditions"]]
    ids = ("__ledgerId", "__entryId")
    # Of the files, each row is asked for all conditions: there nothing is skipped, but for those
    # of which it is Spark's own skipping that counts.
    told = [f"({one}) AS c{number}" for number, one in enumerate(conditions)]
    whole = sources["parquet"].selectExpr(*ids, *told).collect()
    found = []
    for number, condition in enumerate(conditions):
        rows = sources["iceberg"].where(condition).select(*ids).collect()
        expected = [row for row in whole if row[f"c{number}"]]
        if given["conditions"][number] in given["skipping"]:
            expected = sources["parquet"].where(condition).select(*ids).collect()
        for name, some in (
            ("iceberg", [tuple(row) for row in rows]),
            ("parquet", [tuple(row[:2]) for row in expected]),
        ):
            text = " ".join(f"{ledger}:{entry}" for ledger, entry in sorted(some))
            found.append((number, name, len(some), text))
    for name, source in sources.items():
        for number, column in enumerate(given["columns"], start=len(given["conditions"])):
            [row] = source.selectExpr(
                f"min({column}) AS a", f"max({column}) AS b", f"count({column}) AS c"
            ).collect()
            found.append((number, name, row["c"], f"{row['a']} {row['b']}"))
    return spark.createDataFrame(found, "condition INT, source STRING, rows BIGINT, found STRING")


def answer(spark: SparkSession, given: dict[str, Any]) -> None:
    for name, value in given.get("conf", {}).items():
        spark.conf.set(name, value)
    for text in given.get("sql", ()):
        spark.sql(text).collect()
    if "conditions" in given:
        rows = answers(spark, given)
    elif "query" in given:
        rows = spark.sql(given["query"])
    elif "/" in given["table"]:
        rows = spark.read.format("iceberg").load(given["table"])
    else:
        rows = spark.table(given["table"])
    rows.coalesce(1).write.parquet(given["out"])


def main() -> None:
    builder = SparkSession.Builder().master("local[2]").config("spark.jars", sys.argv[1])
    plain = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for name, value in plain.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        error = None
        try:
            answer(spark.newSession(), json.loads(line))
        except Exception as caught:  # noqa: BLE001 - it is the test's
            error = repr(caught)
        print(f"answer {json.dumps(error)}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
