"""The command line ``pulsar-lake``: one file each subcommand.

    app       puts the subcommands together; exit codes
    maintain  compaction, expiry and vacuum, now
    offload   the daemon, or one round
    options   options that several subcommands share
    render    rows to standard output: table, JSON, CSV
    segments  every segment of a topic
    sql       one query over topics
    status    how far each topic is

Everything heavy (Spark, decoders) is imported when a subcommand runs.

Imports ``web``, ``service``, ``maintenance``, ``schedule``, ``model``, ``config``,
``spark_ext`` and ``reader``; nothing imports it.
"""

__all__: list[str] = []
