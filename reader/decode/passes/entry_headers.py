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

from reader.decode import tables
from reader.decode.passes.other_fields import is_other
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
    if millis > tables.MAX_MILLIS or millis < tables.MIN_MILLIS:
        return np.int64(tables.NO_TIME)
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
    for f in range(tables.E_FIELDS):
        if f not in (tables.E_BROKER, tables.E_INDEX, tables.E_FLAGS, tables.E_SOFT):
            entries[f, i] = 0
    entries[tables.E_FLAGS, i] &= tables.HAS_INDEX
    entries[tables.E_SOFT, i] &= tables.SOFT_BROKER
    entries[tables.E_PUBLISH, i] = tables.NO_TIME
    entries[tables.E_DELIVER, i] = tables.NO_TIME
    entries[tables.E_EVENT, i] = tables.NO_TIME
    entries[tables.E_PRODUCER_LENGTH, i] = -1
    entries[tables.E_REPLICATED_LENGTH, i] = -1
    entries[tables.E_KEY_LENGTH, i] = -1
    entries[tables.E_ORDERING_LENGTH, i] = -1
    entries[tables.E_SCHEMA, i] = -1
    entries[tables.E_PROPERTIES, i] = -1
    entries[tables.E_CHUNK, i] = -1
    entries[tables.E_BEGIN_LEDGER, i] = -1
    entries[tables.E_BEGIN_ENTRY, i] = -1


@kernel
def _broker(buf: Any, at: Any, end: Any, entries: Any, i: Any) -> bool:
    """BrokerEntryMetadata: broker_timestamp = 1, index = 2."""
    while at < end:
        tag, value, _, at = field(buf, at, end)
        if at < 0:
            return False
        if tag == 0x08:
            entries[tables.E_BROKER, i] = micros(value)
            entries[tables.E_SOFT, i] = (
                tables.SOFT_BROKER if entries[tables.E_BROKER, i] == tables.NO_TIME else 0
            )
        elif tag == 0x10:
            entries[tables.E_INDEX, i] = value
            entries[tables.E_FLAGS, i] |= tables.HAS_INDEX
    return True


