"""Spark SQL as the cases use it: rows to be compared, scans whose rows are counted on the way."""

import re
from typing import Any

from benchmarks.data.topics import Published


def topic_table(topic: Published) -> str:
    tenant, namespace, name = topic.name.split("/")
    return f"pulsar.`{tenant}/{namespace}`.`{name}`"


def collected(spark: Any, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return [tuple(row) for row in spark.sql(text).collect()]


def scanned(spark: Any, text: str) -> tuple[int, int]:
    """Run a query that has a column `id`, and throw its rows away: (rows, sum of ids)."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sf

    seen = Observation()
    counted = (sf.count(sf.lit(1)).alias("rows"), sf.sum("id").alias("ids"))
    spark.sql(text).observe(seen, *counted).write.format("noop").mode("overwrite").save()
    found = seen.get
    return int(found["rows"]), int(found["ids"] or 0)


def plan(spark: Any, text: str) -> str:
    """The physical plan, without what differs from query to query: ids of columns and of nodes."""
    frame = spark.sql(text)
    found = str(frame._jdf.queryExecution().executedPlan().toString())
    return re.sub(r"#\d+L?|plan_id=\d+|\[id=[^\]]*\]", "", found)
