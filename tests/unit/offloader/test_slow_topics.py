"""A topic whose servers are slow: who converts it, and what a turn says of it."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from offloader.convert.job_rules import is_slow
from offloader.convert.pack_task import BEGIN_SECONDS, run_packs
from offloader.model.turn import Workers
from tests.unit.turns.pulsar_world import PLAIN, World, kinds


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


def test_a_slow_conversion_is_given_up_and_left_to_the_workers_of_slow_topics(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is committed or released before; the turn is no failure, and has more to do."""
    monkeypatch.setattr(
        "offloader.convert.jobs.Patience.seconds",
        lambda _, workers: math.inf if workers is Workers.SLOW else -1.0,
    )
    world.seal(PLAIN, PLAIN)
    offloader = world.offloader()
    for workers in (Workers.HEALTHY, Workers.RETRIES):
        turn = offloader.turn(world.topic, now=True, workers=workers)
        assert (turn.committed, turn.more, turn.slow) == (None, True, True)
        assert kinds(world.hot()) == [(10, 0, b"plain"), (10, 1, b"plain")]
    assert any("slow topics" in line for line in world.said)
    turn = offloader.turn(world.topic, now=True, workers=Workers.SLOW)
    assert turn.committed is not None
    assert turn.slow is False, "it may go on beside the healthy topics"
    assert kinds(world.cold()) == [(10, 0, b"plain"), (10, 1, b"plain")]


def test_a_slow_topic_commits_less_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offloader.model.SLOW_COMMIT_BYTES", 1)
    monkeypatch.setattr("offloader.convert.pack_task.is_slow", lambda seconds, size: True)
    world.seal(PLAIN)
    world.seal(PLAIN)
    offloader = world.offloader()
    turn = offloader.turn(world.topic, now=True, workers=Workers.SLOW)
    assert (turn.more, turn.slow) == (True, True)
    assert kinds(world.cold()) == [(10, 0, b"plain")]
    assert not offloader.turn(world.topic, now=True).more
    assert kinds(world.cold()) == [(10, 0, b"plain"), (11, 0, b"plain")]


def test_a_turn_without_a_conversion_says_nothing_of_it(world: World) -> None:
    assert world.offloader().turn(world.topic, now=True).slow is None


def test_a_task_begins_no_pack_once_it_keeps_its_job_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]

    def try_pack(*values: object, patience: float) -> str:
        now[0] += BEGIN_SECONDS / 2 + 1
        return "done"

    monkeypatch.setattr("offloader.convert.pack_task.try_pack", try_pack)
    packs = [(None, ())] * 4
    outcomes = list(run_packs(packs, patience=1.0, clock=lambda: now[0]))  # type: ignore[arg-type]
    assert list(map(str, outcomes)) == ["done", "done", "None", "None"]


def test_the_pace_of_bytes_counts() -> None:
    assert not is_slow(40.0, 128 << 20)
    assert is_slow(60.0, 128 << 20)
    assert is_slow(16.0, 1)