@kernel
def _metadata(buf: Any, at: Any, end: Any, mark: Any, entries: Any, i: Any) -> Any:
    """MessageMetadata into column ``i``: 0, or why it cannot be read."""
    required = 0
    flags = entries[tables.E_FLAGS, i]
    soft = entries[tables.E_SOFT, i]
    kind = tables.MESSAGES
    marker = False
    total = np.int64(0)
    entries[tables.E_PROPERTIES, i] = 0
    while at < end:
        tag, value, begin, at = field(buf, at, end)
        if at < 0:
            return tables.METADATA
        if tag == 0x0A:  # producer_name
            entries[tables.E_PRODUCER, i] = begin
            entries[tables.E_PRODUCER_LENGTH, i] = value
            required |= 1
        elif tag == 0x10:  # sequence_id
            entries[tables.E_SEQUENCE, i] = value
            required |= 2
        elif tag == 0x18:  # publish_time
            entries[tables.E_PUBLISH, i] = micros(value)
            required |= 4
        elif tag == 0x22:  # properties
            key, key_size, text, text_size = pair(buf, begin, at)
            if key < 0:
                return tables.METADATA
            if valid_utf8(buf, key, key + key_size) and valid_utf8(buf, text, text + text_size):
                entries[tables.E_PROPERTIES, i] += 1
            else:
                soft |= tables.SOFT_PROPERTY
        elif tag == 0x2A:  # replicated_from
            entries[tables.E_REPLICATED, i] = begin
            entries[tables.E_REPLICATED_LENGTH, i] = value
        elif tag == 0x32:  # partition_key
            entries[tables.E_KEY, i] = begin
            entries[tables.E_KEY_LENGTH, i] = value
        elif tag == 0x40:  # compression
            entries[tables.E_COMPRESSION, i] = value
        elif tag == 0x48:  # uncompressed_size
            entries[tables.E_INFLATED, i] = value & 0xFFFFFFFF
        elif tag == 0x58:  # num_messages_in_batch, an int32
            entries[tables.E_MESSAGES, i] = np.int64(np.int32(value))
            flags |= tables.IN_BATCH
        elif tag == 0x60:  # event_time
            entries[tables.E_EVENT, i] = micros(value) if value != 0 else tables.NO_TIME
            soft &= ~tables.SOFT_EVENT
            if value != 0 and entries[tables.E_EVENT, i] == tables.NO_TIME:
                soft |= tables.SOFT_EVENT
        elif tag == 0x6A:  # encryption_keys
            flags |= tables.IS_ENCRYPTED
        elif tag == 0x82:  # schema_version: the Java broker writes 8 bytes, big-endian
            version = np.int64(-1)
            if 0 < value <= 8:
                version = np.int64(0)
                for k in range(value):
                    version = (version << 8) | np.int64(buf[begin + k])
            entries[tables.E_SCHEMA, i] = max(version, np.int64(-1))
            soft &= ~tables.SOFT_SCHEMA
            if value > 8 or (value > 0 and version < 0):
                soft |= tables.SOFT_SCHEMA
        elif tag == 0x88:  # partition_key_b64_encoded
            flags = (flags | tables.BASE64) if value != 0 else (flags & ~tables.BASE64)
        elif tag == 0x92:  # ordering_key
            entries[tables.E_ORDERING, i] = begin
            entries[tables.E_ORDERING_LENGTH, i] = value
        elif tag == 0x98:  # deliver_at_time
            entries[tables.E_DELIVER, i] = micros(value)
            soft &= ~tables.SOFT_DELIVER
            if entries[tables.E_DELIVER, i] == tables.NO_TIME:
                soft |= tables.SOFT_DELIVER
        elif tag == 0xA0:  # marker_type
            marker = True
            entries[tables.E_MARKER, i] = value
        elif tag == 0xB0:  # txnid_least_bits
            entries[tables.E_TXN_LEAST, i] = value
            flags |= tables.IN_TRANSACTION
        elif tag == 0xB8:  # txnid_most_bits
            entries[tables.E_TXN_MOST, i] = value
            flags |= tables.IN_TRANSACTION
        elif tag == 0xC8:  # null_value
            flags = (flags | tables.NULL_VALUE) if value != 0 else (flags & ~tables.NULL_VALUE)
        elif tag == 0xD2:  # uuid
            entries[tables.E_UUID, i] = begin
            entries[tables.E_UUID_LENGTH, i] = value
        elif tag == 0xD8:  # num_chunks_from_msg, an int32
            entries[tables.E_CHUNKS, i] = np.int64(np.int32(value))
            kind = tables.CHUNK if entries[tables.E_CHUNKS, i] > 1 else tables.MESSAGES
        elif tag == 0xE0:  # total_chunk_msg_size, an int32
            total = np.int64(np.int32(value))
        elif tag == 0xE8:  # chunk_id, an int32
            entries[tables.E_CHUNK, i] = np.int64(np.int32(value))
        elif tag == 0xF0:  # null_partition_key
            flags = (flags | tables.NULL_KEY) if value != 0 else (flags & ~tables.NULL_KEY)
        elif is_other(tag):
            flags |= tables.HAS_OTHER
    if marker:
        entries[tables.E_FLAGS, i] = flags
        entries[tables.E_KIND, i] = tables.HIDDEN
        return 0
    if required != 7:
        return tables.REQUIRED
    if entries[tables.E_PUBLISH, i] == tables.NO_TIME:
        soft |= tables.SOFT_PUBLISH
    if not _is_text(buf, entries, tables.E_PRODUCER, tables.E_PRODUCER_LENGTH, i):
        entries[tables.E_PRODUCER_LENGTH, i] = -1
        soft |= tables.SOFT_PRODUCER
    if not _is_text(buf, entries, tables.E_REPLICATED, tables.E_REPLICATED_LENGTH, i):
        entries[tables.E_REPLICATED_LENGTH, i] = -1
        soft |= tables.SOFT_REPLICATED
    if flags & tables.NULL_KEY:
        entries[tables.E_KEY_LENGTH, i] = -1
    elif not _is_text(buf, entries, tables.E_KEY, tables.E_KEY_LENGTH, i):
        entries[tables.E_KEY_LENGTH, i] = tables.BINARY_KEY - entries[tables.E_KEY_LENGTH, i]
        soft |= tables.SOFT_KEY
    if kind == tables.CHUNK:
        flags &= ~tables.IN_BATCH  # no client makes chunks of batches, and none would split them
    if entries[tables.E_PROPERTIES, i] > tables.MAX_PROPERTIES:
        entries[tables.E_PROPERTIES, i] = -1
        soft |= tables.SOFT_PROPERTIES
    entries[tables.E_FLAGS, i] = flags
    entries[tables.E_SOFT, i] = soft
    entries[tables.E_KIND, i] = kind
    if (
        flags & tables.IS_ENCRYPTED and mark != tables.MARK_DECRYPTED
    ):  # each chunk is a row of its own
        entries[tables.E_KIND, i] = tables.WHOLE
        entries[tables.E_REASON, i] = tables.ENCRYPTED
        if not 0 <= entries[tables.E_CHUNK, i] < entries[tables.E_CHUNKS, i]:
            entries[tables.E_CHUNKS, i] = 0
    elif not tables.NONE <= entries[tables.E_COMPRESSION, i] <= tables.SNAPPY:
        entries[tables.E_KIND, i] = tables.WHOLE
        entries[tables.E_REASON, i] = tables.CODEC
    elif (kind == tables.CHUNK and total > tables.MAX_INFLATED) or (
        entries[tables.E_COMPRESSION, i] != tables.NONE
        and entries[tables.E_INFLATED, i] > tables.MAX_INFLATED
    ):
        entries[tables.E_KIND, i] = tables.WHOLE
        entries[tables.E_REASON, i] = tables.TOO_LARGE
    elif kind == tables.CHUNK and not 0 <= entries[tables.E_CHUNK, i] < entries[tables.E_CHUNKS, i]:
        entries[tables.E_KIND, i] = tables.WHOLE
        entries[tables.E_REASON, i] = tables.STRAY
    return 0


