"""Entries: batches, chunks, markers, transactions, checksums, encryption."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
entry-skipped-at-a-blocks-end: an entry at the end of what is decompressed at once is no row
reader/decode/passes/portions.py: tests/unit/decode/test_portions.py
    tests/unit/decode/test_messages.py
- yield first, stop
-         first = stop
+ yield first, stop
+         first = stop + 1

batch-index-off-by-one: __batchIndex is not that of the message id: acknowledgements and bounds are
    off
reader/decode/passes/messages.py: tests/unit/decode/test_messages.py::test_batch
- rows[tables.R_BATCH, to] = k
+ rows[tables.R_BATCH, to] = k + 1

compacted-out-shown: messages that Pulsar's compaction took out are rows
reader/decode/passes/messages.py: tests/unit/decode/test_messages.py::test_batch
- if compacted != 0 or full:
+ if full:

null-value-shown-as-empty: tombstones in batches are empty values: compacted views keep deleted keys
reader/decode/passes/single_message.py: tests/unit/decode/test_messages.py::test_batch
- rows[tables.R_PAYLOAD_LENGTH, r] = -1 if flags & tables.NULL_VALUE else size
+ rows[tables.R_PAYLOAD_LENGTH, r] = size

checksum-ignored: bytes that a disk or a network has changed are shown as if they were sent
reader/decode/passes/entry_headers.py:
    tests/unit/decode/test_rescue.py::test_broker_metadata_is_outside_of_the_checksum
- if crc32c(buf, at, end - at) != stated:
+ if stated < 0:

marker-shown: markers of transactions and of replication are rows
reader/decode/passes/entry_headers.py: tests/unit/decode/test_rescue.py::test_markers_are_no_rows
- if marker:
-         entries[tables.E_FLAGS, i] = flags
-         entries[tables.E_KIND, i] = tables.HIDDEN
+ if marker:
+         entries[tables.E_FLAGS, i] = flags
+         entries[tables.E_KIND, i] = tables.MESSAGES

digest-ignored: a damaged or forged copy of one bookie is shown though another bookie has the entry
reader/bookkeeper/digest.py: tests/unit/bookkeeper/test_digest.py::test_every_flipped_byte_is_caught
- good[i] = hmac.compare_digest(found, bytes(stored))
+ good[i] = len(found) == len(stored)

chunks-in-any-order: a message with a missing chunk is shown with the others joined
reader/decode/chunk_sequence.py: tests/unit/decode/test_chunks.py
- fits = chunk.chunk_id == len(sequence) and chunk.num_chunks == chunks[0].num_chunks
+ fits = chunk.num_chunks == chunks[0].num_chunks

first-chunk-does-not-begin-anew: a message that its producer has sent again from its first chunk is
    no row
reader/decode/chunk_sequence.py: tests/unit/decode/test_chunks.py
- if chunk.chunk_id == 0:
-         sequence = NO_CHUNKS
-     elif chunk
+ if chunk

aborted-transactions-shown: messages of aborted transactions are rows
reader/decode/aborted_transactions.py: tests/unit/decode/test_chunks.py
- self._aborted |= {one: one in aborted for one in unknown}
+ self._aborted |= {one: one not in unknown for one in aborted}

marker-of-an-abort-believed: a marker that any producer may write decides what became of a
    transaction
reader/decode/aborted_transactions.py: tests/unit/decode/test_chunks.py
- return one in self._aborted or self._all_say_commit.get(one, False)
+ return one in self._aborted or one in self._all_say_commit

transaction-that-nobody-decides-shown: where the broker cannot tell, messages of aborted
    transactions are rows or an error
reader/decode/aborted_transactions.py: tests/unit/decode/test_rescue.py
    tests/unit/decode/test_chunks.py
- if not all(one in self._all_say_commit for one in unknown):
-                 raise
+ if any(one in self._all_say_commit for one in unknown):
+                 raise

plain-text-stored: rows that were to be encrypted lie in Pulsar in the clear
reader/encode/encryption.py: tests/unit/encode/messages/test_encryption.py
- self._cipher.encrypt(nonce, payload, None)
+ payload

one-key-of-many-is-tried: messages encrypted for several keys are NULL with an error for who has the
    second one
reader/decode/encryption/decryption.py: tests/unit/decode/test_decryption.py
- if cipher is None:
-                 continue
+ if cipher is None:
+                 break
""")
