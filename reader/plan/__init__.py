"""From a topic to what a query reads of it: snapshot, then plan. Values, and who makes them.

    snapshot        Snapshot, take_snapshot: ledgers, end positions, schemas, table version
    snapshot_token  a snapshot's hot half as one token, safe in an identifier
    tier_choice     where a tier is chosen: a partition's ledgers as segments
    data_loss       messages that Pulsar deleted before they were offloaded
    plan            Plan, make_plan: each segment's tier, why, whether and what is read of it
    pruning         what predicates on partition, ledger and publish time leave out
    publish_times   publish times that reads have learned, kept from query to query
    offloaded       the segments that the table holds, by its log, its rows or its files
    cold_files      the table's files, and which of them are read
    splitting       segments cut into splits, and splits put together for tasks

Nothing here reads a row for its own sake: that is ``reader.sources``'s. Imports ``reader.config``,
``reader.errors``, ``reader.model``, ``reader.payload``, ``reader.private_keys``,
``reader.pulsar``, ``reader.storage`` and ``reader.table``.
"""

__all__: list[str] = []
