"""Writing rows to topics, each once: staged, decided, sent.

    options         what a write may be told
    target          the topic: partitions, schema, whether rows fit
    topics          topics made, deleted, given new columns
    row_writer      rows to entries, each to its topic and partition
    staging         where entries are staged, and read again
    staged_entries  codec of staged entries
    manifest        what a write sends, decided once
    writes          a write's name, its versions and their manifests
    sending         one partition's entries sent, each once
    direct          entries sent at once, at least once
    deduplication   that brokers drop what they have
    key_files       the keys for which entries are sealed

Imports what stands below it: ``reader.scan``, by which what was sent is found again,
``reader.clients``, ``reader.encode``, ``reader.pulsar``, ``reader.storage`` and values.
"""

from __future__ import annotations

from reader.sink.deduplication import require_deduplication
from reader.sink.direct import DirectSender
from reader.sink.key_files import public_keys
from reader.sink.manifest import Manifest, PartitionEntries
from reader.sink.options import Delivery, SinkOptions
from reader.sink.row_writer import RowWriter
from reader.sink.sending import send_partition
from reader.sink.staged_entries import StagedFile
from reader.sink.staging import StagingWriter, inline_of
from reader.sink.target import Target, resolve_target
from reader.sink.topics import create_topic, drop_topic, grow_schema
from reader.sink.writes import NamedWrite

__all__ = [
    "Delivery",
    "DirectSender",
    "Manifest",
    "NamedWrite",
    "PartitionEntries",
    "RowWriter",
    "SinkOptions",
    "StagedFile",
    "StagingWriter",
    "Target",
    "create_topic",
    "drop_topic",
    "grow_schema",
    "inline_of",
    "public_keys",
    "require_deduplication",
    "resolve_target",
    "send_partition",
]
