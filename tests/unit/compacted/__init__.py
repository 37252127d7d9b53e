"""What Pulsar's compaction has kept: what is read of it, and its rows."""
