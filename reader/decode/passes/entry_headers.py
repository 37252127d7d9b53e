"""Pass 1: the headers of raw entries, one column of the ``entries`` table each.

An entry as the broker stores it: ``[0x0e02, u32 size, BrokerEntryMetadata]`` if the broker adds
any, ``[0x0e01, u32 CRC32C of all that follows]`` if the producer sent it, ``u32 size,
MessageMetadata``, payload. Numbers are big-endian.
Source: pulsar.apache.org, "Pulsar binary protocol specification", "Payload commands";
PulsarApi.proto for the fields.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from reader.decode.passes.other_fields import is_other
from reader.decode.tables import (
    BARE,
    BASE64,
    BINARY_KEY,
    BROKER_METADATA,
    CHECKSUM,
    CHUNK,
    CODEC,
    DAMAGED,
    E_BEGIN_ENTRY,
    E_BEGIN_LEDGER,
    E_BROKER,
    E_CHUNK,
    E_CHUNKS,
    E_COMPRESSION,
    E_DELIVER,
    E_EVENT,
    E_FIELDS,
    E_FLAGS,
    E_INDEX,
    E_INFLATED,
    E_KEY,
    E_KEY_LENGTH,
    E_KIND,
    E_MARKER,
    E_MESSAGES,
    E_METADATA,
    E_METADATA_LENGTH,
    E_ORDERING,
    E_ORDERING_LENGTH,
    E_PAYLOAD,
    E_PAYLOAD_LENGTH,
    E_PRODUCER,
    E_PRODUCER_LENGTH,
    E_PROPERTIES,
    E_PUBLISH,
    E_REASON,
    E_REPLICATED,
    E_REPLICATED_LENGTH,
    E_SCHEMA,
    E_SEQUENCE,
    E_SOFT,
    E_TXN_LEAST,
    E_TXN_MOST,
    E_UUID,
    E_UUID_LENGTH,
    EMPTY,
    ENCRYPTED,
    FRAMING,
    HAS_INDEX,
    HAS_OTHER,
    HIDDEN,
    IN_BATCH,
    IN_TRANSACTION,
    IS_ENCRYPTED,
    MARK_DAMAGED,
    MARK_DECRYPTED,
    MAX_INFLATED,
    MAX_MILLIS,
    MAX_PROPERTIES,
    MESSAGES,
    METADATA,
    MIN_MILLIS,
    NO_TIME,
    NONE,
    NULL_KEY,
    NULL_VALUE,
    OUTSIDE,
    REQUIRED,
    SEEN_CHUNK,
    SEEN_ENCRYPTED,
    SEEN_TRANSACTION,
    SNAPPY,
    SOFT_BROKER,
    SOFT_DELIVER,
    SOFT_EVENT,
    SOFT_KEY,
    SOFT_PRODUCER,
    SOFT_PROPERTIES,
    SOFT_PROPERTY,
    SOFT_PUBLISH,
    SOFT_REPLICATED,
    SOFT_SCHEMA,
    STRAY,
    TOO_LARGE,
    WHOLE,
)
from reader.kernels.compiling import inlined, kernel
from reader.kernels.crc32c import crc32c
from reader.kernels.protobuf_wire import field
from reader.kernels.unaligned import u32
from reader.kernels.utf8 import valid_utf8

_INT64 = np.iinfo(np.int64)
# So many entries are filled in a small table of their own: its fields are 9 cache lines apart and
# do not compete for the same cache sets, as those of the whole table may.
_WIDTH = 72


@inlined
def micros(millis: Any) -> Any:
    """A time of the protocol (signed ms) in µs; NO_TIME outside of the years 1 to 9999."""
    if millis > MAX_MILLIS or millis < MIN_MILLIS:
        return np.int64(NO_TIME)
    return np.int64(millis) * np.int64(1000)


@inlined
def pair(buf: Any, at: Any, end: Any) -> Any:
    """PulsarApi.KeyValue: (key position, key length, value position, value length).

    The first is -1 where the message is malformed or lacks one of its two required fields.
    """
    key = np.int64(-1)
    key_length = np.int64(0)
    value = np.int64(-1)
    value_length = np.int64(0)
    while at < end:
        tag, size, begin, at = field(buf, at, end)
        if at < 0:
            return np.int64(-1), key_length, value, value_length
        if tag == 0x0A:
            key, key_length = begin, size
        elif tag == 0x12:
            value, value_length = begin, size
    if value < 0:
        key = np.int64(-1)
    return key, key_length, value, value_length


@inlined
def _is_text(buf: Any, entries: Any, start: Any, size: Any, i: Any) -> bool:
    """Whether what these fields of column ``i`` point at is UTF-8, or not there."""
    length = entries[size, i]
    if length <= 0:
        return True
    at = entries[start, i]
    return bool(valid_utf8(buf, at, at + length))


@kernel
def _clear(entries: Any, i: Any) -> None:
    """The entry has no metadata that can be trusted; the broker's metadata stays."""
    for f in range(E_FIELDS):
        if f not in (E_BROKER, E_INDEX, E_FLAGS, E_SOFT):
            entries[f, i] = 0
    entries[E_FLAGS, i] &= HAS_INDEX
    entries[E_SOFT, i] &= SOFT_BROKER
    entries[E_PUBLISH, i] = NO_TIME
    entries[E_DELIVER, i] = NO_TIME
    entries[E_EVENT, i] = NO_TIME
    entries[E_PRODUCER_LENGTH, i] = -1
    entries[E_REPLICATED_LENGTH, i] = -1
    entries[E_KEY_LENGTH, i] = -1
    entries[E_ORDERING_LENGTH, i] = -1
    entries[E_SCHEMA, i] = -1
    entries[E_PROPERTIES, i] = -1
    entries[E_CHUNK, i] = -1
    entries[E_BEGIN_LEDGER, i] = -1
    entries[E_BEGIN_ENTRY, i] = -1


