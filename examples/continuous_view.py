"""A continuous view in a topic: of each key, how many messages it has and when the last one came.

    python examples/continuous_view.py lake.toml public/default/orders public/default/order-keys

In update mode a key that a micro-batch has changed is one more message, with that key. So the
latest message of each key is the view, `order-keys$compacted`, for SQL here and for any compacted
reader of Pulsar. Run again, it goes on where it was.

Exactly once: offsets and counts are in the checkpoint, and what a micro-batch writes is staged
below `storage.uri` before it is sent. Killed at any point and run again, it sends the same bytes,
of which the broker drops what it has already.
"""

import sys

from pyspark.sql import functions

from spark_ext import PulsarLake


def table(topic: str) -> str:
    """Its name in SQL."""
    namespace, _, name = topic.rpartition("/")
    return f"pulsar.`{namespace}`.`{name}`"


config, source, target = sys.argv[1:]
with PulsarLake(config) as lake:
    lake.spark.sql(f"CREATE TABLE IF NOT EXISTS {table(target)} (messages BIGINT, last TIMESTAMP)")
    changes = (
        lake.spark.readStream.option("startingPosition", "earliest")
        .table(table(source))
        .where("__key IS NOT NULL")
        .groupBy("__key")
        .agg(functions.count("*").alias("messages"), functions.max("__publishTime").alias("last"))
    )
    query = (
        changes.writeStream.outputMode("update")
        .option("checkpointLocation", f"{target.replace('/', '_')}.checkpoint")
        .trigger(availableNow=True)  # processingTime="5 seconds" goes on for ever
        .toTable(table(target))
    )
    query.awaitTermination()
    view = table(target).removesuffix("`") + "$compacted`"
    lake.spark.sql(f"SELECT __key, messages, last FROM {view} ORDER BY messages DESC").show()
