"""The stages of tests that a mutation meets: the named tests first, all of `make test` last."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import PurePosixPath
from typing import Protocol

from tests.mutations.mutation import Mutation, MutationError
from tests.mutations.tree import TestRun

_WITHOUT_SERVERS = ("tests/unit", "tests/simulation")


class Stage(IntEnum):
    """How far a mutation goes that no test has found yet."""

    NAMED = 0
    ROOM = 1
    UNIT = 2
    TEST = 3


class Outcome(IntEnum):
    """What became of a mutation."""

    FOUND = 0
    SURVIVED = 1
    NOT_RUN = 2


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutation in the stages up to ``stage``; ``seconds`` are of all of them.

    found_by: the test that failed first, None if none did.
    """

    mutation: Mutation
    outcome: Outcome
    stage: Stage
    found_by: str | None
    seconds: float


class Tests(Protocol):
    """What runs tests in a tree (``MutatedTree``)."""

    def run(self, tests: Sequence[str], seconds: float, *, processes: int = 1) -> TestRun: ...


class Tree(Tests, Protocol):
    """A tree in which a mutation can be put (``MutatedTree``)."""

    def with_mutation(self, mutation: Mutation) -> AbstractContextManager[None]: ...


def stages_of(mutation: Mutation, upto: Stage) -> Iterator[tuple[Stage, tuple[str, ...], int]]:
    """Yield (stage, its tests, processes) up to a stage; stages without tests are left out.

    Tests that an earlier stage ran are run again: they are few, and a folder is simple to name.
    """
    if mutation.tests:
        yield Stage.NAMED, mutation.tests, 1
    rooms = tuple(
        dict.fromkeys(
            str(PurePosixPath(name.partition("::")[0]).parent)
            for name in mutation.tests
            if name.startswith("tests/unit/")
        )
    )
    if upto >= Stage.ROOM and rooms:
        yield Stage.ROOM, rooms, 1
    if upto >= Stage.UNIT:
        yield Stage.UNIT, _WITHOUT_SERVERS, 2
    if upto >= Stage.TEST:
        if mutation.server_tests:
            yield Stage.TEST, mutation.server_tests, 1
        yield Stage.TEST, ("tests",), 2


_SECONDS = {Stage.NAMED: 600.0, Stage.ROOM: 900.0, Stage.UNIT: 1800.0, Stage.TEST: 5400.0}


def run_all(
    tree: Tree, mutations: Sequence[Mutation], upto: Stage, on_result: Callable[[Result], None]
) -> None:
    """Put in each mutation, and run its stages until a test fails.

    At the end the tests that failed are run without any mutation: one that fails then as well has
    found nothing. Raises MutationError for it, and if a mutation cannot be put in.
    """
    failed: dict[str, None] = {}
    for mutation in mutations:
        with tree.with_mutation(mutation):
            result = run_one(tree, mutation, upto)
        on_result(result)
        if result.found_by is not None and result.found_by.startswith("tests/"):
            # Without its parameters, whose ids pytest does not take in each case.
            failed[result.found_by.partition("[")[0]] = None
    again = tree.run(list(failed), _SECONDS[Stage.TEST]).found_by if failed else None
    if again is not None:
        raise MutationError(f"{again} fails without any mutation, too")


def run_one(tests: Tests, mutation: Mutation, upto: Stage) -> Result:
    """Run the stages of a mutation that has been put in."""
    seconds, last = 0.0, None
    for stage, names, processes in stages_of(mutation, upto):
        found = tests.run(names, _SECONDS[stage], processes=processes)
        seconds, last = seconds + found.seconds, stage
        if found.found_by is not None:
            return Result(mutation, Outcome.FOUND, stage, found.found_by, seconds)
    outcome = Outcome.NOT_RUN if last is None else Outcome.SURVIVED
    return Result(mutation, outcome, upto if last is None else last, None, seconds)
