"""Which bookie is asked next: those that failed recently are avoided, for a while."""

from reader.bookkeeper.reads import BookieHealth, SilentBookies

BOOKIES = ("a", "b", "c")


class Health(BookieHealth):
    """Begins at 1,000 s."""

    def __init__(self, timeout: float = 1.0) -> None:
        super().__init__(timeout, SilentBookies())
        self.now = 1000.0
        self.passes(0)

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.advance(self.now)


def test_a_bookie_that_failed_is_avoided_for_30_seconds() -> None:
    health = Health()
    assert health.choose(BOOKIES) == "a"
    health.record_failure("a", "bookie a is down")
    assert (health.choose(BOOKIES), health.choose_for_ranges(BOOKIES)) == ("b", "b")
    assert health.reason("a") == "bookie a is down"
    health.passes(29.9)
    assert health.choose(BOOKIES) == "b"
    health.passes(0.1)
    assert (health.choose(BOOKIES), health.choose_for_ranges(BOOKIES)) == ("a", "a")


def test_a_bookie_that_fails_again_is_avoided_for_twice_as_long() -> None:
    health = Health()
    for seconds in (30, 60, 120, 120):
        health.record_failure("a", "down")
        health.record_failure("a", "down, for all that it was asked for at once")
        health.passes(seconds - 0.1)
        assert health.choose(BOOKIES) == "b"
        health.passes(0.1)
        assert health.choose(BOOKIES) == "a"
    health.record_answer("a", 0.01)
    health.record_failure("a", "down again")
    health.passes(30)
    assert health.choose(BOOKIES) == "a"


def test_a_bookie_that_answers_while_it_is_avoided_and_fails_again() -> None:
    """As the only replica it is asked all the same."""
    health = Health()
    health.record_failure("a", "down")
    health.passes(10)
    health.record_answer("a", 0.01)
    health.record_failure("a", "down again")
    health.passes(29.9)
    assert health.choose(BOOKIES) == "b"
    health.passes(0.1)
    assert health.choose(BOOKIES) == "a"


def test_where_all_failed_the_one_that_failed_longest_ago_is_asked() -> None:
    health = Health()
    for bookie in "bca":
        health.record_failure(bookie, "down")
        health.passes(1)
    assert health.choose_for_ranges(BOOKIES) is None, "only for entries"
    for bookie in "bcab":
        assert health.choose(BOOKIES) == bookie
        health.record_failure(bookie, "still down")
        health.passes(1)
    assert health.choose(()) is None


def test_other_bookies_are_not_slow_by_the_pace_of_one_before_it_got_stuck() -> None:
    health = Health(timeout=10.0)
    for bookie, seconds in (("a", 0.001), ("b", 0.35), ("c", 0.35)):
        health.record_answer(bookie, seconds)
    assert health.check_slow("b", 0.35)
    assert not health.check_slow("a", 1.0)
    assert not health.is_healthy("b")
    assert health.check_slow("a", 1.8)
    assert [health.is_healthy(bookie) for bookie in BOOKIES] == [False, True, True]


def test_a_bookie_without_range_reads_gets_entry_reads_for_10_minutes() -> None:
    health = Health()
    health.avoid_range_reads("a")
    assert (health.choose(BOOKIES), health.choose_for_ranges(BOOKIES)) == ("a", "b")
    health.passes(599.9)
    assert health.choose_for_ranges(BOOKIES) == "b"
    health.passes(0.1)
    assert health.choose_for_ranges(BOOKIES) == "a"
