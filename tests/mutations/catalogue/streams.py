"""Positions of streams, and what they say of losses."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
starting-position-off-by-one: a stream leaves out the message at its startingPosition
reader/stream/topic_stream.py: tests/unit/stream/test_positions.py
- at = wanted if last else wanted.before
+ at = wanted

ending-time-is-exclusive: a stream leaves out what was published at the very time of its
    endingPosition
reader/stream/topic_stream.py: tests/unit/stream/test_positions.py
- ending = replace(ending, time=ending.time + 1)
+ ending = replace(ending, time=ending.time)

given-up-rows-alone-are-no-news: rows of a given-up chunked message never come in a stream of an
    idle topic
reader/stream/topic_stream.py: tests/simulation/test_streams.py
- if to.at > since.at or to.given_up > since.given_up:
+ if to.at > since.at:

idle-partition-counts-as-lost: a stream of an idle partition stops for good once rows expired that
    it had read
reader/stream/losses.py: tests/simulation/test_streams.py tests/simulation/test_histories.py
- if since.at < found[0] and since.expired != found:
+ if since.at.ledger <= found[0].ledger and since.expired != found:

stream-beside-another-table: a stream that does not see the table reads the rows that Pulsar still
    has, and no others
reader/stream/known_topic.py: tests/unit/stream/test_losses.py
- table = self._held(listed, table)
+ pass

expired-rows-passed-over: a stream passes over rows that expired before it has read them
reader/stream/losses.py: tests/unit/stream/test_losses.py
- if since.at < found[0] and since.expired != found:
+ if since.at > found[0] and since.expired != found:

deleted-ledger-passed-over: a stream goes on behind deleted messages without a word
reader/stream/losses.py: tests/simulation/test_streams.py tests/simulation/test_histories.py
- elif not self._is_there(listing, table, since.at.ledger):
+ elif table is None and not self._is_there(listing, table, since.at.ledger):

first-messages-of-an-empty-partition: a stream that began on an empty topic misses its first
    messages without a word
reader/stream/losses.py: tests/simulation/test_streams.py tests/simulation/test_histories.py
- if missing(listing, table) > since.missing:
+ if missing(listing, table) < since.missing:

losses-of-long-ago-forgotten: a stream says nothing of a loss that the log has forgotten
reader/stream/losses.py: tests/simulation/test_streams.py
- if upto is None or since.ledger >= upto:
-         return
+ if upto is None or since.ledger <= upto:
+         return

batch-of-one-row-more: micro-batches have more rows than maxMessagesPerTrigger
reader/stream/limits.py: tests/unit/stream/test_limits.py
- fits &= np.cumsum(column[order]) <= most
+ fits &= np.cumsum(column[order]) <= most + 1

one-message-from-the-future: one message of a producer whose clock is ahead makes a limited stream
    hold the whole backlog in memory
reader/stream/limits.py: tests/unit/stream/test_limits.py
- np.searchsorted(queue.known.times, frontier, side="right")
+ np.searchsorted(queue.known.times, frontier, side="left")

entry-behind-a-batch-left-out: a limited stream leaves out an entry between two micro-batches
reader/stream/limits.py: tests/unit/stream/test_limits.py
- self.entries = self.entries.after(count)
+ self.entries = self.entries.after(count + 1)

expired-position-not-kept: a restarted stream stops with a loss that was none, or passes over one
reader/stream/offsets.py: tests/unit/stream/test_offsets.py
- "expired": _expired_json(one.expired),
+ "expired": None,

late-entries-out-of-order: a row that lies in a file of its own is in two micro-batches, or those
    behind it are
reader/stream/limits.py: tests/unit/stream/test_limits.py
- kept = behind & (rank >= np.maximum.accumulate(rank))
+ kept = behind

stream-first-row-of-a-cut-file: a micro-batch that begins inside a file leaves out its first entry
reader/plan/filters.py: tests/unit/spark/planner/test_streams.py
- _compared(">", ">=", first),
+ _compared(">", ">", first),

stream-ciphertext-not-decrypted: encrypted messages that were offloaded are in no micro-batch,
    though the keys are configured
spark_ext/planner/streams.py: tests/unit/spark/planner/test_streams.py
-             if decrypts:
-                 hot.setdefault(Tier.PARQUET, 0)
-

a-new-table-not-looked-for: a stream plans by the table that its driver saw first, until it is
    started again
reader/stream/known_topic.py: tests/simulation/test_streams.py
- _TABLE_SECONDS = 5.0
+ _TABLE_SECONDS = 1e12
""")
