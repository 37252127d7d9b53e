"""The steps of a history: drawn from a seed, printed as code, done one after the other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.simulation.compacted.view_kinds import VIEW_KINDS
from tests.simulation.kinds import KINDS
from tests.simulation.recipes import RECIPES, filled, recipe, skeleton
from tests.simulation.sinks.sink_kinds import SINK_KINDS
from tests.simulation.streams.stream_kinds import STREAM_KINDS
from tests.simulation.world import Settings, World, new_world

_WITH_RECIPE = 0.4
_DO = {name: do for name, (_, do) in KINDS.items()} | STREAM_KINDS | VIEW_KINDS | SINK_KINDS


@dataclass(frozen=True, slots=True)
class Step:
    """What is done (``KINDS``, and those of streams, views and writes), and two numbers that choose
    what with."""

    kind: str
    a: int = 0
    b: int = 0

    def __str__(self) -> str:
        """Return the step as ``recipe`` reads it."""
        return f"{self.kind} {self.a} {self.b}".removesuffix(" 0").removesuffix(" 0")


@dataclass(frozen=True, slots=True)
class History:
    settings: Settings
    steps: tuple[Step, ...]


def steps_of(text: str) -> tuple[Step, ...]:
    """Return the steps of a text that ``recipe`` reads, in which no number is to be drawn."""
    return tuple(Step(*told) for told in filled(recipe(text), Random(0)))


def drawing(
    random: Random, weights: Mapping[str, int], *, liked: int = 3
) -> Callable[[int], list[Step]]:
    """Return what draws a number of steps of one history, by the weights of their kinds.

    A history likes ``liked`` kinds, which come ``liked`` times as often: rare ones meet then.
    """
    names = list(weights)
    likes = set(random.sample(names, liked))
    of_history = [weights[name] * (liked if name in likes else 1) for name in names]

    def some(count: int) -> list[Step]:
        kinds = random.choices(names, of_history, k=count)
        return [Step(kind, random.randrange(1000), random.randrange(1000)) for kind in kinds]

    return some


def draw(seed: int, without: frozenset[str] = frozenset()) -> History:
    """The history of a seed; without some kinds of steps, which are left out of it."""
    random = Random(seed)
    settings = Settings(
        partitions=random.choice((0, 0, 1, 2)),
        wildcard=random.random() < 0.5,
        broker_times=random.random() < 0.5,
        transactions=random.random() < 0.4,
        grace_minutes=random.choice((0, 0, 10)),
        retention_hours=random.choice((0, 0, 0, 3)),
        schemas=random.random() < 0.4,
        broker=random.random() < 0.3,
    )
    if settings.schemas and settings.broker_times and seed % 3:
        settings = replace(settings, late_schema=True)
    some = drawing(random, {name: weight for name, (weight, _) in KINDS.items()}, liked=4)
    length = random.randrange(8, 26)
    if random.random() < _WITH_RECIPE:
        steps = some(random.choice((0, 0, 2)))
        for told in skeleton(random.choice(list(RECIPES)), random):
            steps += [Step(*told), *some(random.choice((0, 0, 0, 0, 1)))]
    else:
        steps = some(length)
    steps = [*steps, Step("settle"), Step("query", 0, 1)]
    if "transaction" in without:
        settings = replace(settings, transactions=False)
    return History(settings, tuple(one for one in steps if one.kind not in without))


def run(history: History, watch: list[World] | None = None) -> None:
    """Do the steps in a new world. Raises what a step finds."""
    with new_world(history.settings) as world:
        if watch is not None:
            watch.append(world)
        do(world, history.steps)


def do(world: World, steps: Sequence[Step]) -> None:
    """Some more steps."""
    for step in steps:
        world.steps[step.kind] += 1
        world.clock.advance(1000)
        _DO[step.kind](world, step.a, step.b)
