"""What is lent to one user at a time, and kept for the next."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from reader.clients.lending import Lender
from reader.closing import Closing


class Thing(Closing):
    """Notes what happens to it."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.broken = False

    def close(self) -> None:
        self.notes.append("closed")

    def lent(self) -> None:
        if self.broken:
            raise OSError("it has died meanwhile")
        self.notes.append("lent")

    def returned(self) -> None:
        self.notes.append("returned")


class World:
    def __init__(self) -> None:
        self.made: list[Thing] = []
        self.now = 0.0
        self.lender = Lender(
            self.make, on_lend=Thing.lent, on_return=Thing.returned, clock=lambda: self.now
        )

    def make(self) -> Thing:
        self.made.append(Thing())
        return self.made[-1]


@pytest.fixture
def world() -> World:
    return World()


def test_one_that_comes_back_is_lent_again(world: World) -> None:
    for _ in range(3):
        with world.lender.lend() as thing:
            assert thing is world.made[0]
    assert world.made[0].notes == ["returned", "lent", "returned", "lent", "returned"]
    world.lender.close()
    assert world.made[0].notes[-1] == "closed"
    with world.lender.lend():
        assert len(world.made) == 2


def test_two_users_have_two(world: World) -> None:
    with world.lender.lend() as one, world.lender.lend() as other:
        assert one is not other
    with world.lender.lend() as one, world.lender.lend() as other:
        assert {id(one), id(other)} == set(map(id, world.made))


def test_after_an_error_it_is_closed(world: World) -> None:
    with pytest.raises(ValueError, match="bad"), world.lender.lend():
        raise ValueError("bad")
    assert world.made[0].notes == ["closed"]
    with world.lender.lend() as thing:
        assert thing is world.made[1]


def test_a_user_that_gives_up_early_does_no_harm(world: World) -> None:
    def rows() -> Iterator[int]:
        with world.lender.lend():
            yield from range(10)

    found = rows()
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert world.made[0].notes == ["returned"]


def test_one_that_has_died_is_replaced(world: World) -> None:
    with world.lender.lend() as one, world.lender.lend() as other:
        pass
    one.broken = True
    other.broken = True
    with world.lender.lend() as third:
        assert third is world.made[2]
    assert [thing.notes[-1] for thing in (one, other)] == ["closed", "closed"]


def test_one_that_was_idle_for_long_is_opened_anew(world: World) -> None:
    with world.lender.lend():
        pass
    world.now += 59
    with world.lender.lend() as thing:
        assert thing is world.made[0]
    world.now += 61
    with world.lender.lend() as thing:
        assert thing is world.made[1]
    assert world.made[0].notes[-1] == "closed"


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_lent_before_a_fork_stays_the_parents(world: World, fails: bool) -> None:
    parent, child = os.getpid(), 0
    try:
        with suppress(ValueError), world.lender.lend() as thing:
            child = os.fork()
            if not child and fails:
                raise ValueError
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert thing.notes == ["returned"]
        else:
            alone = not thing.notes and not world.lender.forget()
            os._exit(0 if alone else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)


def test_few_are_kept(world: World) -> None:
    users = [world.lender.lend() for _ in range(12)]
    for user in users:
        user.__enter__()
    for user in users:
        user.__exit__(None, None, None)
    closed = [thing.notes[-1] == "closed" for thing in world.made]
    assert closed.count(False) == 8


def test_from_many_threads(world: World) -> None:
    in_use: set[int] = set()
    twice: list[Thing] = []

    def work() -> None:
        for _ in range(200):
            with world.lender.lend() as thing:
                if id(thing) in in_use:
                    twice.append(thing)
                in_use.add(id(thing))
                in_use.discard(id(thing))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not twice
    assert len(world.made) <= 4