@kernel
def _broker(buf: Any, at: Any, end: Any, entries: Any, i: Any) -> bool:
    """BrokerEntryMetadata: broker_timestamp = 1, index = 2."""
    while at < end:
        tag, value, _, at = field(buf, at, end)
        if at < 0:
            return False
        if tag == 0x08:
            entries[E_BROKER, i] = micros(value)
            entries[E_SOFT, i] = SOFT_BROKER if entries[E_BROKER, i] == NO_TIME else 0
        elif tag == 0x10:
            entries[E_INDEX, i] = value
            entries[E_FLAGS, i] |= HAS_INDEX
    return True


@kernel
def _metadata(buf: Any, at: Any, end: Any, mark: Any, entries: Any, i: Any) -> Any:
    """MessageMetadata into column ``i``: 0, or why it cannot be read."""
    required = 0
    flags = entries[E_FLAGS, i]
    soft = entries[E_SOFT, i]
    kind = MESSAGES
    marker = False
    total = np.int64(0)
    entries[E_PROPERTIES, i] = 0
    while at < end:
        tag, value, begin, at = field(buf, at, end)
        if at < 0:
            return METADATA
        if tag == 0x0A:  # producer_name
            entries[E_PRODUCER, i] = begin
            entries[E_PRODUCER_LENGTH, i] = value
            required |= 1
        elif tag == 0x10:  # sequence_id
            entries[E_SEQUENCE, i] = value
            required |= 2
        elif tag == 0x18:  # publish_time
            entries[E_PUBLISH, i] = micros(value)
            required |= 4
        elif tag == 0x22:  # properties
            key, key_size, text, text_size = pair(buf, begin, at)
            if key < 0:
                return METADATA
            if valid_utf8(buf, key, key + key_size) and valid_utf8(buf, text, text + text_size):
                entries[E_PROPERTIES, i] += 1
            else:
                soft |= SOFT_PROPERTY
        elif tag == 0x2A:  # replicated_from
            entries[E_REPLICATED, i] = begin
            entries[E_REPLICATED_LENGTH, i] = value
        elif tag == 0x32:  # partition_key
            entries[E_KEY, i] = begin
            entries[E_KEY_LENGTH, i] = value
        elif tag == 0x40:  # compression
            entries[E_COMPRESSION, i] = value
        elif tag == 0x48:  # uncompressed_size
            entries[E_INFLATED, i] = value & 0xFFFFFFFF
        elif tag == 0x58:  # num_messages_in_batch, an int32
            entries[E_MESSAGES, i] = np.int64(np.int32(value))
            flags |= IN_BATCH
        elif tag == 0x60:  # event_time
            entries[E_EVENT, i] = micros(value) if value != 0 else NO_TIME
            soft &= ~SOFT_EVENT
            if value != 0 and entries[E_EVENT, i] == NO_TIME:
                soft |= SOFT_EVENT
        elif tag == 0x6A:  # encryption_keys
            flags |= IS_ENCRYPTED
        elif tag == 0x82:  # schema_version: the Java broker writes 8 bytes, big-endian
            version = np.int64(-1)
            if 0 < value <= 8:
                version = np.int64(0)
                for k in range(value):
                    version = (version << 8) | np.int64(buf[begin + k])
            entries[E_SCHEMA, i] = max(version, np.int64(-1))
            soft &= ~SOFT_SCHEMA
            if value > 8 or (value > 0 and version < 0):
                soft |= SOFT_SCHEMA
        elif tag == 0x88:  # partition_key_b64_encoded
            flags = (flags | BASE64) if value != 0 else (flags & ~BASE64)
        elif tag == 0x92:  # ordering_key
            entries[E_ORDERING, i] = begin
            entries[E_ORDERING_LENGTH, i] = value
        elif tag == 0x98:  # deliver_at_time
            entries[E_DELIVER, i] = micros(value)
            soft &= ~SOFT_DELIVER
            if entries[E_DELIVER, i] == NO_TIME:
                soft |= SOFT_DELIVER
        elif tag == 0xA0:  # marker_type
            marker = True
            entries[E_MARKER, i] = value
        elif tag == 0xB0:  # txnid_least_bits
            entries[E_TXN_LEAST, i] = value
            flags |= IN_TRANSACTION
        elif tag == 0xB8:  # txnid_most_bits
            entries[E_TXN_MOST, i] = value
            flags |= IN_TRANSACTION
        elif tag == 0xC8:  # null_value
            flags = (flags | NULL_VALUE) if value != 0 else (flags & ~NULL_VALUE)
        elif tag == 0xD2:  # uuid
            entries[E_UUID, i] = begin
            entries[E_UUID_LENGTH, i] = value
        elif tag == 0xD8:  # num_chunks_from_msg, an int32
            entries[E_CHUNKS, i] = np.int64(np.int32(value))
            kind = CHUNK if entries[E_CHUNKS, i] > 1 else MESSAGES
        elif tag == 0xE0:  # total_chunk_msg_size, an int32
            total = np.int64(np.int32(value))
        elif tag == 0xE8:  # chunk_id, an int32
            entries[E_CHUNK, i] = np.int64(np.int32(value))
        elif tag == 0xF0:  # null_partition_key
            flags = (flags | NULL_KEY) if value != 0 else (flags & ~NULL_KEY)
        elif is_other(tag):
            flags |= HAS_OTHER
    if marker:
        entries[E_FLAGS, i] = flags
        entries[E_KIND, i] = HIDDEN
        return 0
    if required != 7:
        return REQUIRED
    if entries[E_PUBLISH, i] == NO_TIME:
        soft |= SOFT_PUBLISH
    if not _is_text(buf, entries, E_PRODUCER, E_PRODUCER_LENGTH, i):
        entries[E_PRODUCER_LENGTH, i] = -1
        soft |= SOFT_PRODUCER
    if not _is_text(buf, entries, E_REPLICATED, E_REPLICATED_LENGTH, i):
        entries[E_REPLICATED_LENGTH, i] = -1
        soft |= SOFT_REPLICATED
    if flags & NULL_KEY:
        entries[E_KEY_LENGTH, i] = -1
    elif not _is_text(buf, entries, E_KEY, E_KEY_LENGTH, i):
        entries[E_KEY_LENGTH, i] = BINARY_KEY - entries[E_KEY_LENGTH, i]
        soft |= SOFT_KEY
    if kind == CHUNK:
        flags &= ~IN_BATCH  # no client makes chunks of batches, and none would split them
    if entries[E_PROPERTIES, i] > MAX_PROPERTIES:
        entries[E_PROPERTIES, i] = -1
        soft |= SOFT_PROPERTIES
    entries[E_FLAGS, i] = flags
    entries[E_SOFT, i] = soft
    entries[E_KIND, i] = kind
    if flags & IS_ENCRYPTED and mark != MARK_DECRYPTED:  # each chunk is a row of its own
        entries[E_KIND, i] = WHOLE
        entries[E_REASON, i] = ENCRYPTED
        if not 0 <= entries[E_CHUNK, i] < entries[E_CHUNKS, i]:
            entries[E_CHUNKS, i] = 0
    elif not NONE <= entries[E_COMPRESSION, i] <= SNAPPY:
        entries[E_KIND, i] = WHOLE
        entries[E_REASON, i] = CODEC
    elif (kind == CHUNK and total > MAX_INFLATED) or (
        entries[E_COMPRESSION, i] != NONE and entries[E_INFLATED, i] > MAX_INFLATED
    ):
        entries[E_KIND, i] = WHOLE
        entries[E_REASON, i] = TOO_LARGE
    elif kind == CHUNK and not 0 <= entries[E_CHUNK, i] < entries[E_CHUNKS, i]:
        entries[E_KIND, i] = WHOLE
        entries[E_REASON, i] = STRAY
    return 0


