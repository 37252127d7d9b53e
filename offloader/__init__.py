"""The offloader: sealed ledgers become Parquet files of a topic's Delta table.

    policy      which sealed ledgers are due, and why (pure)
    work        what is due, as splits to read and as ledgers to list
    statistics  the zone map of a file, as the Delta log holds it
    parquet     Arrow batches to one Parquet file
    convert     the Spark job: splits to files, of several topics
    jobs        what waits together is one job
    commit      files and watermarks into the Delta log, in one commit
    hold        the durable subscription that keeps Pulsar from trimming
    turn        one topic's turn: hold, plan, convert, commit, release
    look        what is known of a topic between two looks at it (pure)
    line        which topic is next, and when (pure)
    scheduler   the loop: rounds, turns side by side     request     one that somebody waits for
    daemon      the process around it
    discover    which topics there are     patterns    names with wildcards, overrides (pure)
    signals     the first one drains, the second ends
    report      what the daemon says       state       what it last failed with
    status      what the log and Pulsar say about each topic
    cli         the command line; one file a sub-command in ``commands/``; ``render``: its output
    killpoint   tests only

Imports reader and spark_ext; nothing imports it. Invariants: ``docs/``.
"""

__all__: list[str] = []