@kernel
def _entry(buf: Any, at: Any, end: Any, mark: Any, entries: Any, i: Any) -> Any:
    if at == end:
        return tables.EMPTY
    if end - at >= 2 and buf[at] == 0x0E and buf[at + 1] == 0x02:
        if end - at < 6:
            return tables.FRAMING
        size = u32(buf, at + 2)
        at += 6
        if size > end - at:
            return tables.FRAMING
        if not _broker(buf, at, at + size, entries, i):
            entries[tables.E_BROKER, i] = tables.NO_TIME
            entries[tables.E_FLAGS, i] = 0
            entries[tables.E_SOFT, i] = 0
            return tables.BROKER_METADATA
        at += size
    if end - at >= 2 and buf[at] == 0x0E and buf[at + 1] == 0x01:
        if end - at < 6:
            return tables.FRAMING
        stated = u32(buf, at + 2)
        at += 6
        if crc32c(buf, at, end - at) != stated:
            return tables.CHECKSUM
    if end - at < 4:
        return tables.FRAMING
    size = u32(buf, at)
    at += 4
    if size > end - at:
        return tables.FRAMING
    reason = _metadata(buf, at, at + size, mark, entries, i)
    entries[tables.E_METADATA, i] = at
    entries[tables.E_METADATA_LENGTH, i] = size
    entries[tables.E_PAYLOAD, i] = at + size
    entries[tables.E_PAYLOAD_LENGTH, i] = end - at - size
    return reason


@inlined
def _scan_one(
    arena: Any, start: Any, size: Any, mark: Any, low: Any, high: Any, entries: Any, i: Any
) -> Any:
    entries[tables.E_FLAGS, i] = 0
    entries[tables.E_SOFT, i] = 0
    entries[tables.E_BROKER, i] = tables.NO_TIME
    entries[tables.E_INDEX, i] = 0
    _clear(entries, i)
    if mark == tables.MARK_DAMAGED:
        reason = tables.DAMAGED
    elif start < 0 or size < 0 or size > len(arena) - start:
        reason = tables.FRAMING
    else:
        reason = _entry(arena, start, start + size, mark, entries, i)
    if reason != 0:
        _clear(entries, i)
        entries[tables.E_KIND, i] = tables.BARE
        entries[tables.E_REASON, i] = reason
        return 0
    seen = 0
    kind = entries[tables.E_KIND, i]
    if entries[tables.E_FLAGS, i] & tables.IN_TRANSACTION:
        seen |= tables.SEEN_TRANSACTION
    chunk = kind == tables.CHUNK
    if entries[tables.E_REASON, i] == tables.ENCRYPTED:
        seen |= tables.SEEN_ENCRYPTED
        chunk = entries[tables.E_CHUNKS, i] > 1
    if chunk:
        seen |= tables.SEEN_CHUNK
    published = entries[tables.E_PUBLISH, i]
    outside = published != tables.NO_TIME and (published < low or published > high)
    if outside and kind != tables.HIDDEN and not chunk:
        entries[tables.E_KIND, i] = tables.OUTSIDE
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
        for f in range(tables.E_FIELDS):
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
    entries = np.empty((tables.E_FIELDS, len(offsets)), np.int64)
    seen = scan_entries(
        arena,
        np.array(offsets, np.int64),
        np.array(lengths, np.int64),
        marks,
        int(_INT64.min) if low is None else low,
        int(_INT64.max) if high is None else high,
        np.empty((tables.E_FIELDS, _WIDTH), np.int64),
        entries,
    )
    return int(seen), entries
