"""Writing rows to topics, each once: staged, decided, sent.

    sink_options     what a write may be told, and the keys for which entries are sealed
    target           the topic: partitions, schema, whether rows fit
    topics           topics made, deleted, given new columns
    rows_to_entries  rows to entries, each to its topic and partition
    staging          where entries are staged, and read again
    staged_entries   codec of staged entries
    manifest         what a write sends, decided once
    writes           a write's name, its versions and their manifests
    sending          one partition's entries sent, each once
    arrived          what of it is in the topic already
    direct           entries sent at once, at least once
    deduplication    that brokers drop what they have, how long they remember it, when they err

Imports ``reader.clients``, ``reader.scan``, by which what was sent is found again,
``reader.plan``, ``reader.encode``, ``reader.pulsar``, ``reader.storage``, ``reader.config``,
``reader.model``, ``reader.errors``, ``reader.wire``, ``reader.kernels``, ``reader.prefetch`` and
``reader.closing``.
"""

from reader.sink.deduplication import refusal_path, require_deduplication
from reader.sink.direct import DirectSender
from reader.sink.manifest import Manifest
from reader.sink.rows_to_entries import EntrySink, RowWriter, require_topic_column
from reader.sink.sending import PartitionTask, send_partition
from reader.sink.sink_options import Delivery, SinkOptions, public_keys
from reader.sink.staged_entries import StagedFile
from reader.sink.staging import ABANDONED_SECONDS, STAGING, StagingWriter
from reader.sink.target import Target, require_producer, resolve_target
from reader.sink.topics import create_topic, drop_topic, grow_schema
from reader.sink.writes import NamedWrite, unsent_manifests

__all__ = [
    "ABANDONED_SECONDS",
    "STAGING",
    "Delivery",
    "DirectSender",
    "EntrySink",
    "Manifest",
    "NamedWrite",
    "PartitionTask",
    "RowWriter",
    "SinkOptions",
    "StagedFile",
    "StagingWriter",
    "Target",
    "create_topic",
    "drop_topic",
    "grow_schema",
    "public_keys",
    "refusal_path",
    "require_deduplication",
    "require_producer",
    "require_topic_column",
    "resolve_target",
    "send_partition",
    "unsent_manifests",
]
