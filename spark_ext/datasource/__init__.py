"""Datasource.

batch                ``spark.read.format("pulsar").option("topic", …)``: all tiers of a top
tasks                What Spark's Python workers run: a pack of splits, read one after the
"""

__all__: list[str] = []
