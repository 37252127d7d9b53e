"""The planner: the process that answers Spark's JVM, and the plans of a query's topics.

    protocol        the table of messages: each question with its answer
    encoding        messages as JSON
    java_messages   messages as records in Java
    process         the process: a line with a question in, a line with its reply out
    dispatch        which part of the planner answers which question
    relations       what a name stands for: a topic's snapshot as a view, its halves as tables
    topic_names     which topic a namespace and a name stand for
    format_options  options of format("pulsar"): the topic that is read, by which settings
    cold_tables     a version of a topic's table: its files and what the log knows of its rows
    predicates      Spark's pushed filters, for pruning
    scans           the tasks of a scan, as Spark's Python workers run them
    streams         streams of topics: how far a batch goes, and what it reads
    column_changes  what a topic has got since a query was started
    sinks           writes to topics: what tasks stage, what is decided and sent
    sink_columns    columns of rows that are written, out of Spark's types
    sink_scans      the tasks of a write, as Spark's Python workers run them
    query_plans     the plans of the topics in a query, out of Spark's own plan of it

No row is read here. Imports ``reader`` and, of this package, ``datasource``, ``ddl``, ``session``
and ``without_pandas``.
"""
