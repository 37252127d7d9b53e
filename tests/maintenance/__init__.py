"""Compaction, expiry and vacuum of tables on S3 and on a disk; no Pulsar behind most of them."""
