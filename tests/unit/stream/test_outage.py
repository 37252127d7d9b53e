"""Servers that are away: for how long a stream waits, and what it says."""

import pytest

from reader.errors import UnavailableError
from reader.stream.outage import Outage


class World:
    """A clock that only ``sleep`` moves, and servers that are back at a time."""

    def __init__(self, back_at: float) -> None:
        self.now = 1000.0
        self.said: list[str] = []
        self.asked = 0
        self._back_at = self.now + back_at
        self.outage = Outage("orders", self.said.append, lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def question(self) -> str:
        self.asked += 1
        if self.now < self._back_at:
            raise UnavailableError("nobody is there")
        return "answer"


def test_a_stream_waits_for_them_and_says_so_once() -> None:
    world = World(back_at=300)
    found = None
    while found is None:
        if not world.outage.is_fresh:
            found = world.outage.ask(world.question)
        world.now += 0.05
    assert found == "answer"
    assert world.said == [
        "the stream of orders waits for its servers: nobody is there",
        "the stream of orders goes on: its servers answer again",
    ]
    assert world.asked <= 301
    assert not world.outage.is_fresh


def test_those_that_stay_away_are_an_error() -> None:
    world = World(back_at=10_000)
    with pytest.raises(UnavailableError, match="nobody is there"):
        while True:
            assert world.outage.ask(world.question) is None
            world.now += 1
    assert world.now == pytest.approx(1600, abs=2)


@pytest.mark.parametrize(("back_at", "answered"), [(40, True), (80, False)])
def test_a_batch_that_was_begun_waits_for_less_time(back_at: float, answered: bool) -> None:
    world = World(back_at)
    if answered:
        assert world.outage.wait(world.question) == "answer"
        assert world.now == pytest.approx(1040, abs=2)
    else:
        with pytest.raises(UnavailableError):
            world.outage.wait(world.question)
        assert world.now == pytest.approx(1060, abs=2)
