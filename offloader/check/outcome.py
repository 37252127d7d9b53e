"""What a check is, and what it finds: values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """``ok`` and ``warning`` let the checks run that need this one."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def passed(self) -> bool:
        return self in (State.OK, State.WARNING)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line that says what is, and where that is not right, one that says what to do."""

    state: State
    text: str
    fix: str = ""

    @classmethod
    def ok(cls, text: str) -> Finding:
        return cls(State.OK, text)

    @classmethod
    def warning(cls, text: str, fix: str) -> Finding:
        return cls(State.WARNING, text, fix)

    @classmethod
    def failed(cls, text: str, fix: str) -> Finding:
        return cls(State.FAILED, text, fix)

    @classmethod
    def skipped(cls, text: str) -> Finding:
        return cls(State.SKIPPED, text)


@dataclass(frozen=True, slots=True)
class Result:
    """A check's finding. ``seconds``: how long it took; 0.0 where it was skipped."""

    name: str
    state: State
    finding: str
    fix: str
    seconds: float


Waiting = Callable[[str], None]
"""By which a check says what it waits for from now on: an address."""


@dataclass(frozen=True, slots=True)
class Check:
    """``run`` may take any time, raise anything, and is called once, in a thread of its own.

    ``needs``: checks that have to pass first; ``after``: those that only have to be done.
    """

    name: str
    run: Callable[[Waiting], Finding]
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
