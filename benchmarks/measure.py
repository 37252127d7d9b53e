"""How contenders take turns, and what a case returns. Pure, except for the clock."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

Clock = Callable[[], float]


class BrokenCaseError(RuntimeError):
    """A case did not measure what it claims: a contender gave wrong rows."""


@dataclass(frozen=True, slots=True)
class Target:
    """The value to reach, and from which side."""

    value: float
    side: Literal[">=", "<="]

    def met(self, value: float) -> bool:
        return value >= self.value if self.side == ">=" else value <= self.value


def at_least(value: float) -> Target:
    return Target(value, ">=")


def at_most(value: float) -> Target:
    return Target(value, "<=")


@dataclass(frozen=True, slots=True)
class Result:
    """One number: `value` is the median of `runs`, the single measurements in their order.

    unit: "s", "x" (a ratio), "rows/s", "MB", …; target: None for what is told without one.
    """

    case: str
    measure: str
    unit: str
    runs: tuple[float, ...]
    target: Target | None = None

    @property
    def value(self) -> float:
        return median(self.runs)

    @property
    def met(self) -> bool | None:
        return self.target.met(self.value) if self.target else None


@dataclass(frozen=True, slots=True)
class Contender:
    """`work` is measured and has to return `expected`; `prepare` runs before it, unmeasured."""

    work: Callable[[], object]
    expected: object
    prepare: Callable[[], object] = lambda: None


def take_turns(
    contenders: Mapping[str, Contender],
    repeats: int,
    *,
    clock: Clock = time.perf_counter,
    warm_ups: int = 1,
) -> dict[str, list[float]]:
    """What `clock` says each contender took, `repeats` times in turn after the warm-up.

    Raises BrokenCaseError where an answer is wrong, the warm-up's too.
    """
    return clocked_turns(contenders, repeats, [clock], warm_ups=warm_ups)[0]


def clocked_turns(
    contenders: Mapping[str, Contender], repeats: int, clocks: Sequence[Clock], *, warm_ups: int = 1
) -> list[dict[str, list[float]]]:
    """As `take_turns`, by several clocks at once: what each of them says, in their order."""
    taken: list[dict[str, list[float]]] = [{name: [] for name in contenders} for _ in clocks]
    for number in range(warm_ups + repeats):
        for name, one in contenders.items():
            one.prepare()
            begun = [clock() for clock in clocks]
            answer = one.work()
            ended = [clock() for clock in clocks]
            if answer != one.expected:
                raise BrokenCaseError(
                    f"{name} says {_short(answer)} instead of {_short(one.expected)}"
                )
            if number >= warm_ups:
                for of_clock, start, end in zip(taken, begun, ended, strict=True):
                    of_clock[name].append(end - start)
    return taken


def paired(
    ours: Sequence[float], theirs: Sequence[float], of: Callable[[float, float], float]
) -> tuple[float, ...]:
    """`of(ours, theirs)` turn by turn, so that a slow moment of the machine affects both."""
    return tuple(of(one, other) for one, other in zip(ours, theirs, strict=True))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."
