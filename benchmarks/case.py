"""A benchmark case, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.data.topics import Published, TopicSpec
from benchmarks.measure import Result, Target
from benchmarks.world import World


@dataclass(frozen=True, slots=True)
class Case:
    """`run` measures and returns results; `topics` are published before it.

    Raises for anything that makes its numbers worthless; a missed target is none of that.
    """

    name: str
    about: str
    run: Callable[[Bench], list[Result]]
    topics: tuple[TopicSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class Bench:
    """`say` prints a line below the case's title."""

    case: str
    world: World
    repeats: int
    quick: bool
    say: Callable[[str], None] = field(default=lambda text: None)

    def topic(self, spec: TopicSpec) -> Published:
        return self.world.topic(spec)

    def result(
        self,
        measure: str,
        unit: str,
        runs: tuple[float, ...] | list[float],
        target: Target | None = None,
    ) -> Result:
        return Result(self.case, measure, unit, tuple(runs), target)
