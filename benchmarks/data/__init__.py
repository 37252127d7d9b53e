"""The data that the cases publish.

    events     the rows, made up from a seed in columns
    layouts    the kinds of cluster that topics are published to
    encode     columns to payloads, JSON and Avro, a batch at a time
    topics     the published topics, each once a run and only if a case needs it
    load       publishes at a steady rate, in a process of its own
    simulated  very many topics and ledgers that exist only in admin answers and a table's log

Independent of cases and measurements.
"""
