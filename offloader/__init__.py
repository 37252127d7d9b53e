"""The offloader: sealed ledgers become Parquet files of a topic's Delta table.

    config        settings: ``[offload]`` and ``[http]`` beside those of the packages below

    model         values that the other packages share
    output        what is written, and the interface of what writes it
    parquet       Arrow batches to the Parquet files of a table
    commit        files to a version of a table: appends, replacements, retries, schema changes
    convert       sealed ledgers to files, as Spark jobs
    subscription  the hold, retention checks, lost messages
    backlog       what of a topic is not in its table, and which of it is due
    iceberg       each table as an Iceberg table, which follows
    maintenance   compaction, expiry, vacuum
    turn          one topic's turn: hold, plan, convert, commit, release
    schedule      which topic has a turn, and when
    service       the daemon, its log, metrics and status
    web           status page, API, health and metrics over HTTP
    check         whether servers, storage and machine are as they have to be
    cli           the command line ``pulsar-lake``

Each imports only what stands above it. The whole imports reader and spark_ext, and nothing imports
it. The invariants and how they are kept: ``docs/architecture.md``.
"""
