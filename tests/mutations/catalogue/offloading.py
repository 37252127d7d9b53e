"""Holds, and which ledgers are due when."""

from tests.mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

_HOLD = "tests/unit/offloader/test_hold.py"
_SAFETY = "tests/offload/test_hold_safety.py"

MUTATIONS = (
    Mutation(
        "hold-released-early",
        "offloader/subscription/hold.py",
        "if age_ms >= grace_ms:",
        "if age_ms >= 0:",
        "Pulsar deletes ledgers that queries which began before the commit still read",
        (_HOLD,),
    ),
    Mutation(
        "grace-in-seconds",
        "offloader/turn/holding.py",
        "grace_ms=int(grace.total_seconds() * 1000),",
        "grace_ms=int(grace.total_seconds()),",
        "Pulsar deletes ledgers some milliseconds after the commit, under running queries",
        ("tests/unit/offloader/test_turn.py",),
        ("tests/offload/test_turn.py",),
    ),
    Mutation(
        "hold-moved-past-the-watermark",
        "offloader/subscription/hold.py",
        "if ledger.ledger_id > watermark:\n            return Position(ledger.ledger_id, 0)",
        "if ledger.ledger_id > watermark + 1:\n            return Position(ledger.ledger_id, 0)",
        "Pulsar deletes a ledger that no table has: its messages are lost",
        (_HOLD,),
    ),
    Mutation(
        "hold-past-an-incomplete-message",
        "offloader/subscription/hold.py",
        "if lookback is not None and listing.ledgers:",
        "if lookback is not None and not listing.ledgers:",
        "Pulsar deletes the first chunks of a message before its last one comes",
        (_HOLD,),
    ),
    Mutation(
        "missing-hold-not-made-again",
        "offloader/subscription/hold.py",
        "return [one for one, listing in listed.items() if name not in listing.cursors]",
        "return [one for one, listing in listed.items() if not name]",
        "a hold that somebody deleted stays away: Pulsar deletes what no table has",
        (_HOLD,),
    ),
    Mutation(
        "hold-of-another-table-moved",
        "offloader/subscription/hold.py",
        "if held.uri != table.uri:\n        raise",
        "if held.uri == table.uri and not held.id:\n        raise",
        "two tables share a hold: Pulsar deletes what the slower one does not have yet",
        (_HOLD, "tests/unit/turns/test_table_in_sight.py"),
        ("tests/offload/test_hold_owner.py",),
    ),
    Mutation(
        "strayed-hold-stays",
        "offloader/turn/holding.py",
        "            self._admin.move_hold(one.partition, self._name, one.after)\n",
        "",
        "after a TTL or a reset by hand Pulsar deletes what it still had, and no table has",
        ("tests/unit/offloader/test_turn.py",),
        (f"{_SAFETY}::test_a_hold_that_was_moved_is_moved_back",),
    ),
    Mutation(
        "seen-loss-forgotten",
        "offloader/subscription/gap_tracker.py",
        "{*filled_above(listing, watermark), *(loss.ledger for loss in gone)}",
        "set(filled_above(listing, watermark))",
        "a loss that the offloader has seen is in no commit: queries give fewer rows without a "
        "word",
        ("tests/unit/turns/test_gaps.py",),
    ),
    Mutation(
        "ledger-behind-a-waiting-one",
        "offloader/schedule/policy.py",
        "> partition.max_read:\n            break",
        "> partition.max_read:\n            continue",
        "a ledger that waits for a transaction is stepped over: its messages are lost",
        ("tests/unit/schedule/test_policy.py",),
    ),
    Mutation(
        "open-ledger-offloaded",
        "offloader/schedule/policy.py",
        "if i == len(partition.ledgers) - 1 and not (partition.terminated and ledger.closed):",
        "if i == len(partition.ledgers) and not (partition.terminated and ledger.closed):",
        "an open ledger is offloaded: what is written to it later is lost",
        ("tests/unit/schedule/test_policy.py",),
    ),
    Mutation(
        "ages-in-other-units",
        "offloader/schedule/policy.py",
        "age = (clock_ms - oldest_ms) / 1000",
        "age = (clock_ms - oldest_ms) / 1_000_000",
        "offload.max_age of ten minutes lasts a week",
        ("tests/unit/schedule/test_policy.py",),
    ),
    Mutation(
        "given-up-at-once",
        "offloader/turn/chunk_timeouts.py",
        "then = listing.listed_at - timeout_ms",
        "then = listing.listed_at - timeout_ms // 1000",
        "chunked messages that are still being sent are rescued rows",
        ("tests/unit/turns/test_giving_up.py",),
    ),
    Mutation(
        "given-up-though-completed",
        "offloader/turn/chunk_timeouts.py",
        "if end.kept or (anew and not _is_over(now, again_at)):",
        "if anew and not _is_over(now, again_at):",
        "a chunked message that the log completes in a later ledger is rescued rows",
        ("tests/unit/turns/test_giving_up.py",),
    ),
    Mutation(
        "no-pause-after-a-failure",
        "offloader/model/retry_policy.py",
        "longest = min(first * 2.0 ** min(times - 1, 60), max(first, BACK_OFF_MOST))",
        "longest = min(first, max(first, BACK_OFF_MOST))",
        "topics that fail are tried as often as all others, which wait for them",
        ("tests/unit/schedule/test_queue.py",),
    ),
    Mutation(
        "overrides-of-a-topic-ignored",
        "offloader/schedule/queue.py",
        "config = settings_of(self._config, topic)",
        "config = self._config",
        "[[offload.override]] decides nothing of when a topic is offloaded",
        ("tests/unit/schedule/test_queue.py",),
    ),
    Mutation(
        "rows-of-a-pack-counted-once-a-ledger",
        "offloader/convert/due_segments.py",
        "rows=sum(part.rows for part in parts),",
        "rows=max((part.rows for part in parts), default=0),",
        "a ledger whose rows lie in several files has too few in segments and count(*)",
        ("tests/unit/offloader/test_due_ledgers.py",),
        ("tests/offload/test_turn.py",),
    ),
)
