"""Raw entries to columns of messages: Pulsar's framing, metadata, compression and batches.

Payloads stay bytes here; ``reader.payload`` decodes them. No I/O: an ``EntryBlock`` in,
``Messages`` out. Three passes of numba kernels over plain tables (``layout``): ``scan`` reads the
headers of all entries and drops those outside of the publish range, ``compression`` inflates a
group of payloads, ``walk`` finds the messages in them; ``arrays`` builds Arrow arrays of the wanted
columns, ``rescue`` names what could not be shown. In between, ``transactions`` hides what was
aborted, and ``chunks`` puts chunked messages together; both may have to ask ``around``. Imports
only ``reader.model``, ``columns``, ``errors``, ``spans``, ``memory``, ``kernels``, ``words``,
``crc32c``.

**Every entry gives at least one row**, but for markers (any marker_type), entries of aborted
transactions, all but the last chunk of a message, singles that compaction took out of a batch, and
entries outside of the publish range. An entry whose publish time is not
known is never outside.

**Rescued rows** stand in ``Messages.rescued`` with their raw bytes and a reason:

- An entry that is damaged, empty, cut off, fails its checksum or has no readable metadata is one
  row with the ids, what the broker said of it (time, index) and nothing else. Raw: the entry.
- An entry whose payload cannot be decompressed to exactly its stated size, or whose batch breaks
  anywhere, is one row for the whole entry, batch index -1, with the metadata of the entry, never a
  mix of messages and rescue. ``__index`` is then that of its last message. Raw: the entry.
- A chunk that cannot become part of a message likewise (``chunks`` says when). Raw: its entry, with
  the payloads of the chunks so far before its own.
- An encrypted entry that ``decryption`` does not open likewise. Raw: its ciphertext, as a client
  that consumes it undecrypted gets. One that it opens is as if it had been sent in the clear.
- A message of which only a metadata value cannot be shown (a key, property or name that is not
  UTF-8, a time beyond 64-bit µs, a schema version that is no number) keeps its payload and all
  else; the value is NULL, the property is missing. Raw: the entry; inside a batch the entry up to
  its payload, then the message as the (uncompressed) batch holds it.

**Values.** Times are signed milliseconds in the protocol; an event time of 0 is none. Of a property
that is repeated the last value counts, as in every client. A key with null_partition_key is NULL.
Schema versions are big-endian, of 1 to 8 bytes. ``__index`` of message i in a batch of n is the
entry's index - (n - 1) + i.
"""

from __future__ import annotations

from reader.decode.chunks import State, chunk_headers, is_pending, next_state
from reader.decode.context import Around, Part
from reader.decode.decoder import HEADER_COLUMNS, EntryDecoder, Messages
from reader.decode.encryption.decryption import Decryption, plain_entry
from reader.decode.prewarm import prewarm
from reader.decode.transactions import Transactions

__all__ = [
    "HEADER_COLUMNS",
    "Around",
    "Decryption",
    "EntryDecoder",
    "Messages",
    "Part",
    "State",
    "Transactions",
    "chunk_headers",
    "is_pending",
    "next_state",
    "plain_entry",
    "prewarm",
]
