"""All rows of an Iceberg table by Spark 4.1 with Iceberg's runtime.

``{"jar": file, "conf": {…}, "table": name or directory, "out": directory}``; ``sql`` before it, or
the rows of a ``query`` in place of a table's.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    given = json.loads(sys.argv[1])
    builder = SparkSession.Builder().master("local[2]").config("spark.jars", given["jar"])
    plain = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for name, value in {**plain, **given.get("conf", {})}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for text in given.get("sql", ()):
        spark.sql(text).collect()
    if "query" in given:
        rows = spark.sql(given["query"])
    elif "/" in given["table"]:
        rows = spark.read.format("iceberg").load(given["table"])
    else:
        rows = spark.table(given["table"])
    rows.coalesce(1).write.parquet(given["out"])
    spark.stop()


if __name__ == "__main__":
    main()
