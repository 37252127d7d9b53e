"""The data that the cases publish.

    events     the rows, made up from a seed in columns
    layouts    the kinds of cluster that topics are published to
    encode     columns to payloads, JSON and Avro, a batch at a time
    topics     the published topics, each once a run and only if a case needs it
    load       publishes at a steady rate, in a process of its own
    wide_table  a table of very many files that exist only in its log

Independent of cases and measurements.
"""
