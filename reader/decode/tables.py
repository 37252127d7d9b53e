"""The tables between the passes: names of their fields, kinds of entries, reasons, bounds.

Every pass reads and writes plain int64 tables, field-major: ``entries[FIELD, i]`` describes entry i
of a block, ``rows[FIELD, r]`` the r-th row of a group of entries.

An *offset* in a table says where bytes lie: ``o >= 0`` is ``arena[o]``, the raw entries; ``o < 0``
is ``inflated[~o]``, the decompressed payloads of the group. A *length* of -1 means "no value". A
time is in µs since the epoch, ``NO_TIME`` where there is none. A *soft* reason concerns one
metadata value of a row that is otherwise complete.
"""

from typing import Final

from reader.model.columns import FIRST_MILLIS, LAST_MILLIS
from reader.model.row_kinds import RowKind

# entries[…]
E_KIND: Final = 0
E_REASON: Final = 1
E_FLAGS: Final = 2
E_SOFT: Final = 3
E_PUBLISH: Final = 4
E_BROKER: Final = 5
E_DELIVER: Final = 6
E_EVENT: Final = 7
E_INDEX: Final = 8
E_SEQUENCE: Final = 9
E_MESSAGES: Final = 10  # num_messages_in_batch
E_COMPRESSION: Final = 11
E_INFLATED: Final = 12  # uncompressed_size
E_PAYLOAD: Final = 13
E_PAYLOAD_LENGTH: Final = 14
E_PRODUCER: Final = 15
E_PRODUCER_LENGTH: Final = 16
E_REPLICATED: Final = 17
E_REPLICATED_LENGTH: Final = 18
E_KEY: Final = 19
E_KEY_LENGTH: Final = 20
E_ORDERING: Final = 21
E_ORDERING_LENGTH: Final = 22
E_SCHEMA: Final = 23  # schema version, -1: none
E_METADATA: Final = 24
E_METADATA_LENGTH: Final = 25
E_PROPERTIES: Final = 26  # how many, -1: not known
E_TARGET: Final = 27  # position in ``inflated`` for the payload
E_MARKER: Final = 28  # marker_type, of markers
E_TXN_MOST: Final = 29
E_TXN_LEAST: Final = 30
E_UUID: Final = 31  # of the message that a chunk is part of
E_UUID_LENGTH: Final = 32
E_CHUNK: Final = 33  # chunk_id
E_CHUNKS: Final = 34  # num_chunks_from_msg
E_ROW_BYTES: Final = 35  # what each row of the entry takes beside its message's own bytes
E_BEGIN_LEDGER: Final = 36  # of the first chunk, -1: the entry is no joined message
E_BEGIN_ENTRY: Final = 37
E_FIELDS: Final = 38

# rows[…]
R_ENTRY: Final = 0  # row of ``entries``
R_BATCH: Final = 1  # batch index, -1 outside a batch
R_PAYLOAD: Final = 2
R_PAYLOAD_LENGTH: Final = 3
R_KEY: Final = 4
R_KEY_LENGTH: Final = 5
R_ORDERING: Final = 6
R_ORDERING_LENGTH: Final = 7
R_EVENT: Final = 8
R_SEQUENCE: Final = 9
R_BASE64: Final = 10
R_METADATA: Final = 11  # MessageMetadata, or SingleMessageMetadata inside a batch
R_METADATA_LENGTH: Final = 12
R_PROPERTIES: Final = 13
R_SOFT: Final = 14
R_SIZE: Final = 15  # payload_size inside a batch, also where the value is null
R_FIELDS: Final = 16

# pairs[…]: one property of a message
P_KEY: Final = 0
P_KEY_LENGTH: Final = 1
P_VALUE: Final = 2
P_VALUE_LENGTH: Final = 3
P_KEEP: Final = 4
P_FIELDS: Final = 5

# Where reading of messages goes on.
C_ENTRY: Final = 0  # row of ``entries``
C_MESSAGE: Final = 1  # message of its batch; above 0, the whole batch was checked
C_AT: Final = 2  # where that message begins in its buffer
C_FIELDS: Final = 3

# Up to this many properties of a message, repeated keys are found by comparing all with all.
SMALL_MAP: Final = 32
# No message shows more: an empty one takes 6 bytes of it, and ten times as many as a column.
MAX_PROPERTIES: Final = 1 << 16
MIN_PAIR: Final = 6
# Of a property, in ``pairs`` and in the column beside its own bytes.
PAIR_BYTES: Final = 64

NO_TIME: Final = -(2**63)
MIN_MILLIS: Final = FIRST_MILLIS
MAX_MILLIS: Final = LAST_MILLIS

# E_KIND
MESSAGES: Final = 0  # rows of decoded messages
HIDDEN: Final = 1  # no row: a marker, aborted, or a chunk of a message that is not complete here
BARE: Final = 2  # one rescued row without metadata
WHOLE: Final = 3  # one rescued row with the metadata of the entry
CHUNK: Final = 4  # until the message is joined: no row
OUTSIDE: Final = 5  # of the publish range: no row

# E_FLAGS
IN_BATCH: Final = 1
NULL_VALUE: Final = 2
BASE64: Final = 4
NULL_KEY: Final = 8
HAS_INDEX: Final = 16
IN_TRANSACTION: Final = 32
IS_ENCRYPTED: Final = 64
HAS_OTHER: Final = 128  # fields of MessageMetadata without a column
HAS_OTHER_INSIDE: Final = 256  # such fields in a message of its batch

