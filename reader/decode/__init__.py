"""Raw entries to columns of messages: Pulsar's framing, metadata, compression and batches.

    decoder               EntryDecoder: the passes one after the other, a group of entries at a time
    passes                the passes: numba kernels over the tables
    tables                the tables between the passes: fields, kinds, reasons, bounds
    encryption            encrypted entries: keys, decryption, the encryption context
    aborted_transactions  entries of aborted transactions are left out
    chunks                chunked messages are joined at their last chunk
    chunk_sequence        the chunks of a message so far, and what one more makes of them
    partition_context     what decoding asks of the rest of the partition
    metadata_columns      the metadata columns of rows
    arrays                what rows point at: payloads, keys, properties
    joined_blocks         several small blocks as one
    rescue                raw bytes and reason of each rescued row
    seen                  publish times and numbers of messages of each block
    prewarm               compiles the kernels before the first query needs them

Payloads stay bytes here; ``reader.payload`` decodes them. No I/O: an ``EntryBlock`` in,
``Messages`` out. First the headers of all entries are read, and those outside of the publish range
dropped (``passes.entry_headers``); aborted transactions are hidden and chunks joined, which may
take a ``PartitionContext``; then payloads are decompressed in groups (``passes.decompression``) and
their messages found (``passes.messages``), in portions that are bounded by what comes out.
Imports only ``reader.model``, ``reader.errors``, ``reader.kernels`` and ``reader.wire``.

**Every entry gives at least one row**, except markers (any marker_type), entries of aborted
transactions, all chunks of a message before its last, messages that compaction took out of a batch,
and entries outside of the publish range. An entry whose publish time is not known is never outside.

**Rescued rows** are in ``Messages.rescued`` with their raw bytes and a reason:

- An entry that is damaged, empty, cut off, fails its checksum or has no readable metadata is one
  row with the ids, the broker's metadata (time, index) and nothing else. Raw: the entry.
- An entry whose payload cannot be decompressed to exactly its stated size, or whose batch breaks
  anywhere, is one row for the whole entry, batch index -1, with the metadata of the entry, never a
  mix of messages and rescue. ``__index`` is then that of its last message. Raw: the entry.
- An entry that few bytes would blow up likewise, without being decompressed or split: bounds are in
  ``tables`` (MAX_INFLATED, FREE_INFLATED, MAX_RATIO, BATCH_RATIO, REPEATED_RATIO). Raw: the entry.
- A chunk that cannot become part of a message likewise (``chunks`` says when). Raw: its entry, with
  the payloads of the chunks so far before its own.
- An encrypted entry that no key opens likewise. Raw: its ciphertext, as a client gets it that
  consumes without decryption (the last chunk of a message of which others were opened: as any
  chunk that cannot become part of one). One that is decrypted gives the rows of an unencrypted
  entry.
- A message of which only a metadata value cannot be shown (a key, property or name that is not
  UTF-8, a time beyond 64-bit µs, a schema version that is no number, more than MAX_PROPERTIES
  properties) keeps its payload and all other columns; the value is NULL, the property is missing.
  Raw: the entry; inside a batch the entry up to its payload, then the message as the
  (uncompressed) batch holds it.

**Values.** Times are signed milliseconds in the protocol and µs since the epoch in the columns; an
event time of 0 is none. Of a repeated property the last value counts, as in every client. A key
with null_partition_key is NULL. Schema versions are big-endian, of 1 to 8 bytes. ``__index`` of
message i in a batch of n is the entry's index - (n - 1) + i.
"""

from reader.decode.aborted_transactions import Transactions, entries_in_transactions
from reader.decode.chunk_sequence import (
    NO_CHUNKS,
    Chunk,
    ChunkMemory,
    ChunkSequence,
    add_chunk,
    is_incomplete,
    opened_part,
)
from reader.decode.chunks import chunk_headers
from reader.decode.decoder import EntryDecoder, Messages
from reader.decode.encryption.decryption import Decryption, plain_entry, private_key
from reader.decode.partition_context import NoContext, PartitionContext
from reader.decode.prewarm import prewarm
from reader.decode.seen import Seen
from reader.decode.tables import FREE_INFLATED

__all__ = [
    "FREE_INFLATED",
    "NO_CHUNKS",
    "Chunk",
    "ChunkMemory",
    "ChunkSequence",
    "Decryption",
    "EntryDecoder",
    "Messages",
    "NoContext",
    "PartitionContext",
    "Seen",
    "Transactions",
    "add_chunk",
    "chunk_headers",
    "entries_in_transactions",
    "is_incomplete",
    "opened_part",
    "plain_entry",
    "prewarm",
    "private_key",
]
