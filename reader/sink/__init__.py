"""Writing rows to topics, each once: staged, decided, sent.

options         what a write may be told
target          the topic: partitions, schema, whether rows fit
row_writer      rows to entries, each to its topic and partition
staging         where entries are staged, and read again
staged_entries  codec of staged entries
manifest        what a write sends, decided once
writes          a write's name, its versions and their manifests
sending         one partition's entries sent, each once
direct          entries sent at once, at least once
deduplication   that brokers drop what they have
"""

from __future__ import annotations
