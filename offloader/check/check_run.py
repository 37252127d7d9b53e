"""Runs checks side by side, each in bounded time, and gives their results in their order.

A check that hangs is given up, not stopped: its thread ends with the process.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from offloader.check.outcome import Check, Finding, Result, State
from reader.background import in_thread
from reader.errors import PulsarLakeError, plain_text

_SLOW_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class _Running:
    """``since``: of the clock; ``waits_for``: what it said last."""

    check: Check
    since: float
    waits_for: str = ""
    finding: Future[Finding] = field(init=False)

    def start(self) -> None:
        self.finding = in_thread(lambda: self.check.run(self._says))

    def _says(self, text: str) -> None:
        self.waits_for = text


class Run:
    """One run of ``checks``, whose names differ; of a ``needs`` or ``after``, the first come first.

    ``seconds``: how long each may take. ``tell`` gets each result, in the order of ``checks``, as
    soon as those before it are there. ``slow`` is told once of each check that takes long, by its
    name, and what it waits for. ``clock``: seconds.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        *,
        seconds: float,
        tell: Callable[[Result], None] = lambda result: None,
        slow: Callable[[str, str], None] = lambda name, waits_for: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._checks = tuple(checks)
        self._seconds = seconds
        self._tell = tell
        self._slow = slow
        self._clock = clock
        self._results: dict[str, Result] = {}
        self._running: dict[str, _Running] = {}
        self._slow_ones: set[str] = set()
        self._told = 0
        self.gave_up = False
        """Whether a check hangs in a thread that is still there."""

    def results(self) -> list[Result]:
        """Run them all; one result each."""
        while len(self._results) < len(self._checks):
            self._start()
            self._wait()
            self._collect()
            self._tell_next()
        return [self._results[one.name] for one in self._checks]

    def _start(self) -> None:
        for one in self._checks:
            if one.name in self._results or one.name in self._running:
                continue
            if not all(name in self._results for name in (*one.needs, *one.after)):
                continue
            missing = [name for name in one.needs if not self._results[name].state.passed]
            if missing:
                text = f"needs {', '.join(missing)}"
                self._results[one.name] = Result(one.name, State.SKIPPED, text, "", 0.0)
                return self._start()  # others may have needed this one
            running = self._running[one.name] = _Running(one, self._clock())
            running.start()
        return None

    def _wait(self) -> None:
        now = self._clock()
        ends = [one.since + self._seconds - now for one in self._running.values()]
        ends += [
            one.since + _SLOW_SECONDS - now
            for name, one in self._running.items()
            if name not in self._slow_ones
        ]
        if ends:
            futures = [one.finding for one in self._running.values()]
            wait(futures, max(min(ends), 0.0), FIRST_COMPLETED)

    def _collect(self) -> None:
        for name, one in list(self._running.items()):
            took = self._clock() - one.since
            if one.finding.done():
                finding = _found(one.finding)
            elif took >= self._seconds:
                self.gave_up = True
                what = f" from {one.waits_for}" if one.waits_for else ""
                finding = Finding.failed(
                    f"no answer{what} within {self._seconds:g} s",
                    "see whether a firewall drops the packets, or give it more --timeout",
                )
            else:
                if took >= _SLOW_SECONDS and name not in self._slow_ones:
                    self._slow_ones.add(name)
                    self._slow(name, one.waits_for)
                continue
            del self._running[name]
            self._results[name] = Result(name, finding.state, finding.text, finding.fix, took)

    def _tell_next(self) -> None:
        while self._told < len(self._checks):
            result = self._results.get(self._checks[self._told].name)
            if result is None:
                return
            self._told += 1
            self._tell(result)


def _found(finding: Future[Finding]) -> Finding:
    try:
        return finding.result()
    except PulsarLakeError as error:
        return Finding.failed(error.message, error.hint or "")
    except Exception as error:  # noqa: BLE001 - no check's failure stops the others
        return Finding.failed(f"{type(error).__name__}: {plain_text(error)}", "")
