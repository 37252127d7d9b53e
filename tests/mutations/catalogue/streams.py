"""Positions of streams, and what they say of losses."""

from tests.mutations.mutation import Mutation

_STREAMS = "tests/simulation/test_streams.py"
_HISTORIES = "tests/simulation/test_histories.py"
_PARTS = "tests/unit/spark/planner/test_streams.py"
_LIMITS = "tests/unit/stream/test_limits.py"

MUTATIONS = (
    Mutation(
        "starting-position-off-by-one",
        "reader/stream/topic_stream.py",
        "at = wanted if last else wanted.before",
        "at = wanted",
        "a stream leaves out the message at its startingPosition",
        ("tests/unit/stream/test_positions.py",),
    ),
    Mutation(
        "ending-time-is-exclusive",
        "reader/stream/topic_stream.py",
        "ending = replace(ending, time=ending.time + 1)",
        "ending = replace(ending, time=ending.time)",
        "a stream leaves out what was published at the very time of its endingPosition",
        ("tests/unit/stream/test_positions.py",),
    ),
    Mutation(
        "given-up-rows-alone-are-no-news",
        "reader/stream/topic_stream.py",
        "if to.at > since.at or to.given_up > since.given_up:",
        "if to.at > since.at:",
        "rows of a given-up chunked message never come in a stream of an idle topic",
        (_STREAMS,),
    ),
    Mutation(
        "idle-partition-counts-as-lost",
        "reader/stream/losses.py",
        "if since.at < found[0] and since.expired != found:",
        "if since.at.ledger <= found[0].ledger and since.expired != found:",
        "a stream of an idle partition stops for good once rows expired that it had read",
        (_STREAMS, _HISTORIES),
    ),
    Mutation(
        "stream-beside-another-table",
        "reader/stream/known_topic.py",
        "table = self._held(listed, table)",
        "pass",
        "a stream that does not see the table reads the rows that Pulsar still has, and no others",
        ("tests/unit/stream/test_losses.py",),
    ),
    Mutation(
        "expired-rows-passed-over",
        "reader/stream/losses.py",
        "if since.at < found[0] and since.expired != found:",
        "if since.at > found[0] and since.expired != found:",
        "a stream passes over rows that expired before it has read them",
        ("tests/unit/stream/test_losses.py",),
    ),
    Mutation(
        "deleted-ledger-passed-over",
        "reader/stream/losses.py",
        "elif not self._is_there(listing, table, since.at.ledger):",
        "elif table is None and not self._is_there(listing, table, since.at.ledger):",
        "a stream goes on behind deleted messages without a word",
        (_STREAMS, _HISTORIES),
    ),
    Mutation(
        "first-messages-of-an-empty-partition",
        "reader/stream/losses.py",
        "if missing(listing, table) > since.missing:",
        "if missing(listing, table) < since.missing:",
        "a stream that began on an empty topic misses its first messages without a word",
        (_STREAMS, _HISTORIES),
    ),
    Mutation(
        "losses-of-long-ago-forgotten",
        "reader/stream/losses.py",
        "if upto is None or since.ledger >= upto:\n        return",
        "if upto is None or since.ledger <= upto:\n        return",
        "a stream says nothing of a loss that the log has forgotten",
        (_STREAMS,),
    ),
    Mutation(
        "batch-of-one-row-more",
        "reader/stream/limits.py",
        "fits &= np.cumsum(column[order]) <= most",
        "fits &= np.cumsum(column[order]) <= most + 1",
        "micro-batches have more rows than maxMessagesPerTrigger",
        (_LIMITS,),
    ),
    Mutation(
        "one-message-from-the-future",
        "reader/stream/limits.py",
        'np.searchsorted(queue.known.times, frontier, side="right")',
        'np.searchsorted(queue.known.times, frontier, side="left")',
        "one message of a producer whose clock is ahead makes a limited stream hold the whole "
        "backlog in memory",
        (_LIMITS,),
    ),
    Mutation(
        "entry-behind-a-batch-left-out",
        "reader/stream/limits.py",
        "self.entries = self.entries.after(count)",
        "self.entries = self.entries.after(count + 1)",
        "a limited stream leaves out an entry between two micro-batches",
        (_LIMITS,),
    ),
    Mutation(
        "expired-position-not-kept",
        "reader/stream/offsets.py",
        '"expired": _expired_json(one.expired),',
        '"expired": None,',
        "a restarted stream stops with a loss that was none, or passes over one",
        ("tests/unit/stream/test_offsets.py",),
    ),
    Mutation(
        "late-entries-out-of-order",
        "reader/stream/limits.py",
        "kept = behind & (rank >= np.maximum.accumulate(rank))",
        "kept = behind",
        "a row that lies in a file of its own is in two micro-batches, or those behind it are",
        (_LIMITS,),
    ),
    Mutation(
        "stream-first-row-of-a-cut-file",
        "reader/plan/filters.py",
        '_compared(">", ">=", first),',
        '_compared(">", ">", first),',
        "a micro-batch that begins inside a file leaves out its first entry",
        (_PARTS,),
    ),
    Mutation(
        "stream-ciphertext-not-decrypted",
        "spark_ext/planner/streams.py",
        "            if decrypts:\n                hot.setdefault(Tier.PARQUET, 0)\n",
        "",
        "encrypted messages that were offloaded are in no micro-batch, though the "
        "keys are configured",
        (_PARTS,),
    ),
    Mutation(
        "a-new-table-not-looked-for",
        "reader/stream/known_topic.py",
        "_TABLE_SECONDS = 5.0",
        "_TABLE_SECONDS = 1e12",
        "a stream plans by the table that its driver saw first, until it is started again",
        ("tests/simulation/test_streams.py",),
    ),
)
