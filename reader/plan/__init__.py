"""Plan.

data_loss            Messages that Pulsar deleted before they were offloaded: found, named,
publish_times        Publish times learned by reading: what lets the planner skip a sealed
segments             Every segment of a topic with its tier and reason, and what a time ran
snapshot             What one query sees: ledgers, end positions, schemas and table version
snapshot_token       A snapshot's hot half as one token, safe in an identifier.
splits               From a snapshot to what Spark tasks read, and why: pruning and splitti
"""

__all__: list[str] = []
