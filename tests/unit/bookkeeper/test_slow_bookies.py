"""Bookies that are late, trickle, or are silent; also what the clients of a process share."""

from dataclasses import replace

import pytest

from reader.bookkeeper import SilentBookies
from reader.errors import UnavailableError
from tests.unit.bookkeeper.memory_bookies import MemoryBookies, Replies, Reply
from tests.unit.bookkeeper.stored_ledgers import (
    entries_of,
    entry_script,
    expected,
    ledger_of,
    memory_bookies,
    range_script,
    stored_by,
)

PAIR = ledger_of(7, 300, ("0", "1"))
STRIPED = ledger_of(7, 600)
SOLE = ledger_of(7, 1200, ("0",), 1)


def late(script: Replies, seconds: float, first: int = 0) -> Replies:
    """Entries from ``first`` on come late."""

    def answer(ledger: int, entry: int, *rest: int) -> Reply:
        reply = script(ledger, entry, *rest)
        return replace(reply, after=seconds) if entry >= first else reply

    return answer


def trickling(script: Replies, seconds: float, parts: int) -> Replies:
    """Each answer comes in parts, with a pause between two of them."""

    def answer(*arguments: int) -> Reply:
        reply = script(*arguments)
        return replace(reply, trickle=(seconds, 1 + len(reply.body or b"") // parts))

    return answer


def test_what_is_late_is_asked_elsewhere_and_the_late_answer_is_dropped() -> None:
    script = late(entry_script(stored_by([STRIPED])[0]), 5.0, first=200)
    bookies = memory_bookies([STRIPED], {"0": script}, timeout=60.0)
    begun = bookies.now
    blocks = bookies.read((STRIPED, 0, 599), block_bytes=20_000)
    first = [next(blocks)]
    while first[-1].entry_ids[-1] < 400:
        first.append(next(blocks))
    assert bookies.now - begun < 2.0, "nothing waits for the late answers"
    assert not bookies.health.is_healthy("0")
    assert bookies.health.is_available("0"), "late is not failed"
    bookies.now += 5.0  # the answers that others gave come after all
    assert entries_of([*first, *blocks]) == expected((STRIPED, 0, 599))


@pytest.mark.parametrize("trickle", [None, (0.01, 1)])
def test_a_whole_range_that_is_late_is_asked_elsewhere(trickle: tuple[float, int] | None) -> None:
    """Nothing of it comes, or it trickles on."""
    script = range_script(stored_by([PAIR])[0])

    def slow(*arguments: int) -> Reply:
        reply = script(*arguments)
        return replace(reply, after=200.0, trickle=trickle)

    bookies = memory_bookies([PAIR], ranges={"0": slow}, timeout=240.0)
    begun = bookies.now
    blocks = list(bookies.read((PAIR, 0, 299), block_bytes=3000))
    assert entries_of(blocks) == expected((PAIR, 0, 299))
    assert bookies.now - begun < 1.0
    assert not any(bookies.asked.values()), "it was read by the range all the same"
    assert bookies.health.is_available("0") and not bookies.health.is_healthy("0")


def test_a_bookie_that_is_silent_is_waited_for_once() -> None:
    """Until others are asked; and it is not for the next reads either."""
    bookies = memory_bookies([STRIPED], {"0": lambda *_: None}, timeout=8.0)
    asked, begun = [], bookies.now
    for _ in range(3):
        assert entries_of(bookies.read((STRIPED, 0, 599))) == expected((STRIPED, 0, 599))
        asked.append(len(bookies.asked["0"]))
    assert asked == [asked[0]] * 3 != [0] * 3
    assert bookies.now - begun < 4.0, "half of the timeout"
    assert bookies.opened["0"] == 1


def test_a_kept_connection_that_goes_silent_costs_its_timeout_once() -> None:
    sole = ledger_of(7, 300, ("0", "1"))
    bookies = memory_bookies([sole])
    assert entries_of(bookies.read((sole, 0, 299))) == expected((sole, 0, 299))
    bookies.resume()
    bookies.entry_scripts = {**bookies.entry_scripts, "0": lambda *_: None}
    bookies.range_scripts = {**bookies.range_scripts, "0": lambda *_: None}
    begun = bookies.now
    assert entries_of(bookies.read((sole, 0, 299))) == expected((sole, 0, 299))
    assert bookies.now - begun < 10.0
    assert bookies.opened["0"] == 1, "it is not asked again on a new connection"
    assert bookies.health.choose(["0", "1"]) == "1"


def test_a_range_that_arrives_slowly_is_waited_for_where_no_other_bookie_has_it() -> None:
    """A bookie is silent when nothing arrives, not while a large answer takes long."""
    script = trickling(range_script(stored_by([SOLE])[0]), 5.0, 10)
    bookies = memory_bookies([SOLE], ranges={"0": script}, timeout=6.0)
    blocks = bookies.read((SOLE, 0, 1199), block_bytes=4 << 20)
    assert entries_of(blocks) == expected((SOLE, 0, 1199))
    assert (len(bookies.ranges["0"]), bookies.asked["0"]) == (1, [])


def test_a_bookie_that_trickles_is_as_good_as_silent() -> None:
    script = trickling(range_script(stored_by([SOLE])[0]), 0.05, 40_000)
    bookies = memory_bookies([SOLE], ranges={"0": script}, timeout=6.0)
    begun = bookies.now
    assert entries_of(bookies.read((SOLE, 0, 29))) == expected((SOLE, 0, 29))
    assert bookies.now - begun < 10, "the whole range would take minutes"
    assert len(bookies.asked["0"]) == 30, "it was asked for each entry by itself"


def test_where_there_is_no_other_replica_what_is_late_is_waited_for() -> None:
    ledger = ledger_of(7, 30, ("0", "1"), 1)
    script = late(entry_script(stored_by([ledger])[0]), 5.0, first=10)
    bookies = memory_bookies([ledger], {"0": script})
    assert entries_of(bookies.read((ledger, 0, 29))) == expected((ledger, 0, 29))
    assert len(bookies.asked["0"]) == len(bookies.asked["1"]) == 15


# --- silent bookies, for all clients of a process ---


def test_a_silent_bookie_is_waited_for_by_one_client() -> None:
    ledger = ledger_of(7, 1, ("0",), 1)
    bookies = memory_bookies([ledger], {"0": lambda *_: None}, {"0": lambda *_: None}, timeout=0.3)

    def connections() -> int:
        """Read by a new client; return how many connections it opened."""
        bookies.new_client()
        before = bookies.opened["0"]
        with pytest.raises(UnavailableError, match=r"bookie 0 is silent for 0.3 s, and is asked"):
            list(bookies.read((ledger, 0, 0)))
        return bookies.opened["0"] - before

    assert connections() > 0
    for _ in range(3):
        assert connections() == 0
    bookies.now += 15.5
    assert connections() > 0, "it is asked again"
    bookies.now += 29.0
    assert connections() == 0, "for twice as long"
    bookies.now += 1.5
    answering = memory_bookies([ledger], silent=bookies.silent, now=bookies.now)
    for _ in range(2):
        answering.new_client()
        assert entries_of(answering.read((ledger, 0, 0))) == expected((ledger, 0, 0))


def test_one_client_probes() -> None:
    silent = SilentBookies()
    first, second, third = object(), object(), object()
    silent.record_silence("b", first, "bookie b is silent", 0)
    silent.record_silence("b", second, "bookie b is silent", 0)  # asked at the same time
    assert silent.allows("b", first, 0), "it may ask for single entries"
    assert not silent.allows("b", second, 0)
    assert silent.allows("b", second, 15)
    silent.record_request("b", second, 10.0, 15)
    assert silent.allows("b", second, 15)
    assert not silent.allows("b", third, 15)
    assert silent.allows("b", third, 25), "the probe has ended without an answer"
    silent.record_request("b", third, 10.0, 25)
    silent.record_silence("b", third, "bookie b is silent", 25)
    assert not silent.allows("b", second, 54)
    assert silent.reason("b", 54) == "bookie b is silent, and is asked again in 1 s"
    assert silent.allows("b", second, 55)
    silent.record_answer("b")
    assert silent.allows("b", first, 55)
    assert silent.reason("b", 55) == ""


def test_the_time_without_requests_is_bounded() -> None:
    now = 0.0
    silent = SilentBookies()
    for _ in range(20):
        silent.record_silence("b", object(), "", now)
        assert not silent.allows("b", object(), now)
        now += 120.0
        assert silent.allows("b", object(), now)


def test_healthy_replicas_are_read_at_once() -> None:
    silent = SilentBookies()
    silent.record_silence("0", object(), "bookie 0 is silent", 1000.0)
    bookies = memory_bookies([PAIR], silent=silent)
    assert entries_of(bookies.read((PAIR, 0, 299))) == expected((PAIR, 0, 299))
    assert bookies.opened["0"] == 0


def test_without_a_replica_that_may_be_asked_a_read_fails_at_once() -> None:
    silent = SilentBookies()
    for bookie in "01":
        silent.record_silence(bookie, object(), f"bookie {bookie} is silent", 1000.0)
    bookies = MemoryBookies({}, silent=silent)
    with pytest.raises(UnavailableError, match=r"0 is silent, and is asked again in 15 s"):
        list(bookies.read((PAIR, 0, 299)))
    assert not bookies.waits
