"""The command line ``pulsar-lake``: one file for each subcommand.

    app             puts the subcommands together; exit codes
    check           whether all that is needed is as it has to be
    head            a topic's first messages
    init            writes a settings file, and checks it
    maintain        compaction, expiry and vacuum, now
    message_output  what head and tail print
    offload         the daemon, or one round
    options         options that several subcommands share
    render          rows to standard output: table, JSON, CSV
    results         results of queries, batch by batch: to a stream or a file
    segments        every segment of a topic
    setup           jars and kernels, which the first query would wait for
    shell           the shell of ``sql``, and how its statements run
    sql             queries over topics: one, a file of them, or a shell
    status          how far each topic is
    tail            a topic's last messages, and those that come

Everything heavy (Spark, decoders) is imported when a subcommand runs.

Imports ``web``, ``check``, ``service``, ``maintenance``, ``iceberg``, ``schedule``,
``model``, ``config``, ``spark_ext`` and ``reader``; nothing imports it.
"""
