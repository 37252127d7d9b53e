"""The contenders: the product as its users query it, and what one would use without it.

    source       the product's reader without Spark, in this process
    queries      Spark SQL: rows to be compared, scans whose rows are counted on the way
    streams      streaming queries to nowhere, their rows counted on the way
    plain_spark  a PySpark script over Parquet files
    new_process  a query in a new process
    arrow_scan   `scan()` to Arrow and pyarrow.dataset, also in a new process
    peers        `pulsar-client`, Pulsar's Java client (`java/`), pyarrow

Cases measure them; nothing here measures time.
"""
