"""Where a process may die, be told a lie, or meet another one: at every effect it has outside.

An effect is a request to the admin, a read of the bookies, a file, a commit. Each has two points,
before and after it is done. A history says what happens at the nth point of a step.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from testbed.simulation.outages import Outages

Trouble = Literal["crash", "fail", "meet"]
"""The process dies; the effect gives an error, done or not; another process has a turn."""


class CrashError(BaseException):
    """The process is gone. Nothing catches it."""


class FailureError(Exception):
    """No answer: what was asked for was done, or not."""


@dataclass(slots=True)
class _Planned:
    trouble: Trouble
    at: int
    meet: Callable[[], None] | None


class Effects:
    """Counts points; ``met``: whether the trouble that was planned came.

    ``log``: names of the effects of this step. ``outages``: the servers that are away.
    """

    def __init__(self, outages: Outages | None = None) -> None:
        self.outages = outages
        self.points = 0
        self.met = False
        self.log: list[str] = []
        self._planned: _Planned | None = None
        self._inside = False

    def plan(self, trouble: Trouble, at: int, meet: Callable[[], None] | None = None) -> None:
        """At point ``at`` of what comes now; ``meet``: the other process's turn."""
        self.reset()
        self._planned = _Planned(trouble, at, meet)

    def reset(self) -> None:
        """A new step, without trouble."""
        self.points, self.met, self._planned, self.log = 0, False, None, []
        if self.outages is not None:
            self.outages.met.clear()

    @contextmanager
    def effect(self, name: str, server: str = "") -> Iterator[None]:
        """The block is the effect. Raises CrashError and FailureError as planned.

        ``server``: the server that it is asked of. Raises FailureError if that is away.
        """
        self.log.append(name)
        self._point()
        if self.outages is not None and self.outages.is_away(server):
            raise FailureError(f"{server} is away")
        yield
        self._point()

    def _point(self) -> None:
        if self._inside:
            return  # the other process's effects are not counted
        self.points += 1
        planned = self._planned
        if planned is None or self.points != planned.at:
            return
        self.met, self._planned = True, None
        if planned.trouble == "crash":
            raise CrashError
        if planned.trouble == "fail":
            raise FailureError("simulated")
        assert planned.meet is not None
        self._inside = True
        try:
            planned.meet()
        finally:
            self._inside = False
