"""A topic as a pandas DataFrame: when each producer sent what can be decoded; nothing of Spark.

    python examples/query_pandas.py lake.toml public/default/orders

Without a memory for all rows, take batch after batch: `for batch in topic.scan(…)`.
"""

import sys

import pyarrow.compute as pc

from reader import open_topic

config, name = sys.argv[1:]
with open_topic(config, name) as topic:
    decoded = topic.scan(["__producerName", "__publishTime"], filter=pc.field("__error").is_null())
    messages = decoded.read_pandas()
producers = messages.groupby("__producerName")["__publishTime"].agg(["count", "min", "max"])
print(producers.to_string())
