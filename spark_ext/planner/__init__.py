"""The planner: the process that answers the JVM, and the plans of a query's topics.

    relations       what a name stands for: a topic's snapshot as a view, its halves as tables
    cold_tables     a version of a topic's table: its files and what the log knows of its rows
    process         the process behind the shim: one line of JSON in, one line of JSON out
    streams         streams of topics: how far a batch goes, and what its halves read
    sinks           writes to topics: what tasks stage, what is decided and sent
    sink_columns    columns of rows that are written, out of Spark's types
    topic_names     which topic a namespace and a name stand for
    column_changes  what a topic has got since a query was started
    query_plans     the plans of the topics in a query, out of Spark's own plan of it

No row is read here. Imports ``reader`` and, of this package, ``datasource``, ``ddl``,
``predicates``, ``session`` and ``without_pandas``.
"""

__all__: list[str] = []
