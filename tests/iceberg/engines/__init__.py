"""Other engines, as programs in environments of their own.

environments  the environments and jars, fetched once, and what runs a program in one
duckdb_rows   a program of DuckDB's environment: all rows by the pointer, or conditions
spark_rows    a program of Spark 4.1's environment, which answers requests (``SparkEngine``)
"""

from tests.iceberg.engines.environments import (
    DUCKDB,
    H2_JAR,
    ICEBERG_JAR,
    SparkEngine,
    fetched_jar,
    rows_by,
    run_by,
)

__all__ = ["DUCKDB", "H2_JAR", "ICEBERG_JAR", "SparkEngine", "fetched_jar", "rows_by", "run_by"]
