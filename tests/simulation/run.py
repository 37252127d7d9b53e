"""Many histories, in this process or in several: how many were run, and which failed."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from tests.simulation.shrinking import as_test, shrink
from tests.simulation.steps import History, draw, run, steps_of
from tests.simulation.world import Settings, World

Draw = Callable[[int, frozenset[str]], History]


@dataclass(slots=True)
class Report:
    """``failed``: seed → what was found. ``steps``: by kind, how many were done."""

    histories: int = 0
    seconds: float = 0.0
    steps: Counter[str] = field(default_factory=Counter)
    failed: dict[int, str] = field(default_factory=dict)

    def text(self) -> str:
        """For people."""
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.steps.most_common())
        return (
            f"{self.histories} histories in {self.seconds:.0f} s, {self.steps.total()} steps: "
            f"{kinds}; {len(self.failed)} failed"
        )


def failure_of(history: History, watch: list[World] | None = None) -> str:
    """What the history finds; "" for nothing."""
    try:
        run(history, watch)
    except Exception as error:  # noqa: BLE001 - whatever the product raises
        return f"{type(error).__name__}: {error}"
    return ""


def check(settings: Settings, history: str) -> None:
    """A history that was found once, as a test: its steps as ``recipe`` reads them."""
    run(History(settings, steps_of(history)))


def run_many(
    seeds: Iterable[int],
    *,
    drawn: Draw = draw,
    processes: int = 2,
    without: Collection[str] = (),
    most_failures: int = 5,
    say: Callable[[str], None] = lambda text: None,
) -> Report:
    """The histories of ``seeds``, as they are ``drawn``, of kinds but those ``without``; ends after
    some failures."""
    report, began = Report(), time.monotonic()
    work = partial(_one, drawn=drawn, without=frozenset(without))
    with ExitStack() as stack:
        done: Iterator[tuple[int, str, dict[str, int]]] = map(work, seeds)
        if processes > 1:  # each takes longer to start than a hundred histories
            pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(processes))
            done = pool.imap_unordered(work, seeds, chunksize=20)
        for seed, found, steps in done:
            report.histories += 1
            report.steps.update(steps)
            if found:
                report.failed[seed] = found
                say(f"seed {seed}: {found}")
            if report.histories % 1000 == 0:
                say(f"{report.histories} histories in {time.monotonic() - began:.0f} s")
            if len(report.failed) >= most_failures:
                break
    report.seconds = time.monotonic() - began
    return report


def _one(seed: int, drawn: Draw, without: frozenset[str]) -> tuple[int, str, dict[str, int]]:
    watch: list[World] = []
    found = failure_of(drawn(seed, without), watch)
    return seed, found, dict(watch[0].steps) if watch else {}


def shortest(seed: int, without: Collection[str] = (), drawn: Draw = draw) -> str:
    """A failing seed as a test of its fewest steps."""
    history = drawn(seed, frozenset(without))
    found = failure_of(history)

    def fails(shorter: History) -> bool:
        return kind_of(failure_of(shorter)) == kind_of(found)

    short = shrink(history, fails)
    return as_test(short, seed, failure_of(short).replace('"', "'")[:90])


def kind_of(found: str) -> str:
    """The first words: whether it is the same that was found."""
    return " ".join(found.split()[:6])
