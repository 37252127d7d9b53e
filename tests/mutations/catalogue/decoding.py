"""Entries: batches, chunks, markers, transactions, checksums, encryption."""

from tests.mutations.mutation import Mutation

_MESSAGES = "tests/unit/decode/test_messages.py"
_CHUNKS = "tests/unit/decode/test_chunks.py"
_RESCUE = "tests/unit/decode/test_rescue.py"

MUTATIONS = (
    Mutation(
        "entry-skipped-at-a-blocks-end",
        "reader/decode/passes/portions.py",
        "yield first, stop\n        first = stop",
        "yield first, stop\n        first = stop + 1",
        "an entry at the end of what is decompressed at once is no row",
        ("tests/unit/decode/test_portions.py", _MESSAGES),
    ),
    Mutation(
        "batch-index-off-by-one",
        "reader/decode/passes/messages.py",
        "rows[tables.R_BATCH, to] = k",
        "rows[tables.R_BATCH, to] = k + 1",
        "__batchIndex is not that of the message id: acknowledgements and bounds are off",
        (f"{_MESSAGES}::test_batch",),
    ),
    Mutation(
        "compacted-out-shown",
        "reader/decode/passes/messages.py",
        "if compacted != 0 or full:",
        "if full:",
        "messages that Pulsar's compaction took out are rows",
        (f"{_MESSAGES}::test_batch",),
    ),
    Mutation(
        "null-value-shown-as-empty",
        "reader/decode/passes/single_message.py",
        "rows[tables.R_PAYLOAD_LENGTH, r] = -1 if flags & tables.NULL_VALUE else size",
        "rows[tables.R_PAYLOAD_LENGTH, r] = size",
        "tombstones in batches are empty values: compacted views keep deleted keys",
        (f"{_MESSAGES}::test_batch",),
    ),
    Mutation(
        "checksum-ignored",
        "reader/decode/passes/entry_headers.py",
        "if crc32c(buf, at, end - at) != stated:",
        "if stated < 0:",
        "bytes that a disk or a network has changed are shown as if they were sent",
        (f"{_RESCUE}::test_broker_metadata_is_outside_of_the_checksum",),
    ),
    Mutation(
        "marker-shown",
        "reader/decode/passes/entry_headers.py",
        "if marker:\n"
        "        entries[tables.E_FLAGS, i] = flags\n"
        "        entries[tables.E_KIND, i] = tables.HIDDEN",
        "if marker:\n"
        "        entries[tables.E_FLAGS, i] = flags\n"
        "        entries[tables.E_KIND, i] = tables.MESSAGES",
        "markers of transactions and of replication are rows",
        (f"{_RESCUE}::test_markers_are_no_rows",),
    ),
    Mutation(
        "digest-ignored",
        "reader/bookkeeper/digest.py",
        "good[i] = hmac.compare_digest(found, bytes(stored))",
        "good[i] = len(found) == len(stored)",
        "a damaged or forged copy of one bookie is shown though another bookie has the entry",
        ("tests/unit/bookkeeper/test_digest.py::test_every_flipped_byte_is_caught",),
    ),
    Mutation(
        "chunks-in-any-order",
        "reader/decode/chunk_sequence.py",
        "fits = chunk.chunk_id == len(sequence) and chunk.num_chunks == chunks[0].num_chunks",
        "fits = chunk.num_chunks == chunks[0].num_chunks",
        "a message with a missing chunk is shown with the others joined",
        (_CHUNKS,),
    ),
    Mutation(
        "first-chunk-does-not-begin-anew",
        "reader/decode/chunk_sequence.py",
        "if chunk.chunk_id == 0:\n        sequence = NO_CHUNKS\n    elif chunk",
        "if chunk",
        "a message that its producer has sent again from its first chunk is no row",
        (_CHUNKS,),
    ),
    Mutation(
        "aborted-transactions-shown",
        "reader/decode/aborted_transactions.py",
        "self._aborted |= {one: one in aborted for one in unknown}",
        "self._aborted |= {one: one not in unknown for one in aborted}",
        "messages of aborted transactions are rows",
        (_CHUNKS,),
    ),
    Mutation(
        "marker-of-an-abort-believed",
        "reader/decode/aborted_transactions.py",
        "return one in self._aborted or self._all_say_commit.get(one, False)",
        "return one in self._aborted or one in self._all_say_commit",
        "a marker that any producer may write decides what became of a transaction",
        (_CHUNKS,),
    ),
    Mutation(
        "transaction-that-nobody-decides-shown",
        "reader/decode/aborted_transactions.py",
        "if not all(one in self._all_say_commit for one in unknown):\n                raise",
        "if any(one in self._all_say_commit for one in unknown):\n                raise",
        "where the broker cannot tell, messages of aborted transactions are rows or an error",
        (_RESCUE, _CHUNKS),
    ),
    Mutation(
        "plain-text-stored",
        "reader/encode/encryption.py",
        "self._cipher.encrypt(nonce, payload, None)",
        "payload",
        "rows that were to be encrypted lie in Pulsar in the clear",
        ("tests/unit/encode/messages/test_encryption.py",),
    ),
    Mutation(
        "one-key-of-many-is-tried",
        "reader/decode/encryption/decryption.py",
        "if cipher is None:\n                continue",
        "if cipher is None:\n                break",
        "messages encrypted for several keys are NULL with an error for who has the second one",
        ("tests/unit/decode/test_decryption.py",),
    ),
)
