"""Which bookie is asked next: those that failed recently are avoided, for a while."""

from __future__ import annotations

import pytest

from reader.bookkeeper.bookie_session.handshake import BookieAccess
from reader.bookkeeper.pool import BookiePool
from reader.errors import ConfigurationError, UnavailableError
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer

BOOKIES = ("a:1", "b:2", "c:3")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def pool_at(clock: Clock, timeout: float = 1.0) -> BookiePool:
    return BookiePool({}, timeout, b"", clock=clock)


def test_a_bookie_that_failed_is_avoided_for_30_seconds() -> None:
    clock = Clock()
    pool = pool_at(clock)
    assert pool.best(BOOKIES) == "a:1"
    assert pool.drop("a:1", "bookie a:1 is down") is False
    assert (pool.best(BOOKIES), pool.best_for_ranges(BOOKIES)) == ("b:2", "b:2")
    assert pool.why("a:1") == "bookie a:1 is down"
    clock.now += 29.9
    assert pool.best(BOOKIES) == "b:2"
    clock.now += 0.1
    assert (pool.best(BOOKIES), pool.best_for_ranges(BOOKIES)) == ("a:1", "a:1")


def test_a_bookie_that_fails_again_is_avoided_for_twice_as_long() -> None:
    clock = Clock()
    pool = pool_at(clock)
    for seconds in (30, 60, 120, 120):
        pool.drop("a:1", "down")
        pool.drop("a:1", "down, for all that it was asked for at once")
        clock.now += seconds - 0.1
        assert pool.best(BOOKIES) == "b:2"
        clock.now += 0.1
        assert pool.best(BOOKIES) == "a:1"
    pool.took("a:1", 0.01)
    pool.drop("a:1", "down again")
    clock.now += 30
    assert pool.best(BOOKIES) == "a:1"


def test_a_bookie_that_answers_while_it_is_avoided_and_fails_again() -> None:
    """As the only replica it is asked all the same."""
    clock = Clock()
    pool = pool_at(clock)
    pool.drop("a:1", "down")
    clock.now += 10
    pool.took("a:1", 0.01)
    pool.drop("a:1", "down again")
    clock.now += 29.9
    assert pool.best(BOOKIES) == "b:2"
    clock.now += 0.1
    assert pool.best(BOOKIES) == "a:1"


def test_where_all_failed_the_one_that_failed_longest_ago_is_asked() -> None:
    clock = Clock()
    pool = pool_at(clock)
    for bookie in ("b:2", "c:3", "a:1"):
        pool.drop(bookie, "down")
        clock.now += 1
    for bookie in ("b:2", "c:3", "a:1", "b:2"):
        assert pool.best(BOOKIES) == bookie
        pool.drop(bookie, "still down")
        clock.now += 1


def test_others_are_not_late_by_what_a_bookie_took_before_it_got_stuck() -> None:
    pool = pool_at(Clock(), timeout=10.0)
    for bookie, seconds in (("a:1", 0.001), ("b:2", 0.35), ("c:3", 0.35)):
        pool.took(bookie, seconds)
    assert pool.is_late("b:2", 0.35)
    assert not pool.is_late("a:1", 1.0)
    assert not pool.is_well("b:2")
    assert pool.is_late("a:1", 1.8)
    assert [pool.is_well(one) for one in BOOKIES] == [False, True, True]


def test_where_all_failed_entries_are_still_requested_and_ranges_are_not() -> None:
    pool = pool_at(Clock())
    for bookie in BOOKIES:
        pool.drop(bookie, "down")
    assert pool.best(BOOKIES) == "a:1"
    assert pool.best_for_ranges(BOOKIES) is None
    assert pool.best(()) is None


def test_a_bookie_without_range_reads_gets_entry_reads_for_10_minutes() -> None:
    clock = Clock()
    pool = pool_at(clock)
    pool.avoid_range_reads("a:1")
    assert (pool.best(BOOKIES), pool.best_for_ranges(BOOKIES)) == ("a:1", "b:2")
    clock.now += 599.9
    assert pool.best_for_ranges(BOOKIES) == "b:2"
    clock.now += 0.1
    assert pool.best_for_ranges(BOOKIES) == "a:1"


def test_a_kept_connection_that_ended_is_no_failure_of_its_bookie() -> None:
    def echo(request: int, ledger: int, entry: int) -> bytes:
        return answer(request, 0, ledger, entry, b"")

    with FakeBookie(echo) as bookie, pool_at(Clock()) as pool:
        pool.connect_for_entries(bookie.address)
        pool.resume()
        assert pool.drop(bookie.address, "closed") is True
        assert pool.best([bookie.address, "b:2"]) == bookie.address
        pool.connect_for_entries(bookie.address)
        pool.resume()
        assert pool.drop(bookie.address, "no answer in time", silent=True) is False
        assert pool.best([bookie.address, "b:2"]) == "b:2"
        assert not pool.entry_connections


def test_connections_of_another_identity_are_not_used_again() -> None:
    def echo(request: int, ledger: int, entry: int) -> bytes:
        return answer(request, 0, ledger, entry, b"")

    with FakeBookie(echo) as bookie, pool_at(Clock()) as pool:
        first = pool.connect_for_entries(bookie.address)
        pool.resume(BookieAccess())
        assert pool.connect_for_entries(bookie.address) is first
        pool.resume(BookieAccess(user="other"))
        assert not pool.entry_connections
        assert first.fileno() == -1


def test_addresses_that_cannot_be_used() -> None:
    pool = pool_at(Clock())
    with pytest.raises(ConfigurationError, match="bookie id 'bookie-1' is not an address"):
        pool.connect_for_entries("bookie-1")
    with pytest.raises(UnavailableError, match="no connection to bookie"):
        BookiePool({"bookie-1": "127.0.0.1:1"}, 1.0, b"").connect_for_ranges("bookie-1")