@kernel
def _entry(buf: Any, at: Any, end: Any, mark: Any, entries: Any, i: Any) -> Any:
    if at == end:
        return EMPTY
    if end - at >= 2 and buf[at] == 0x0E and buf[at + 1] == 0x02:
        if end - at < 6:
            return FRAMING
        size = u32(buf, at + 2)
        at += 6
        if size > end - at:
            return FRAMING
        if not _broker(buf, at, at + size, entries, i):
            entries[E_BROKER, i] = NO_TIME
            entries[E_FLAGS, i] = 0
            entries[E_SOFT, i] = 0
            return BROKER_METADATA
        at += size
    if end - at >= 2 and buf[at] == 0x0E and buf[at + 1] == 0x01:
        if end - at < 6:
            return FRAMING
        stated = u32(buf, at + 2)
        at += 6
        if crc32c(buf, at, end - at) != stated:
            return CHECKSUM
    if end - at < 4:
        return FRAMING
    size = u32(buf, at)
    at += 4
    if size > end - at:
        return FRAMING
    reason = _metadata(buf, at, at + size, mark, entries, i)
    entries[E_METADATA, i] = at
    entries[E_METADATA_LENGTH, i] = size
    entries[E_PAYLOAD, i] = at + size
    entries[E_PAYLOAD_LENGTH, i] = end - at - size
    return reason


