"""Histories with a stream: each row once and in order, or an error with a reason."""

import pytest

from tests.simulation.run import check
from tests.simulation.steps import do, steps_of
from tests.simulation.world import Settings, new_world


def test_one_message_from_the_future_leaves_the_backlog_where_it_is() -> None:
    # "stream 4" reads three messages a batch.
    check(Settings(), "burst 0 1, burst, stream 4, stream 0 1, stream 0 10")


def test_ledgers_that_were_lost_before_the_offloader_began_are_told() -> None:
    check(
        Settings(),
        "publish, stream, stream 0 10, publish, seal, publish, seal, trim, publish, seal, turn, "
        "stream 0 10",
    )


def test_a_ledger_that_was_read_and_is_in_no_commit_is_told() -> None:
    """Nothing in the log says that there was one, but that the stream has read it."""
    check(
        Settings(),
        "publish, seal, turn, stream, publish, stream 0 10, publish, seal, delete_hold, publish, "
        "seal, turn, stream 0 10",
    )


@pytest.mark.parametrize("offloaded", ["", ", roll, turn, publish"], ids=["False", "True"])
def test_the_first_messages_of_a_topic_that_was_empty_are_told(offloaded: str) -> None:
    check(Settings(), f"stream, publish, roll, trim, publish{offloaded}, stream 0 10")


def test_a_loss_that_the_log_has_forgotten_is_told() -> None:
    check(
        Settings(),
        "publish, seal, turn, stream, stream 0 10, publish, turn, seal, time_to_live, publish, "
        "seal, turn, advance 6, advance 6, advance 6, advance 6, publish, seal, turn, clean_log, "
        "stream 0 10",
    )


@pytest.mark.parametrize("again", ["", ", publish"], ids=["False", "True"])
def test_a_partition_that_is_idle_for_a_month_has_lost_nothing(again: str) -> None:
    """Its rows have expired, and the log has forgotten them; another partition is busy."""
    day = "publish 1, seal 1, turn, stream 0 10, advance 5"
    _check_lossless(
        Settings(partitions=2, retention_hours=3),
        f"publish, publish 1, stream, stream 0 10, seal, {day}, trim, maintain 0 1, {day}, "
        "advance 6, advance 6, advance 6, advance 6, maintain 0 1, clean_log"
        f"{again}, {day}, maintain 0 1, stream 0 10",
    )


def _check_lossless(settings: Settings, history: str) -> None:
    """The stream that began is there at the end: no error, true or not, has ended it."""
    with new_world(settings) as world:
        streams = []
        for step in steps_of(history):
            do(world, [step])
            streams.append(world.stream)
        begun = next(stream for stream in streams if stream is not None)
        assert begun is not None
        assert streams[-1] is begun


def test_a_stream_goes_on_behind_an_idle_partition_that_pulsar_has_deleted() -> None:
    """If it may (failOnDataLoss=false), in the one that was made again."""
    with new_world(Settings(partitions=2)) as world:
        do(world, steps_of("publish, publish 1, stream 7, stream 0 10"))
        stream = world.stream
        assert stream is not None
        do(world, steps_of("idle 1, publish, stream 0 10"))
        assert not stream.told
        do(world, steps_of("publish 1, stream 0 10"))
        assert world.stream is stream
        [told] = stream.told
        assert "orders-partition-1 was deleted and made again" in told
        do(world, steps_of("publish 1, stream 0 10"))
        assert len(stream.told) == 1
        assert [row[1] for _, _, rows in stream.batches for row in rows] == [
            b"m1", b"m2", b"m3", b"m4", b"m5",
        ]  # fmt: skip


@pytest.mark.parametrize("begin", ["stream", "stream 0 3"], ids=["earliest", "latest"])
def test_a_stream_begins_on_a_topic_that_was_made_again_and_is_empty(begin: str) -> None:
    """Its first offset lies in what the table has of the earlier topic."""
    _check_lossless(
        Settings(),
        f"publish, seal, turn, advance 2, remake, {begin}, stream 0 10, publish, seal, turn, "
        "advance 5, stream 0 10",
    )


