"""SQL over a topic with DuckDB: the busiest producers of the last week, and nothing of Spark.

    python examples/query_duckdb.py lake.toml public/default/orders

A scan is one snapshot and is read once; for several queries `CREATE TABLE … AS` keeps its rows.
"""

import sys
from datetime import UTC, datetime, timedelta

import duckdb

from reader import open_topic

config, name = sys.argv[1:]
week = datetime.now(UTC) - timedelta(days=7)
with open_topic(config, name) as topic:
    # Columns and times are given here, where they prune; DuckDB sees only the rows.
    messages = topic.scan(["__producerName", "__publishTime", "__error"], start=week)
    busiest = duckdb.sql("""
        SELECT __producerName AS producer, count(*) AS messages,
               count(__error) AS undecoded, epoch_ms(max(__publishTime)) AS last
        FROM messages GROUP BY producer ORDER BY messages DESC LIMIT 10
    """)
    print(busiest)
