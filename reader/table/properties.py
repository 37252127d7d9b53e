"""Properties of a table (``metaData.configuration`` of the Delta protocol) that are ours."""

CLUSTER_KEY = "pulsarlake.cluster"
"""The name of the cluster that the table was filled from, or ""."""

CREATED_KEY = "pulsarlake.created."
"""+ a partition's full name: its managed ledger's creation time, as Pulsar prints it."""

PARTITIONS_KEY = "pulsarlake.partitions"
"""JSON: the creation time, as Pulsar prints it, of each managed ledger that the topic had when the
table was made; the key is the partition's index."""

SCHEMAS_KEY = "pulsarlake.schemas"
"""The schema versions that the table remembers (``remembered_schemas``)."""
