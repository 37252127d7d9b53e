"""What a case is given, what it returns, and how runs take turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from demo.screen import Screen
from demo.stage import Stage
from spark_ext import PulsarLake

__all__ = ["Bench", "BrokenCaseError", "Result", "take_turns"]


class BrokenCaseError(RuntimeError):
    """A case measured something, but not what it says: its contenders disagree."""


@dataclass(frozen=True, slots=True)
class Result:
    """One number. `runs` are the single measurements behind it, in order; `value` their median.

    case: what was done, e.g. a query; measure: by whom or of what, e.g. a tier.
    """

    case: str
    measure: str
    value: float
    unit: str
    runs: tuple[float, ...]

    @classmethod
    def of(cls, case: str, measure: str, unit: str, runs: Sequence[float]) -> Result:
        return cls(case, measure, median(runs), unit, tuple(runs))


@dataclass(frozen=True, slots=True)
class Bench:
    """A topic of `rows` messages, wholly in the table and wholly in BookKeeper."""

    stage: Stage
    lake: PulsarLake
    screen: Screen
    rows: int
    repeats: int


def take_turns(
    name: str, contenders: Mapping[str, Callable[[], object]], repeats: int
) -> dict[str, list[float]]:
    """Seconds of each contender: one warm-up, then `repeats` runs in turn.

    Raises BrokenCaseError unless all return equal values, each time.
    """
    seconds: dict[str, list[float]] = {contender: [] for contender in contenders}
    answers: dict[str, object] = {}
    for number in range(repeats + 1):
        for contender, work in contenders.items():
            begun = time.perf_counter()
            answer = work()
            took = time.perf_counter() - begun
            if number > 0:
                seconds[contender].append(took)
            first = next(iter(answers), contender)
            if answer != answers.setdefault(first, answer):
                raise BrokenCaseError(
                    f"{name}: {contender} says {_short(answer)}, "
                    f"but {first} {_short(answers[first])}"
                )
    return seconds


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."
