"""`python plain_spark.py QUERY FILE …`: a query over Parquet files, as one writes it in PySpark.

With nothing of the product: Spark's own settings, the files as the view `t`, the answer shown.
"""

import sys

from pyspark.sql import SparkSession

query, *files = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark.read.parquet(*files).createOrReplaceTempView("t")
spark.sql(query).show(100)
