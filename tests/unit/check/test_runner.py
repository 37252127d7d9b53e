"""Order, what is skipped, what is given up, and what is said meanwhile."""

import threading
from collections.abc import Iterator

import pytest

from offloader.check.check_run import Run
from offloader.check.outcome import Check, Finding, Result, State, Waiting
from reader.errors import ConfigurationError


def check(name: str, finding: Finding, needs: str = "", after: str = "") -> Check:
    return Check(name, lambda _: finding, tuple(needs.split()), tuple(after.split()))


OK, WARNING = Finding.ok("fine"), Finding.warning("so so", "look")
FAILED, SKIPPED = Finding.failed("broken", "mend it"), Finding.skipped("nothing there")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a check hangs at; opened at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


def outcome(*checks: Check, seconds: float = 60) -> list[tuple[str, str, str]]:
    return [(one.name, one.state, one.finding) for one in Run(checks, seconds=seconds).results()]


def test_what_needs_something_that_failed_is_skipped_and_says_why() -> None:
    checks = [
        check("a", FAILED),
        check("b", OK),
        check("c", OK, needs="a b"),
        check("d", OK, needs="c"),
        check("e", OK, after="a"),
    ]
    assert outcome(*checks) == [
        ("a", "failed", "broken"),
        ("b", "ok", "fine"),
        ("c", "skipped", "needs a"),
        ("d", "skipped", "needs c"),
        ("e", "ok", "fine"),
    ]


@pytest.mark.parametrize(("finding", "runs"), [(OK, True), (WARNING, True), (SKIPPED, False)])
def test_what_lets_others_run(finding: Finding, runs: bool) -> None:
    [_, second] = Run([check("a", finding), check("b", OK, needs="a")], seconds=60).results()
    assert (second.state is State.OK) is runs


def test_an_error_is_a_finding_with_its_hint() -> None:
    def refused(_: Waiting) -> Finding:
        raise ConfigurationError("no permission", hint="grant it")

    def bug(_: Waiting) -> Finding:
        raise KeyError("x")

    first, second = Run([Check("a", refused), Check("b", bug)], seconds=60).results()
    assert (first.state, first.finding, first.fix) == ("failed", "no permission", "grant it")
    assert (second.state, second.finding) == ("failed", "KeyError: 'x'")


def test_what_hangs_is_given_up_and_says_where(gate: threading.Event) -> None:
    now = [0.0]
    hung = threading.Event()

    def hangs(waiting: Waiting) -> Finding:
        waiting("10.0.0.1:3181")
        hung.set()
        gate.wait()
        return OK

    def tell(one: Result) -> None:
        now[0] = 2.0

    # The first is done before the clock goes on.
    checks = [
        Check("c", lambda _: (hung.wait(60), OK)[1]),
        Check("a", hangs),
        check("b", OK, needs="a"),
    ]
    run = Run(checks, seconds=2, tell=tell, clock=lambda: now[0])
    first, second, third = run.results()
    assert run.gave_up
    assert second.finding == "no answer from 10.0.0.1:3181 within 2 s"
    assert "--timeout" in second.fix
    assert (first.state, third.state) == ("ok", "skipped")


def test_independent_ones_run_side_by_side() -> None:
    both = threading.Barrier(2)

    def meets(_: Waiting) -> Finding:
        both.wait(60)
        return OK

    assert [state for _, state, _ in outcome(Check("a", meets), Check("b", meets))] == ["ok", "ok"]


def test_results_are_told_in_order_as_soon_as_they_are_there(gate: threading.Event) -> None:
    told: list[str] = []
    at_first: list[str] = []

    def last(_: Waiting) -> Finding:
        gate.wait(60)
        at_first.extend(told)
        return OK

    def tell(one: Result) -> None:
        told.append(one.name)
        if one.name == "b":
            gate.set()

    Run([check("a", OK), check("b", OK), Check("c", last)], seconds=60, tell=tell).results()
    assert told == ["a", "b", "c"]
    assert at_first == ["a", "b"]


def test_a_slow_one_says_once_what_it_waits_for(gate: threading.Event) -> None:
    now = [0.0]
    said: list[tuple[str, str]] = []
    began = threading.Event()

    def slow(waiting: Waiting) -> Finding:
        waiting("the broker at b:6650")
        began.set()
        gate.wait(60)
        return OK

    def tell(one: Result) -> None:
        now[0] = 3.0

    def tell_slow(name: str, waits_for: str) -> None:
        said.append((name, waits_for))
        gate.set()

    # The first is done before the clock goes on.
    checks = [Check("b", lambda _: (began.wait(60), OK)[1]), Check("a", slow)]
    run = Run(checks, seconds=60, tell=tell, slow=tell_slow, clock=lambda: now[0])
    assert [one.state for one in run.results()] == ["ok", "ok"]
    assert said == [("a", "the broker at b:6650")]