@inlined
def _scan_one(
    arena: Any, start: Any, size: Any, mark: Any, low: Any, high: Any, entries: Any, i: Any
) -> Any:
    entries[E_FLAGS, i] = 0
    entries[E_SOFT, i] = 0
    entries[E_BROKER, i] = NO_TIME
    entries[E_INDEX, i] = 0
    _clear(entries, i)
    if mark == MARK_DAMAGED:
        reason = DAMAGED
    elif start < 0 or size < 0 or size > len(arena) - start:
        reason = FRAMING
    else:
        reason = _entry(arena, start, start + size, mark, entries, i)
    if reason != 0:
        _clear(entries, i)
        entries[E_KIND, i] = BARE
        entries[E_REASON, i] = reason
        return 0
    seen = 0
    kind = entries[E_KIND, i]
    if entries[E_FLAGS, i] & IN_TRANSACTION:
        seen |= SEEN_TRANSACTION
    chunk = kind == CHUNK
    if entries[E_REASON, i] == ENCRYPTED:
        seen |= SEEN_ENCRYPTED
        chunk = entries[E_CHUNKS, i] > 1
    if chunk:
        seen |= SEEN_CHUNK
    published = entries[E_PUBLISH, i]
    outside = published != NO_TIME and (published < low or published > high)
    if outside and kind != HIDDEN and not chunk:
        entries[E_KIND, i] = OUTSIDE
    return seen


@kernel
def scan_entries(
    arena: Any,
    offsets: Any,
    lengths: Any,
    marks: Any,
    low: Any,
    high: Any,
    entries: Any,
    table: Any,
) -> Any:
    """Fill ``table`` (E_FIELDS, n); return SEEN_… bits.

    ``entries`` (E_FIELDS, any) is working memory.

    Entries with a publish time outside of ``low..high`` (µs, inclusive) become OUTSIDE; those whose
    publish time is not known stay. So does a chunk, encrypted or not: its message may have another
    time.
    """
    seen = 0
    for first in range(0, len(offsets), entries.shape[1]):
        count = min(entries.shape[1], len(offsets) - first)
        for i in range(count):
            seen |= _scan_one(
                arena,
                offsets[first + i],
                lengths[first + i],
                marks[first + i],
                low,
                high,
                entries,
                i,
            )
        for f in range(E_FIELDS):
            for i in range(count):
                table[f, first + i] = entries[f, i]
    return seen


def scan(
    arena: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    marks: npt.NDArray[np.uint8],
    low: int | None = None,
    high: int | None = None,
) -> tuple[int, npt.NDArray[np.int64]]:
    """(SEEN_… bits, the ``entries`` table) of the entries in an arena: see ``scan_entries``.

    ``marks``: MARK_DAMAGED, MARK_DECRYPTED or 0 of each entry.
    """
    arena = arena.view()
    arena.flags.writeable = False
    entries = np.empty((E_FIELDS, len(offsets)), np.int64)
    seen = scan_entries(
        arena,
        np.array(offsets, np.int64),
        np.array(lengths, np.int64),
        marks,
        int(_INT64.min) if low is None else low,
        int(_INT64.max) if high is None else high,
        np.empty((E_FIELDS, _WIDTH), np.int64),
        entries,
    )
    return int(seen), entries
