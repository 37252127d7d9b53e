"""Rows to what a broker stores: the inverse of ``reader.payload`` and ``reader.decode``.

    payload           payload columns to payload bytes, by a topic's schema
    message_metadata  what messages carry beside their payloads: keys, properties, times
    routing           which partition a key goes to
    batches           BatchEncoder: messages of a partition as entries
    batch_kernel      messages of a batch, one after the other
    compression       payloads as blocks of a codec
    encryption        entries sealed for public keys
    base64_spans      bytes as base64

No I/O. Imports only ``reader.model``, ``reader.errors``, ``reader.kernels``, ``reader.wire`` and
``reader.payload``.
"""

from reader.encode.base64_spans import base64_text
from reader.encode.batches import BatchEncoder, EncodedEntry, EntryFormat, stored_payload
from reader.encode.compression import Compression, lz4_block, lz4_bytes
from reader.encode.encryption import Encryption
from reader.encode.message_metadata import (
    WRITABLE,
    MessageColumns,
    check_message_columns,
    message_columns,
)
from reader.encode.payload import (
    FieldDefault,
    PayloadEncoder,
    TargetColumns,
    field_defaults,
    grown_schema,
    new_schema,
    target_columns,
)
from reader.encode.routing import Hashing, key_partitions

__all__ = [
    "WRITABLE",
    "BatchEncoder",
    "Compression",
    "EncodedEntry",
    "Encryption",
    "EntryFormat",
    "FieldDefault",
    "Hashing",
    "MessageColumns",
    "PayloadEncoder",
    "TargetColumns",
    "base64_text",
    "check_message_columns",
    "field_defaults",
    "grown_schema",
    "key_partitions",
    "lz4_block",
    "lz4_bytes",
    "message_columns",
    "new_schema",
    "stored_payload",
    "target_columns",
]
