"""What is published to be measured.

    events     the rows, made up from a seed in columns
    encode     columns to payloads, JSON and Avro, a batch at a time
    topics     what is published, each topic once a run and only if a case asks for it
    load       publishes at a steady rate, in a process of its own
    simulated  topics and ledgers, very many, that only admin answers and a table's log know of

Knows nothing of cases and measurements.
"""
