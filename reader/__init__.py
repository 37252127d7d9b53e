"""What a segment is and how to read one.

    errors      the error tree                      model      topic, partition, ledger, segment
    config      settings                            columns    metadata columns of every table
    admin       Pulsar's admin REST                 storage    one [storage] section, three clients
    bookkeeper  bookies, read directly              broker     the same through pulsar-client
    decode      entries to messages                 payload    payload bytes to typed columns
    rows        messages to rows of the table       table      a topic's Delta table
    snapshot    what one query sees                 splits     what one task reads
    read        a split to Arrow batches            ranges     publish times learned by reading
    token       a snapshot as a name                report     what there is, and what is read of it
    surroundings  entries before a split            closing    what a ``with`` closes

Nothing here imports pyspark, ``spark_ext`` or ``offloader``.
"""
