"""Skeletons of histories: what has to come in this order for something rare to be tried at all.

A history has the steps of one of them, or of none, with random steps in between.
"""

from collections.abc import Sequence
from random import Random

Recipe = tuple[tuple[str, int | None, int | None], ...]


def recipe(text: str) -> Recipe:
    """Return the steps of ``text``: kinds with up to two numbers, separated by commas.

    A number that is left out is 0; "?" is a number to be drawn.
    """
    steps = []
    for step in text.split(", "):
        kind, *numbers = step.split(" ")
        a, b = (None if number == "?" else int(number) for number in [*numbers, "0", "0"][:2])
        steps.append((kind, a, b))
    return tuple(steps)


RECIPES: dict[str, Recipe] = {
    "a schema is registered anew": recipe(
        "publish 0 ?, evolve, evolve, publish 0 ?, seal, turn ?, publish 0 ?, register_anew 0 ?, "
        "query 0 1, publish 0 ?, query 0 1, publish 0 ?, seal, turn, query 0 1"
    ),
    "messages go before an offloader begins": recipe(
        "publish 0 ?, seal, query 0 1, publish 0 ?, seal, trim, pin 0 ?, publish 0 ?, seal, "
        "turn ?, run_pinned, query 0 1, delete_hold, query 0 1, publish 0 ?, seal, turn, "
        "query 0 1, settle"
    ),
    "clocks are set and servers are away": recipe(
        "skew ? ?, publish 0 ?, seal, outage ? ?, turn ?, query 0 1, skew ? ?, publish 0 ?, seal, "
        "round ?, outage ? ?, advance ?, round ?, skew ? ?, live ?, query 0 1"
    ),
    "a registry forgets": recipe(
        "evolve, publish 0 ?, seal, turn ?, publish 0 ?, register_anew 0 9, query 0 1, "
        "publish 0 ?, seal, turn ?, evolve, publish 0 ?, query 0 1, publish 0 ?, seal, turn, "
        "query 0 1"
    ),
    "a cluster is restored": recipe(
        "publish 0 ?, seal, turn, publish 0 ?, backup, publish 0 ?, seal, publish 0 ?, seal, turn, "
        "restore, publish 0 ?, seal, publish 0 ?, seal, turn, query 0 1"
    ),
    "a cluster is wiped": recipe(
        "publish, seal, query 0 1, wipe, publish 0 3, seal, count, query 0 4"
    ),
    "a gap is stepped over": recipe(
        "round, publish 0 ?, seal, turn, publish 0 ?, seal, pin 0 ?, time_to_live, publish 0 ?, "
        "seal, turn, run_pinned"
    ),
    "a gap is known": recipe(
        "publish 0 ?, seal, publish 0 ?, turn, seal, time_to_live, query 0 1, turn, query 0 1, "
        "publish 0 ?, seal, turn, query 0 1"
    ),
    "a gap is known to one process": recipe(
        "publish 0 ?, seal, turn, publish 0 ?, turn, seal, time_to_live, publish 0 ?, seal, turn, "
        "query 0 1"
    ),
    "the log is cleaned up": recipe(
        "publish 0 ?, seal, turn, publish 0 ?, seal, turn, turn, trim 0 1, advance 6, advance 6, "
        "advance 6, advance 6, publish 0 ?, seal, turn, clean_log, query"
    ),
    "an old copy of a table": recipe(
        "publish 0 ?, seal, turn, copy_table, publish 0 ?, seal, turn, advance 1, turn, trim 0 1, "
        "restore_table, query 0 1, turn, give_up_newer, query 0 1, publish 0 ?, seal, turn, "
        "query 0 1, settle"
    ),
    "a table is out of sight": recipe(
        "publish 0 ?, seal, turn, advance 1, turn, trim 0 1, hide 0 1"
    ),
    "partitions are added": recipe("round, advance, round, add_partitions, advance, round"),
    "chunks across ledgers": recipe(
        "chunk 0 3, seal, chunk 0 3, chunk 0 ?, advance 2, turn, seal, turn, query 0 1"
    ),
    "chunks given up": recipe(
        "chunk 0 14, chunk 0 24, seal, turn, advance 2, publish 0 ?, seal, turn, advance 2, "
        "publish 0 ?, seal, turn, publish 0 ?, seal, turn, query 0 1"
    ),
    "transactions while a broker recovers": recipe(
        "transaction 0 3, seal 0 2, query 0 1, turn, transaction 0 ?, seal 0 2, turn, query 0 1"
    ),
    "chunks on an idle topic": recipe("chunk 0 ?, seal, chunk 0 ?, turn, idle"),
    "bookies fail in a read": recipe(
        "publish 0 ?, seal, publish 0 ?, stumble 0 ?, stumble 0 ?, stumble 0 ?"
    ),
}
"""By what it tries."""


def skeleton(name: str, random: Random) -> Sequence[tuple[str, int, int]]:
    """The steps of a recipe, with numbers."""
    return filled(RECIPES[name], random)


def filled(recipe: Recipe, random: Random) -> Sequence[tuple[str, int, int]]:
    """The same of any recipe."""
    return [
        (
            kind,
            random.randrange(1000) if a is None else a,
            random.randrange(1000) if b is None else b,
        )
        for kind, a, b in recipe
    ]
