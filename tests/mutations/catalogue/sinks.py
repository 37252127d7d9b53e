"""Writes to topics: sequence ids, manifests, receipts."""

from tests.mutations.mutation import Mutation

_SENDING = "tests/unit/sink/sent/test_sending.py"

MUTATIONS = (
    Mutation(
        "planted-manifest-believed",
        "reader/sink/manifest.py",
        "if foreign is not None:\n            raise",
        "if foreign is not None and not found.files:\n            raise",
        "who may write below ~sink/ has a user's files sent to a topic, or deleted",
        ("tests/unit/sink/test_manifest.py",),
    ),
    Mutation(
        "sequence-ids-overlap",
        "reader/sink/manifest.py",
        "after[partition] = first + ids",
        "after[partition] = first + ids - 1",
        "the broker drops the first row of a micro-batch as a repeated one",
        ("tests/unit/sink/test_manifest.py",),
    ),
    Mutation(
        "unknown-sender-of-the-name",
        "reader/sink/sending.py",
        "if entries.before < producer.last_sequence < entries.first:",
        "if entries.first < producer.last_sequence < entries.before:",
        "after the storage was set back rows are sent again that the topic has",
        (_SENDING,),
    ),
    Mutation(
        "new-rows-dropped-as-repeated",
        "reader/sink/sending.py",
        "if producer.repeated and not self._began:",
        "if producer.repeated and self._began:",
        "rows that the broker takes for repeated ones are lost without a word",
        (_SENDING,),
    ),
    Mutation(
        "receipts-of-what-was-there-believed",
        "reader/sink/sending.py",
        "if self._repeated:\n            self._verify(",
        "if self._repeated and self._task.encrypted:\n            self._verify(",
        "an entry that was refused while the one behind it was stored is lost without a word",
        (_SENDING,),
    ),
    Mutation(
        "sent-entry-sent-again",
        "reader/sink/staging.py",
        "if sequence + entry.ids - 1 > beyond:",
        "if sequence + entry.ids > beyond:",
        "entries that have a receipt are sent again",
        ("tests/unit/sink/test_staging.py",),
    ),
    Mutation(
        "deduplication-not-waited-for",
        "reader/sink/deduplication.py",
        "while waiting := _not_yet(clients, waiting):\n        if clock() >= deadline:",
        "while (waiting := _not_yet(clients, waiting)) and not enable:\n"
        "        if clock() >= deadline:",
        "the first micro-batch is sent before brokers drop repeated rows: a retry doubles it",
        ("tests/unit/sink/sent/test_deduplication.py",),
    ),
    Mutation(
        "search-bounded-by-another-log",
        "reader/sink/arrived.py",
        "self._end = entries.end.last if same_log else BEFORE_ALL",
        "self._end = entries.end.last",
        "rows that a topic made again already has are sent twice",
        ("tests/unit/sink/sent/test_arrived.py",),
    ),
    Mutation(
        "hidden-end-of-the-log-ignored",
        "reader/sink/arrived.py",
        "self.hidden = listing.recovering or listing.max_read < listing.last_confirmed",
        "self.hidden = listing.recovering and listing.max_read < listing.last_confirmed",
        "rows behind an open transaction of others are sent twice",
        ("tests/unit/sink/sent/test_arrived.py",),
    ),
    Mutation(
        "window-never-waits",
        "reader/pulsar/binary/producer.py",
        "if not came and waited >= 4 * self._timeout:",
        "if not came and waited >= 4000 * self._timeout:",
        "a write hangs for a day where a broker answers and stores nothing",
        ("tests/unit/pulsar/binary/test_producer.py",),
    ),
    Mutation(
        "refused-entry-goes-on",
        "reader/pulsar/binary/producer.py",
        "self.refused = True\n                    self.connection.close()\n",
        "self.refused = True\n",
        "entries behind a refused one are stored: the refused one can never be sent again",
        ("tests/unit/pulsar/binary/test_producer.py", "tests/unit/pulsar/binary"),
    ),
    Mutation(
        "files-deleted-before-a-manifest-is-sent",
        "reader/sink/writes.py",
        "        objects.put(self._path(manifest.version), done.to_bytes())\n"
        "        self._latest = done\n"
        "        objects.delete(manifest.files)\n",
        "        objects.delete(manifest.files)\n"
        "        objects.put(self._path(manifest.version), done.to_bytes())\n"
        "        self._latest = done\n",
        "a driver that dies in between leaves a write that nobody can end",
        ("tests/unit/sink/test_interrupted_writes.py",),
    ),
    Mutation(
        "manifests-forgotten-last",
        "reader/sink/writes.py",
        "        objects.delete(manifests)  # first: one whose files are gone could never be sent\n"
        "        objects.delete([path for path in paths if path not in manifests])\n",
        "        objects.delete([path for path in paths if path not in manifests])\n"
        "        objects.delete(manifests)\n",
        "a driver that dies in between leaves a write that nobody can end",
        ("tests/unit/sink/test_interrupted_writes.py",),
    ),
    Mutation(
        "ids-of-another-planner-forgotten",
        "spark_ext/planner/sinks.py",
        "found.assume(asdict(write.state))",
        "pass",
        "after its planner has died a batch goes on with a new name of a producer",
        ("tests/unit/spark/planner/test_sinks.py",),
    ),
    Mutation(
        "half-known-name-taken-for-known",
        "reader/sink/sending.py",
        "known = producer.last_sequence >= max(self._entries.before, 0)",
        "known = producer.last_sequence >= 0",
        "where the broker remembers an earlier version alone, a whole write is sent again",
        (_SENDING,),
    ),
)
