"""Messages of one partition as the entries that are sent: batches, single messages, chunks.

A message is sent by itself where it does not fit a batch, or is to be delivered later; in chunks
where the broker takes no entry of its size. Metadata is written here but for what is only known
when an entry is sent: producer_name, sequence_id, publish_time, highest_sequence_id, of batches
uncompressed_size and of chunks uuid.

Each message of a batch has its own sequence id, as all clients write it: Java's
``Message.getSequenceId`` shows the batch's first id otherwise. So batches are compressed when they
are sent (``stored_payload``). Those that are encrypted have none: their payloads leave a task
sealed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reader.encode.batch_kernel import add_messages, number_messages
from reader.encode.compression import Compression, compress
from reader.encode.encryption import Encryption
from reader.encode.message_metadata import NOT_DELAYED, MessageColumns
from reader.errors import ConfigurationError, CorruptError
from reader.kernels.array_types import Bools, Int64s
from reader.kernels.byte_spans import ByteSpans, fixed
from reader.kernels.memory import empty_bytes
from reader.wire.pulsar_pb2 import KeyValue, MessageMetadata

_LEAST_ROOM = 16 << 10
_MESSAGE_HEAD = 64
"""Bytes of a message in a batch besides its texts, at most: sizes, tags, event time, flags."""
_LEAST_CHUNK = 1 << 10
_TAG = 16  # of AES-GCM
_ENTRY_HEAD = 2 << 10
"""What an entry's metadata may get when it is sent: a producer's name of 200 characters, twice."""


@dataclass(frozen=True, slots=True)
class EntryFormat:
    """How messages become entries.

    ``messages``, ``batch_bytes``: of a batch at most, before compression; half an entry at most.
    ``entry_bytes``: of an entry at most, the broker's ``maxMessageSize``. ``schema_version``: as
    messages name it; b"": none.
    """

    messages: int = 1000
    batch_bytes: int = 1 << 20
    entry_bytes: int = 5 << 20
    compression: Compression = Compression.LZ4
    schema_version: bytes = b""


@dataclass(frozen=True, slots=True)
class EncodedEntry:
    """``messages``: that it completes, 0 for a chunk that others follow.

    ``metadata``: without what is known when it is sent. ``payload``: as it is stored, or what
    ``stored_payload`` numbers and compresses by ``codec``. ``chunk``: which of a message's, from 1
    on; 0: it is none.
    """

    messages: int
    metadata: bytes
    payload: bytes | memoryview
    chunk: int = 0
    codec: Compression | None = None

    @property
    def ids(self) -> int:
        """How many sequence ids it takes: one a message, and one for each chunk.

        Chunks of one message might share an id, as the Java client has it. But brokers (4.2) that
        reload a topic between two chunks then take the rest for repeated, and confirm it all.
        """
        return max(self.messages, 1)


def stored_payload(entry: EncodedEntry, first: int) -> tuple[bytes | memoryview, bytes]:
    """Return the payload as it is stored, and the metadata that comes with it.

    first: the entry's first sequence id.

    Raises CorruptError for a batch that is damaged.
    """
    if entry.codec is None:
        return entry.payload, b""
    batch = np.frombuffer(entry.payload, np.uint8)
    numbered = empty_bytes(len(batch))
    messages, size = number_messages(batch, first, numbered)
    if messages != entry.messages:
        raise CorruptError("a batch that was to be sent is damaged")
    packed = entry.codec is not Compression.NONE
    payload = compress(entry.codec, numbered.data[:size])
    metadata = MessageMetadata(uncompressed_size=size if packed else None)
    return payload, metadata.SerializeToString()


class BatchEncoder:
    """Messages of one partition, in order, into entries; for one thread.

    Memory: a batch before compression, twice, and what is not taken yet of its entries.
    """

    def __init__(self, form: EntryFormat, encryption: Encryption | None = None) -> None:
        self._form = form
        self._encryption = encryption
        self._entry_room = form.entry_bytes - _ENTRY_HEAD
        if encryption is not None:
            self._entry_room -= len(encryption.seal(b"")[0]) + _TAG
        self._batch_bytes = min(form.batch_bytes, form.entry_bytes // 2)
        self._open = empty_bytes(min(_LEAST_ROOM, self._batch_bytes))
        self._used = 0
        self._messages = 0
        self._batch = MessageMetadata()

    @property
    def waiting(self) -> int:
        """Messages of the batch that is open."""
        return self._messages

    def add(
        self, rows: Int64s, values: ByteSpans, columns: MessageColumns
    ) -> Iterator[EncodedEntry]:
        """The entries that are complete once ``rows`` of these columns are added, in order."""
        alone = self._alone(values, columns)
        rows = fixed(rows)
        arrays = (
            fixed(alone),
            *values.fixed()[:3],
            fixed(columns.tombstones),
            *columns.keys.fixed(),
            fixed(columns.base64),
            *columns.orders.fixed(),
            fixed(columns.events),
            fixed(columns.pair_ends),
            *columns.names.fixed()[:3],
            *columns.texts.fixed()[:3],
            self._encryption is None,
        )
        at = 0
        while at < len(rows):
            row = int(rows[at])
            if alone[row]:
                yield from self.finish()
                yield from self._single(row, values, columns)
                at += 1
                continue
            if not self._messages:
                self._batch = _keys_of(row, columns)
            most = self._form.messages - self._messages
            behind, used = add_messages(rows, at, most, *arrays, self._open, self._used)
            self._messages += behind - at
            at, self._used = behind, used
            if at == len(rows):
                break
            if self._messages >= self._form.messages or len(self._open) >= self._batch_bytes:
                yield from self.finish()
            elif not alone[int(rows[at])]:
                self._grow()

    def finish(self) -> Iterator[EncodedEntry]:
        """The batch that is open, as an entry."""
        if self._messages:
            payload = self._open.data[: self._used]
            self._batch.num_messages_in_batch = self._messages
            entry = self._sealed(self._messages, self._batch, payload)
            self._messages = self._used = 0
            yield entry

    def _grow(self) -> None:
        larger = empty_bytes(min(2 * len(self._open), self._batch_bytes))
        larger[: self._used] = self._open[: self._used]
        self._open = larger

    def _alone(self, values: ByteSpans, columns: MessageColumns) -> Bools:
        pairs = np.zeros(len(columns.names) + 1, np.int64)
        sizes = columns.names.ends - columns.names.starts
        sizes = sizes + columns.texts.ends - columns.texts.starts + 24
        np.cumsum(sizes, out=pairs[1:])
        total = np.where(columns.tombstones, 0, values.ends - values.starts) + _MESSAGE_HEAD
        total += pairs[columns.pair_ends[1:]] - pairs[columns.pair_ends[:-1]]
        keys = np.zeros(len(total), np.int64)
        for spans in (columns.keys, columns.orders):
            keys += np.where(spans.present, spans.ends - spans.starts, 0)
        # An entry has those of its first message beside the batch, which compression may enlarge.
        room = self._entry_room - self._batch_bytes - self._batch_bytes // 64 - _MESSAGE_HEAD
        found: Bools = (
            (total + keys > self._batch_bytes) | (keys > room) | (columns.deliver != NOT_DELAYED)
        )
        return found

    def _single(
        self, row: int, values: ByteSpans, columns: MessageColumns
    ) -> Iterator[EncodedEntry]:
        tombstone = bool(columns.tombstones[row])
        start, end = (0, 0) if tombstone else (int(values.starts[row]), int(values.ends[row]))
        deliver = int(columns.deliver[row])
        metadata = _keys_of(row, columns)
        metadata.properties.extend(
            KeyValue(key=name, value=text) for name, text in columns.properties(row)
        )
        if event := int(columns.events[row]):
            metadata.event_time = event
        if deliver != NOT_DELAYED:
            metadata.deliver_at_time = deliver
        if tombstone:
            metadata.null_value = True
        own_bytes = metadata.ByteSize()
        payload = values.data.data[start:end]
        size = end - start
        compressed = compress(self._form.compression, payload)
        self._add_format(metadata, size)
        room = self._entry_room - metadata.ByteSize()
        if len(compressed) <= room:
            yield self._entry(1, metadata, compressed)
            return
        if room < _LEAST_CHUNK:
            raise ConfigurationError(
                f"the key and the properties of a row have {own_bytes} bytes, and an "
                f"entry has {self._form.entry_bytes} at most",
                hint="only payloads are sent in chunks; see the broker's maxMessageSize",
                context={"row": row},
            )
        chunks = -(-len(compressed) // room)
        metadata.num_chunks_from_msg = chunks
        metadata.total_chunk_msg_size = len(compressed)
        for number in range(chunks):
            metadata.chunk_id = number
            piece = compressed[number * room : (number + 1) * room]
            yield self._entry(int(number == chunks - 1), metadata, piece, chunk=number + 1)

    def _sealed(
        self, messages: int, metadata: MessageMetadata, payload: memoryview
    ) -> EncodedEntry:
        compression = self._form.compression
        if self._encryption is None:
            self._add_format(metadata, None)
            written = metadata.SerializeToString()
            return EncodedEntry(messages, written, bytes(payload), codec=compression)
        self._add_format(metadata, len(payload))
        return self._entry(messages, metadata, compress(compression, payload))

    def _add_format(self, metadata: MessageMetadata, size: int | None) -> None:
        """Add the compression and the schema. size: of the payload before compression."""
        if self._form.compression is not Compression.NONE:
            metadata.compression = int(self._form.compression)
            if size is not None:
                metadata.uncompressed_size = size
        if self._form.schema_version:
            metadata.schema_version = self._form.schema_version

    def _entry(
        self, messages: int, metadata: MessageMetadata, payload: bytes, *, chunk: int = 0
    ) -> EncodedEntry:
        written = metadata.SerializeToString()
        if self._encryption is not None:
            more, payload = self._encryption.seal(payload)
            written += more
        return EncodedEntry(messages, written, payload, chunk)


def _keys_of(row: int, columns: MessageColumns) -> MessageMetadata:
    """Return the metadata of an entry with the keys of its first message.

    As the Java client writes them: by them brokers choose a consumer of a Key_Shared subscription.
    """
    key = columns.keys[row]
    return MessageMetadata(
        partition_key=key,
        partition_key_b64_encoded=True if key is not None and columns.base64[row] else None,
        ordering_key=columns.orders[row],
    )
