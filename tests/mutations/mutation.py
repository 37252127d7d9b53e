"""A mutation of the product: one text that is replaced, and the tests that should find it."""

from dataclasses import dataclass
from pathlib import Path


class MutationError(Exception):
    """A mutation that cannot be put in, or a run that says nothing of it."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One fault.

    file: path in the repository.
    old: text that is in the file exactly once. ``new`` replaces it.
    loss: what a user would lose.
    tests: paths or node ids of tests without a server that should find it.
    server_tests: the same of tests that start servers. `make test` runs all that are named: a run
        of others ends with an error.
    """

    id: str
    file: str
    old: str
    new: str
    loss: str
    tests: tuple[str, ...] = ()
    server_tests: tuple[str, ...] = ()


def mutated(mutation: Mutation, root: Path) -> str:
    """Return the text of the mutation's file with the mutation.

    Raises MutationError if the file does not contain the old text exactly once.
    """
    file = root / mutation.file
    text = file.read_text() if file.is_file() else ""
    count = text.count(mutation.old)
    if count != 1:
        raise MutationError(
            f"{mutation.id}: {mutation.file} contains the old text {count} times, not once"
        )
    return text.replace(mutation.old, mutation.new)
