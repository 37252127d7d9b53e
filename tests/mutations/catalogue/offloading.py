"""Holds, and which ledgers are due when."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
hold-released-early: Pulsar deletes ledgers that queries which began before the commit still read
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
- if age_ms >= grace_ms:
+ if age_ms >= 0:

grace-in-seconds: Pulsar deletes ledgers some milliseconds after the commit, under running queries
offloader/turn/holding.py: tests/unit/offloader/test_turn.py
- grace_ms=int(grace.total_seconds() * 1000),
+ grace_ms=int(grace.total_seconds()),

hold-moved-past-the-watermark: Pulsar deletes a ledger that no table has: its messages are lost
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
- if ledger.ledger_id > watermark:
-             return Position(ledger.ledger_id, 0)
+ if ledger.ledger_id > watermark + 1:
+             return Position(ledger.ledger_id, 0)

hold-past-an-incomplete-message: Pulsar deletes the first chunks of a message before its last one
    comes
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
- if lookback is not None and listing.ledgers:
+ if lookback is not None and not listing.ledgers:

missing-hold-not-made-again: a hold that somebody deleted stays away: Pulsar deletes what no table
    has
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
- return [one for one, listing in listed.items() if name not in listing.cursors]
+ return [one for one, listing in listed.items() if not name]

hold-of-another-table-moved: two tables share a hold: Pulsar deletes what the slower one does not
    have yet
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
    tests/unit/turns/test_table_in_sight.py
- if held.uri != table.uri:
-         raise
+ if held.uri == table.uri and not held.id:
+         raise

strayed-hold-stays: after a TTL or a reset by hand Pulsar deletes what it still had, and no table
    has
offloader/turn/holding.py: tests/unit/offloader/test_turn.py
-             self._admin.move_hold(one.partition, self._name, one.after)
-

seen-loss-forgotten: a loss that the offloader has seen is in no commit: queries give fewer rows
    without a word
offloader/subscription/gap_tracker.py: tests/unit/turns/test_gaps.py
- {*filled_above(listing, watermark), *(loss.ledger for loss in gone)}
+ set(filled_above(listing, watermark))

ledger-behind-a-waiting-one: a ledger that waits for a transaction is stepped over: its messages are
    lost
offloader/backlog/policy.py: tests/unit/backlog/test_policy.py
- > partition.max_read:
-             break
+ > partition.max_read:
+             continue

open-ledger-offloaded: an open ledger is offloaded: what is written to it later is lost
offloader/backlog/policy.py: tests/unit/backlog/test_policy.py
- if i == len(partition.ledgers) - 1 and not (partition.terminated and ledger.closed):
+ if i == len(partition.ledgers) and not (partition.terminated and ledger.closed):

ages-in-other-units: offload.max_age of ten minutes lasts a week
offloader/backlog/policy.py: tests/unit/backlog/test_policy.py
- age = (clock_ms - oldest_ms) / 1000
+ age = (clock_ms - oldest_ms) / 1_000_000

given-up-at-once: chunked messages that are still being sent are rescued rows
offloader/turn/chunk_timeouts.py: tests/unit/turns/test_giving_up.py
- then = listing.listed_at - timeout_ms
+ then = listing.listed_at - timeout_ms // 1000

given-up-though-completed: a chunked message that the log completes in a later ledger is rescued
    rows
offloader/turn/chunk_timeouts.py: tests/unit/turns/test_giving_up.py
- if end.kept or (anew and not _is_over(now, again_at)):
+ if anew and not _is_over(now, again_at):

no-pause-after-a-failure: topics that fail are tried as often as all others, which wait for them
offloader/model/retry_policy.py: tests/unit/schedule/test_queue.py
- longest = min(first * 2.0 ** min(times - 1, 60), max(first, BACK_OFF_MOST))
+ longest = min(first, max(first, BACK_OFF_MOST))

overrides-of-a-topic-ignored: [[offload.override]] decides nothing of when a topic is offloaded
offloader/schedule/queue.py: tests/unit/schedule/test_queue.py
- config = settings_of(self._config, topic)
+ config = self._config

rows-of-a-pack-counted-once-a-ledger: a ledger whose rows lie in several files has too few in
    segments and count(*)
offloader/convert/due_segments.py: tests/unit/offloader/test_due_ledgers.py
- rows=sum(part.rows for part in parts),
+ rows=max((part.rows for part in parts), default=0),

strayed-hold-without-lookback: a hold that a TTL moved past the first chunks of an incomplete
    message stays there: Pulsar deletes them
offloader/subscription/hold.py: tests/unit/offloader/test_hold.py
- needed = next_needed(listing, watermark, lookback)
+ needed = next_needed(listing, watermark, None)

roll-over-forgets-counters: a loss that the brokers' counters show is forgotten once the offloader
    unloads the topic
offloader/turn/topic_offloader.py: tests/unit/turns/test_gaps.py
-             self._tracker.lost(self._tables.newest(topic), listed)
-         for partition in old:
+             pass
+         for partition in old:

other-tables-hold-moved-back: the hold of another table is moved back, and nobody is told that two
    tables share it
offloader/turn/holding.py: tests/unit/offloader/test_turn.py
-             hold.require_own(self._admin, one.partition, self._name, uri)
-

any-failure-is-another-offloaders: each failed conversion is tried three times, and its error blames
    another offloader
offloader/turn/topic_offloader.py: tests/unit/offloader/test_turn.py
- table.watermark(one.partition) > one.watermark for one in chosen
+ table.watermark(one.partition) >= one.watermark for one in chosen

broker-ahead-ignored: where the brokers' clock differs, ledgers are offloaded later than max_age by
    as much
offloader/schedule/next_turn.py: tests/unit/schedule/test_queue.py
- pauses.append(backlog.oldest + age - observation.at - observation.brokers_ahead)
+ pauses.append(backlog.oldest + age - observation.at)
""")
