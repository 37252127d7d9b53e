"""Histories with a stream: each row once and in order, or an error with a reason."""

import pytest

from tests.simulation.run import check
from tests.simulation.steps import Step, do
from tests.simulation.world import Settings, new_world

_BEGIN = Step("stream")
_BEGIN_LATEST = [Step("stream", 0, 3)]
_DRAIN = Step("stream", 0, 10)


def test_one_message_from_the_future_leaves_the_backlog_where_it_is() -> None:
    check(
        Settings(),
        Step("burst", 0, 1),
        Step("burst"),
        Step("stream", 4),  # three messages a batch
        Step("stream", 0, 1),
        _DRAIN,
    )


def test_ledgers_that_were_lost_before_the_offloader_began_are_told() -> None:
    check(
        Settings(),
        Step("publish"),
        _BEGIN,
        _DRAIN,
        Step("publish"),
        Step("seal"),
        Step("publish"),
        Step("seal"),
        Step("trim"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        _DRAIN,
    )


def test_a_ledger_that_was_read_and_is_in_no_commit_is_told() -> None:
    """Nothing in the log says that there was one, but that the stream has read it."""
    check(
        Settings(),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        _BEGIN,
        Step("publish"),
        _DRAIN,
        Step("publish"),
        Step("seal"),
        Step("delete_hold"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        _DRAIN,
    )


@pytest.mark.parametrize("offloaded", [False, True])
def test_the_first_messages_of_a_topic_that_was_empty_are_told(offloaded: bool) -> None:
    check(
        Settings(),
        _BEGIN,
        Step("publish"),
        Step("roll"),
        Step("trim"),
        Step("publish"),
        *((Step("roll"), Step("turn"), Step("publish")) if offloaded else ()),
        _DRAIN,
    )


def test_a_loss_that_the_log_has_forgotten_is_told() -> None:
    check(
        Settings(),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        _BEGIN,
        _DRAIN,
        Step("publish"),
        Step("turn"),
        Step("seal"),
        Step("time_to_live"),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        *[Step("advance", 6)] * 4,
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("clean_log"),
        _DRAIN,
    )


@pytest.mark.parametrize("again", [False, True])
def test_a_partition_that_is_idle_for_a_month_has_lost_nothing(again: bool) -> None:
    """Its rows have expired, and the log has forgotten them; another partition is busy."""
    day = Step("publish", 1), Step("seal", 1), Step("turn"), _DRAIN, Step("advance", 5)
    _check_lossless(
        Settings(partitions=2, retention_hours=3),
        Step("publish"),
        Step("publish", 1),
        _BEGIN,
        _DRAIN,
        Step("seal"),
        *day,
        Step("trim"),
        Step("maintain", 0, 1),
        *day,
        *[Step("advance", 6)] * 4,
        Step("maintain", 0, 1),
        Step("clean_log"),
        *([Step("publish")] if again else []),
        *day,
        Step("maintain", 0, 1),
        _DRAIN,
    )


def _check_lossless(settings: Settings, *steps: Step) -> None:
    """The stream that began is there at the end: no error, true or not, has ended it."""
    with new_world(settings) as world:
        streams = []
        for step in steps:
            do(world, [step])
            streams.append(world.stream)
        begun = next(stream for stream in streams if stream is not None)
        assert begun is not None
        assert streams[-1] is begun


def test_a_stream_goes_on_behind_an_idle_partition_that_pulsar_has_deleted() -> None:
    """If it may (failOnDataLoss=false), in the one that was made again."""
    with new_world(Settings(partitions=2)) as world:
        do(world, [Step("publish"), Step("publish", 1), Step("stream", 7), _DRAIN])
        stream = world.stream
        assert stream is not None
        do(world, [Step("idle", 1), Step("publish"), _DRAIN])
        assert not stream.told
        do(world, [Step("publish", 1), _DRAIN])
        assert world.stream is stream
        [told] = stream.told
        assert "orders-partition-1 was deleted and made again" in told
        do(world, [Step("publish", 1), _DRAIN])
        assert len(stream.told) == 1
        assert [row[1] for _, _, rows in stream.batches for row in rows] == [
            b"m1", b"m2", b"m3", b"m4", b"m5",
        ]  # fmt: skip


@pytest.mark.parametrize("latest", [False, True])
def test_a_stream_begins_on_a_topic_that_was_made_again_and_is_empty(latest: bool) -> None:
    """Its first offset lies in what the table has of the earlier topic."""
    _check_lossless(
        Settings(),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("advance", 2),
        Step("remake"),
        *(_BEGIN_LATEST if latest else [_BEGIN]),
        _DRAIN,
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("advance", 5),
        _DRAIN,
    )


@pytest.mark.parametrize("limit", [4, 0])
def test_a_stream_reads_a_topic_that_was_made_again_and_offloaded_again(limit: int) -> None:
    """The table has rows of both topics when the stream begins, and its batches end in both."""
    _check_lossless(
        Settings(),
        *(Step("publish"), Step("seal"), Step("turn")) * 2,
        Step("advance", 2),
        Step("remake"),
        *(Step("publish"), Step("seal"), Step("turn")) * 2,
        Step("stream", limit),
        *[Step("stream", 0, 1)] * 3,
        _DRAIN,
    )


def test_a_stream_goes_on_through_all_rows_of_a_topic_that_was_made_again_meanwhile() -> None:
    """If it may: through what the table has of the earlier topic behind where the stream was."""
    with new_world(Settings()) as world:
        do(world, [Step("burst"), Step("seal"), Step("turn"), Step("stream", 11)])
        stream = world.stream
        assert stream is not None
        do(world, [*(Step("publish"), Step("seal"), Step("turn")) * 2, Step("advance", 2)])
        do(world, [Step("remake"), *(Step("publish"), Step("seal"), Step("turn")) * 2])
        do(world, [*[Step("stream", 0, 1)] * 20, _DRAIN])
        assert world.stream is stream
        [told] = stream.told
        assert "was deleted and made again" in told


def test_the_first_messages_of_a_topic_that_was_made_again_are_told() -> None:
    check(
        Settings(),
        Step("publish"),
        Step("seal"),
        Step("turn"),
        Step("advance", 2),
        Step("remake"),
        *_BEGIN_LATEST,
        _DRAIN,
        Step("publish"),
        Step("roll"),
        Step("trim"),
        Step("publish"),
        _DRAIN,
    )


def test_a_batch_whose_late_row_has_expired_is_not_run_again_without_it() -> None:
    """The row of a message that was given up lies at a place before the batch (seed 3001277)."""
    check(
        Settings(partitions=1, wildcard=False, transactions=True, retention_hours=3),
        Step("chunk", 0, 275),
        Step("stream"),
        Step("seal"),
        Step("stream"),
        Step("advance", 514),
        Step("crash", 0, 833),
        Step("stream"),
        Step("maintain", 0, 315),
        Step("replay", 581),
    )


def test_a_limited_stream_goes_on_in_a_partition_that_was_made_again() -> None:
    """Its first entries wait in the planner for their turn, while others come (seed 4824)."""
    check(
        Settings(partitions=2, wildcard=False, transactions=True),
        Step("stream", 535),  # one message a batch
        Step("idle", 217),
        Step("publish", 0, 580),
        Step("stream", 0, 221),
        Step("publish", 19, 554),
        Step("stream_meet", 0, 483),
        Step("chunk", 609),
        Step("stream", 0, 44),
    )


def test_a_batch_without_rows_is_not_run_again_once_its_chunk_has_expired() -> None:
    """It has the first of two chunks; nobody can tell that no row expired with them (seed 3561)."""
    check(
        Settings(wildcard=False, retention_hours=3),
        Step("stream_meet"),
        Step("publish"),
        Step("stream"),
        Step("chunk", 0, 541),
        Step("stream"),
        Step("chunk", 0, 148),
        Step("advance", 271),
        Step("roll"),
        Step("chunk"),
        Step("stream_meet"),
        Step("stream"),
        Step("maintain", 0, 439),
        Step("replay", 367),
    )


def test_a_late_row_that_expires_before_it_is_read_is_told() -> None:
    """Nothing else was published, so only what was given up is behind the stream's offset."""
    with new_world(Settings(partitions=1, wildcard=False, retention_hours=3)) as world:
        do(world, [Step("chunk", 0, 275), _BEGIN, _DRAIN, Step("seal"), Step("advance", 514)])
        assert world.stream is not None
        do(world, [Step("turn"), Step("maintain", 0, 315), _DRAIN])
        assert world.stream is None, "the stream ended with an error"


def test_a_late_row_that_was_read_may_expire() -> None:
    with new_world(Settings(partitions=1, wildcard=False, retention_hours=3)) as world:
        do(world, [Step("chunk", 0, 275), _BEGIN, _DRAIN, Step("seal"), Step("advance", 514)])
        do(world, [Step("turn"), _DRAIN, Step("maintain", 0, 315), Step("publish"), _DRAIN])
        assert world.stream is not None


def test_a_batch_whose_message_was_given_up_meanwhile_is_read_a_moment_later() -> None:
    """Seed 70782: planned before it was given up, and read after its first ledger was trimmed."""
    check(
        Settings(wildcard=False),
        Step("stream", 0, 0),
        Step("chunk", 0, 479),
        Step("stream", 0, 0),
        Step("seal", 0, 0),
        Step("turn", 0, 0),
        Step("publish", 0, 0),
        Step("stream", 0, 0),
        Step("advance", 342, 0),
        Step("chunk", 0, 287),
        Step("stream", 0, 0),
        Step("stream_meet", 405, 754),
        Step("stream_meet", 266, 0),
    )
