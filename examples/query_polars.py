"""A topic as a Polars DataFrame: messages an hour, by partition, and nothing of Spark.

python examples/query_polars.py lake.toml public/default/orders
"""

import sys

import polars as pl

from reader import open_topic

config, name = sys.argv[1:]
with open_topic(config, name) as topic:
    messages = pl.DataFrame(topic.scan(["__partition", "__publishTime"]))
hours = (
    messages.group_by(pl.col("__publishTime").dt.truncate("1h").alias("hour"), "__partition")
    .len("messages")
    .sort("hour", "__partition")
)
print(hours)
