"""The command line ``pulsar-lake``: a file for each subcommand.

    app             puts the subcommands together; exit codes
    check           whether all that is needed is as it has to be
    init            writes a settings file, and checks it
    maintain        compaction, expiry and vacuum, now
    offload         the daemon, or one round
    options         options that several subcommands share
    render          rows to standard output: table, JSON, CSV
    results         results of queries, batch by batch: to a stream or a file
    segments        every segment of a topic
    setup           jars and kernels, which the first query would wait for
    shell           the shell of ``sql``, and how its statements run
    sql             queries over topics: one, a file of them, or a shell
    status          how far each topic is
    topic_messages  ``head`` and ``tail``: a topic's first and last messages, and those that come

Everything heavy (Spark, decoders) is imported when a subcommand runs.

Imports ``web``, ``check``, ``service``, ``convert``, ``maintenance``, ``iceberg``, ``schedule``,
``model``, ``config``, ``spark_ext`` and ``reader``; nothing imports it.
"""
