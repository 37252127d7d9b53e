"""A mutation of the product: one text that is replaced, and the tests that should find it."""

import re
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


def mutations(text: str) -> tuple[Mutation, ...]:
    """Return the mutations of a text, which empty lines separate. Each one has these lines:

        its id: what a user would lose
        its file: the tests, separated by spaces; those that start servers behind "servers:"
        - the old text
        + the new text

    A line that begins with a space continues the one before.
    """
    return tuple(map(_mutation, text.strip().split("\n\n")))


def _mutation(text: str) -> Mutation:
    head, where, *changes = re.sub(r"\n +", " ", text).split("\n")
    name, loss = head.split(": ", 1)
    file, tests = where.split(":", 1)
    tests, _, server_tests = tests.partition("servers:")
    old, new = ("\n".join(one[2:] for one in changes if one[0] == sign) for sign in "-+")
    return Mutation(name, file, old, new, loss, (*tests.split(),), (*server_tests.split(),))


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
