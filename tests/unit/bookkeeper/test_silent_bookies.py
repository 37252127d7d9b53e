"""What the pools of one process know together of bookies that do not answer."""

from __future__ import annotations

import pytest

from reader.bookkeeper import BookKeeperClient, SilentBookies
from reader.errors import UnavailableError
from tests.unit.bookkeeper.fake_bookie import FakeBookie
from tests.unit.bookkeeper.stored_ledgers import (
    entries_of,
    expected,
    ledger_of,
    single,
    stored_by,
)

TIMEOUT = 0.3


class World:
    """One bookie, which answers when ``answers`` is true, and any number of clients.

    The time of the clients passes when it is asked for the entry and does not answer.
    """

    def __init__(self) -> None:
        self.now = 1_000.0
        self.waited = 0.0
        self.answers = False
        self.ledger = ledger_of(7, 1, ((0, ("0",)),))
        self._reply = single(stored_by([self.ledger])[0])
        self.silent = SilentBookies(clock=lambda: self.now)
        self.bookie = FakeBookie(self._script)

    def _script(self, request: int, ledger: int, entry: int) -> bytes | None:
        if self.answers:
            return self._reply(request, ledger, entry)
        self.waited += TIMEOUT
        return None

    def client(self) -> BookKeeperClient:
        addresses = {"0": self.bookie.address}
        return BookKeeperClient(
            addresses=addresses, timeout=TIMEOUT, silent=self.silent, clock=lambda: self.waited
        )

    def read(self) -> int:
        """Read by a new client; return how many connections it opened."""
        before = self.bookie.connections
        with self.client() as client:
            blocks = list(client.read(self.ledger, 0, 0))
        assert entries_of(blocks) == expected((self.ledger, 0, 0))
        return self.bookie.connections - before

    def refused(self) -> tuple[str, int]:
        before = self.bookie.connections
        with pytest.raises(UnavailableError) as caught:
            self.read()
        return caught.value.message, self.bookie.connections - before


def test_a_silent_bookie_is_waited_for_once() -> None:
    world = World()
    with world.bookie:
        assert world.refused()[1] > 0
        for _ in range(3):
            why, connections = world.refused()
            assert "bookie 0 is silent for 0.3 s, and is asked again in 15 s" in why
            assert connections == 0
        world.now += 15.5
        assert world.refused()[1] > 0, "it is asked again"
        world.now += 29.0
        assert world.refused()[1] == 0, "for twice as long"
        world.now += 1.5
        world.answers = True
        assert world.read() > 0
        assert world.read() > 0


def test_one_pool_probes() -> None:
    now = 0.0
    silent = SilentBookies(clock=lambda: now)
    first, second, third = object(), object(), object()
    silent.silent("b", first, "bookie b is silent")
    silent.silent("b", second, "bookie b is silent")  # asked at the same time: no second silence
    assert silent.allows("b", first), "it may ask for single entries"
    assert not silent.allows("b", second)
    now = 15.0
    assert silent.allows("b", second)
    silent.asked("b", second, 10.0)
    assert silent.allows("b", second)
    assert not silent.allows("b", third)
    now = 25.0
    assert silent.allows("b", third), "the probe has gone without a word"
    silent.asked("b", third, 10.0)
    silent.silent("b", third, "bookie b is silent")
    now = 54.0
    assert not silent.allows("b", second)
    assert silent.why("b") == "bookie b is silent, and is asked again in 1 s"
    now = 55.0
    assert silent.allows("b", second)
    silent.answered("b")
    assert silent.allows("b", first)
    assert silent.why("b") == ""


def test_the_time_without_questions_is_bounded() -> None:
    now = 0.0
    silent = SilentBookies(clock=lambda: now)
    for _ in range(20):
        silent.silent("b", object(), "")
        assert not silent.allows("b", object())
        now += 120.0
        assert silent.allows("b", object())


def test_healthy_replicas_are_read_at_once() -> None:
    ledger = ledger_of(7, 200, ((0, ("0", "1")),))
    stores = stored_by([ledger])
    silent = SilentBookies()
    silent.silent("0", object(), "bookie 0 is silent")
    with FakeBookie(lambda *_: None) as first, FakeBookie(single(stores[1])) as second:
        addresses = {"0": first.address, "1": second.address}
        with BookKeeperClient(addresses=addresses, timeout=60.0, silent=silent) as client:
            assert entries_of(client.read(ledger, 0, 199)) == expected((ledger, 0, 199))
    assert first.connections == 0