@pytest.mark.parametrize("limit", [4, 0])
def test_a_stream_reads_a_topic_that_was_made_again_and_offloaded_again(limit: int) -> None:
    """The table has rows of both topics when the stream begins, and its batches end in both."""
    _check_lossless(
        Settings(),
        "publish, seal, turn, publish, seal, turn, advance 2, remake, publish, seal, turn, "
        f"publish, seal, turn, stream {limit}, stream 0 1, stream 0 1, stream 0 1, stream 0 10",
    )


def test_a_stream_goes_on_through_all_rows_of_a_topic_that_was_made_again_meanwhile() -> None:
    """If it may: through what the table has of the earlier topic behind where the stream was."""
    with new_world(Settings()) as world:
        do(world, steps_of("burst, seal, turn, stream 11"))
        stream = world.stream
        assert stream is not None
        do(world, steps_of("publish, seal, turn, publish, seal, turn, advance 2"))
        do(world, steps_of("remake, publish, seal, turn, publish, seal, turn"))
        do(world, steps_of("stream 0 1, " * 20 + "stream 0 10"))
        assert world.stream is stream
        [told] = stream.told
        assert "was deleted and made again" in told


def test_the_first_messages_of_a_topic_that_was_made_again_are_told() -> None:
    check(
        Settings(),
        "publish, seal, turn, advance 2, remake, stream 0 3, stream 0 10, publish, roll, trim, "
        "publish, stream 0 10",
    )


def test_a_batch_whose_late_row_has_expired_is_not_run_again_without_it() -> None:
    """The row of a message that was given up lies at a place before the batch (seed 3001277)."""
    check(
        Settings(partitions=1, wildcard=False, transactions=True, retention_hours=3),
        "chunk 0 275, stream, seal, stream, advance 514, crash 0 833, stream, maintain 0 315, "
        "replay 581",
    )


def test_a_limited_stream_goes_on_in_a_partition_that_was_made_again() -> None:
    """Its first entries wait in the planner for their turn, while others come (seed 4824)."""
    check(
        Settings(partitions=2, wildcard=False, transactions=True),
        # "stream 535" reads one message a batch.
        "stream 535, idle 217, publish 0 580, stream 0 221, publish 19 554, stream_meet 0 483, "
        "chunk 609, stream 0 44",
    )


def test_a_batch_without_rows_is_not_run_again_once_its_chunk_has_expired() -> None:
    """It has the first of two chunks; nobody can tell that no row expired with them (seed 3561)."""
    check(
        Settings(wildcard=False, retention_hours=3),
        "stream_meet, publish, stream, chunk 0 541, stream, chunk 0 148, advance 271, roll, "
        "chunk, stream_meet, stream, maintain 0 439, replay 367",
    )


def test_a_late_row_that_expires_before_it_is_read_is_told() -> None:
    """Nothing else was published, so only what was given up is behind the stream's offset."""
    with new_world(Settings(partitions=1, wildcard=False, retention_hours=3)) as world:
        do(world, steps_of("chunk 0 275, stream, stream 0 10, seal, advance 514"))
        assert world.stream is not None
        do(world, steps_of("turn, maintain 0 315, stream 0 10"))
        assert world.stream is None, "the stream ended with an error"


def test_a_late_row_that_was_read_may_expire() -> None:
    with new_world(Settings(partitions=1, wildcard=False, retention_hours=3)) as world:
        do(world, steps_of("chunk 0 275, stream, stream 0 10, seal, advance 514"))
        do(world, steps_of("turn, stream 0 10, maintain 0 315, publish, stream 0 10"))
        assert world.stream is not None


def test_a_batch_whose_message_was_given_up_meanwhile_is_read_a_moment_later() -> None:
    """Seed 70782: planned before it was given up, and read after its first ledger was trimmed."""
    check(
        Settings(wildcard=False),
        "stream, chunk 0 479, stream, seal, turn, publish, stream, advance 342, chunk 0 287, "
        "stream, stream_meet 405 754, stream_meet 266",
    )
