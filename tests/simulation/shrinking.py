"""A failing history made as short as it gets, and printed as a test."""

from collections.abc import Callable
from dataclasses import fields

from tests.simulation.steps import History, Step
from tests.simulation.world import Settings


def shrink(history: History, fails: Callable[[History], bool], tries: int = 400) -> History:
    """Steps that are not needed left out, as long as it ``fails``; then numbers made small.

    Of halves first, then of ever smaller runs of steps.
    """
    left = tries

    def still(steps: tuple[Step, ...]) -> bool:
        nonlocal left
        left -= 1
        return left > 0 and fails(History(history.settings, steps))

    steps = history.steps
    size = max(1, len(steps) // 2)
    while size and left > 0:
        at = len(steps) - size
        while at >= 0:
            fewer = steps[:at] + steps[at + size :]
            if still(fewer):
                steps = fewer
            at -= size
        size = size // 2 if size > 1 or not _one_more(steps, still) else 1
    for at, step in enumerate(steps):
        for simple in (Step(step.kind), Step(step.kind, 0, step.b), Step(step.kind, step.a, 0)):
            if simple != steps[at] and still((*steps[:at], simple, *steps[at + 1 :])):
                steps = (*steps[:at], simple, *steps[at + 1 :])
                break
    return History(history.settings, steps)


def _one_more(steps: tuple[Step, ...], still: Callable[[tuple[Step, ...]], bool]) -> bool:
    """Whether one more step can be left out: those behind it may not be needed any more."""
    return any(still(steps[:at] + steps[at + 1 :]) for at in range(len(steps)))


def as_test(history: History, seed: int, found: str) -> str:
    """A test of a few lines, to be named by what it shows."""
    plain = Settings()
    told = ", ".join(
        f"{one.name}={getattr(history.settings, one.name)!r}"
        for one in fields(Settings)
        if getattr(history.settings, one.name) != getattr(plain, one.name)
    )
    steps = ", ".join(map(str, history.steps))
    return (
        f"def test_seed_{seed}() -> None:\n"
        f'    """{found}"""\n'
        f'    check(Settings({told}), "{steps}")\n'
    )