# What ``scan_entries`` has seen, as bits.
SEEN_CHUNK: Final = 1
SEEN_TRANSACTION: Final = 2
SEEN_ENCRYPTED: Final = 4

# Marks of entries, which ``scan_entries`` is given.
MARK_DAMAGED: Final = 1
MARK_DECRYPTED: Final = 2

# E_REASON, of rows that are rescued whole
DAMAGED: Final = 1
EMPTY: Final = 2
FRAMING: Final = 3
BROKER_METADATA: Final = 4
CHECKSUM: Final = 5
METADATA: Final = 6
REQUIRED: Final = 7
ENCRYPTED: Final = 8
CODEC: Final = 9
TOO_LARGE: Final = 10
INFLATE: Final = 11
BATCH: Final = 12
BATCH_COUNT: Final = 13
STRAY: Final = 14
NEVER_COMPLETED: Final = 15
EXPANDS: Final = 16
REPEATS: Final = 17
MANY: Final = 18

# Compressions as PulsarApi.CompressionType numbers them.
NONE: Final = 0
LZ4: Final = 1
ZLIB: Final = 2
ZSTD: Final = 3
SNAPPY: Final = 4

# No payload is decompressed beyond MAX_INFLATED, and none beyond ``pulsar.expanded_bytes`` (by
# default FREE_INFLATED) that is more than MAX_RATIO times its stored bytes: Pulsar's limit is
# 5 MiB a message by default, and a few bytes that state more than this are an attack or a defect.
MAX_INFLATED: Final = 512 << 20
FREE_INFLATED: Final = 32 << 20
MAX_RATIO: Final = 64
# A batch's metadata (producer name, encryption context, …) is in each of its rows. It may take so
# many times ``pulsar.expanded_bytes``: 256 MiB by default.
REPEATED_RATIO: Final = 8
# A batch may have one message for so many of ``pulsar.expanded_bytes``: 4,194,304 by default.
BATCH_RATIO: Final = 8
# A message in a batch takes 6 bytes at least: the size of its metadata and payload_size.
MIN_SINGLE: Final = 6

REASONS: Final = {
    DAMAGED: "damaged entry",
    EMPTY: "empty entry",
    FRAMING: "entry is cut off or malformed",
    BROKER_METADATA: "broker entry metadata cannot be parsed",
    CHECKSUM: "checksum mismatch",
    METADATA: "message metadata cannot be parsed",
    REQUIRED: "message metadata lacks producer_name, sequence_id or publish_time",
    ENCRYPTED: "encrypted",
    STRAY: "chunked message with chunks missing",
    NEVER_COMPLETED: "chunked message that was never completed",
    CODEC: "unknown compression",
    TOO_LARGE: f"uncompressed size above {MAX_INFLATED >> 20} MiB",
    EXPANDS: f"uncompressed size above pulsar.expanded_bytes, and {MAX_RATIO} times what is stored",
    REPEATS: f"metadata of a batch repeated in its rows above {REPEATED_RATIO} times "
    "pulsar.expanded_bytes",
    MANY: f"batch of more messages than pulsar.expanded_bytes divided by {BATCH_RATIO}",
    INFLATE: "payload cannot be decompressed to its stated size",
    BATCH: "batch cannot be split into its messages",
    BATCH_COUNT: "batch states an impossible number of messages",
}

KINDS: Final = {
    DAMAGED: RowKind.DAMAGED,
    ENCRYPTED: RowKind.ENCRYPTED,
    STRAY: RowKind.UNMATCHED,
    NEVER_COMPLETED: RowKind.INCOMPLETE,
}
"""What a row with such a reason is; with any other, it is undecodable."""

BINARY_KEY: Final = -2
"""Less the length: the length of a key that is not UTF-8, so NULL as text, and bytes as a key."""

# E_SOFT, R_SOFT: a bit for each metadata value that cannot be shown.
SOFT_PUBLISH: Final = 1
SOFT_BROKER: Final = 2
SOFT_DELIVER: Final = 4
SOFT_EVENT: Final = 8
SOFT_PRODUCER: Final = 16
SOFT_REPLICATED: Final = 32
SOFT_SCHEMA: Final = 64
SOFT_KEY: Final = 128
SOFT_PROPERTY: Final = 256
SOFT_PROPERTIES: Final = 512
# Those that hold for every message of a batch.
SOFT_SHARED: Final = (
    SOFT_PUBLISH | SOFT_BROKER | SOFT_DELIVER | SOFT_PRODUCER | SOFT_REPLICATED | SOFT_SCHEMA
)

SOFT_REASONS: Final = {
    SOFT_PUBLISH: "publish time out of range",
    SOFT_BROKER: "broker publish time out of range",
    SOFT_DELIVER: "deliver time out of range",
    SOFT_EVENT: "event time out of range",
    SOFT_PRODUCER: "producer name is not UTF-8",
    SOFT_REPLICATED: "replicated_from is not UTF-8",
    SOFT_SCHEMA: "schema version out of range",
    SOFT_KEY: "key is not UTF-8",
    SOFT_PROPERTY: "a property is not UTF-8",
    SOFT_PROPERTIES: f"more than {MAX_PROPERTIES} properties",
}
