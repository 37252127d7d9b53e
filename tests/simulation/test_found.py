"""Histories that gave wrong rows once, each as short as it got.

The first ten are the points 1 to 10 of an attack on the code of commit c4e3b65, in its order.
"""

from tests.simulation.run import check
from tests.simulation.steps import Step
from tests.simulation.world import Settings


def test_a_chunked_message_that_ends_in_a_later_ledger_is_not_given_up() -> None:
    check(
        Settings(wildcard=False),
        Step("chunk", 0, 3),
        Step("seal"),
        Step("chunk", 0, 3),
        Step("chunk", 0, 3),
        Step("advance", 2),
        Step("turn"),
        Step("seal"),
        Step("turn"),
        Step("query", 0, 1),
    )


def test_a_message_that_was_given_up_is_one_row_in_all_later_commits() -> None:
    check(
        Settings(wildcard=False),
        Step("chunk", 0, 14),  # its producer's clock is a day ahead
        Step("chunk", 0, 24),  # this one's is behind
        Step("seal"),
        Step("turn"),
        Step("advance", 2),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("query", 0, 1),
    )


def test_an_open_transaction_stays_hidden_while_its_broker_recovers() -> None:
    check(
        Settings(broker_times=False, transactions=True),
        Step("transaction"),
        Step("seal", 0, 2),
        Step("query"),
        Step("turn"),
        Step("transaction", 0, 2),
        Step("settle"),
    )


def test_what_was_learned_of_a_ledger_is_not_believed_of_another_cluster_s() -> None:
    check(
        Settings(broker_times=False),
        Step("publish"),
        Step("seal"),
        Step("query", 0, 1),
        Step("wipe"),
        Step("publish", 0, 3),
        Step("seal"),
        Step("count"),
        Step("query", 0, 4),
    )


def test_ledger_ids_that_a_restored_cluster_gives_again_are_not_cold() -> None:
    check(
        Settings(broker_times=False),
        Step("backup"),
        Step("seal"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("restore"),
        Step("publish"),
        Step("query"),
        Step("seal"),
        Step("turn"),
        Step("query", 0, 1),
    )


def test_a_pinned_query_says_that_its_ledger_was_lost_and_stepped_over() -> None:
    check(
        Settings(),
        Step("round"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("publish"),
        Step("seal"),
        Step("pin", 0, 1),
        Step("time_to_live"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("run_pinned"),
    )


def test_a_forced_tier_is_refused_after_the_log_was_cleaned_up() -> None:
    check(
        Settings(wildcard=False),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("trim"),
        *(Step("advance", 6),) * 4,
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("clean_log"),
        Step("query"),
    )


def test_a_query_misses_its_table() -> None:
    check(Settings(), Step("publish"), Step("seal"), Step("turn"), Step("trim"), Step("hide"))


def test_an_added_partition_is_held_after_a_round() -> None:
    check(
        Settings(partitions=1, wildcard=False), Step("round"), Step("add_partitions"), Step("round")
    )


def test_an_added_partition_has_the_first_ones_properties() -> None:
    check(
        Settings(partitions=1, wildcard=False),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("add_partitions", 0, 1),
        Step("turn"),
    )


def test_a_broker_lags_that_tells_when_ledgers_were_closed() -> None:
    check(
        Settings(),
        Step("publish"),
        Step("seal"),
        Step("publish"),
        Step("seal"),
        Step("lag"),
        Step("turn"),
        Step("lag"),
        Step("query", 0, 1),
        Step("turn"),
    )


def test_rows_before_an_unsupported_one_come_once() -> None:
    check(
        Settings(wildcard=False, broker_times=False),
        Step("publish", 0, 776),
        Step("publish", 0, 911),
        *(Step("stumble", 0, at) for at in range(12, 36)),
    )


def test_a_forced_tier_of_a_deleted_topic_is_refused() -> None:
    check(
        Settings(wildcard=False), Step("publish"), Step("seal"), Step("turn"), Step("remake", 0, 0)
    )


def test_an_abandoned_message_on_an_idle_topic_does_not_hold_for_ever() -> None:
    check(Settings(wildcard=False), Step("chunk", 0, 3), Step("seal"), Step("turn"), Step("idle"))


def test_a_pinned_query_has_no_row_of_what_was_given_up_since() -> None:
    check(
        Settings(broker_times=False, grace_minutes=10),
        Step("chunk"),
        Step("pin"),
        Step("idle"),
        Step("trim"),
        Step("run_pinned"),
    )


def test_through_the_broker_nothing_is_looked_back_to_that_was_given_up() -> None:
    """Seed 696: all ledgers were forced to the broker, those of the table as well."""
    check(
        Settings(wildcard=False, broker_times=False, schemas=True, broker=True),
        Step("chunk", 0, 3),
        Step("seal", 0, 0),
        Step("chunk", 0, 3),
        Step("advance", 2, 0),
        Step("turn", 0, 0),
        Step("seal", 0, 0),
        Step("turn", 0, 0),
        Step("query", 0, 1),
    )


def test_messages_of_ledgers_that_are_decoded_together_are_as_old_as_their_own_ledgers() -> None:
    """Seed 9400819: a message without a schema, and a ledger that was opened after it."""
    check(
        Settings(partitions=2, wildcard=False, retention_hours=3, schemas=True, late_schema=True),
        Step("publish"),
        Step("seal"),
        Step("between", 281, 125),
        Step("settle"),
    )


def test_a_refused_entry_is_not_believed_once_those_behind_it_were_consumed() -> None:
    """Seed 80042: the broker's word counted for what the target had deleted."""
    check(
        Settings(wildcard=False, broker_times=False),
        Step("sink_incident", 241, 615),
        Step("sink", 0, 274),
        Step("sink_meet", 0, 837),
        Step("seal"),
        Step("sink_trim"),
        Step("sink", 0, 125),
    )
