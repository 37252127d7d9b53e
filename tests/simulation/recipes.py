"""Skeletons of histories: what has to come in this order for something rare to be tried at all.

A history has the steps of one of them, or of none, with random steps in between. A None is drawn.
"""

from collections.abc import Sequence
from random import Random

Recipe = tuple[tuple[str, int | None, int | None], ...]

_FILL: Recipe = (("publish", 0, None), ("seal", 0, 0))
_PLAIN: Recipe = (("publish", 0, 0), ("seal", 0, 0))
_OFFLOAD: Recipe = (*_FILL, ("turn", 0, 0))
_DAYS = ("advance", 6, 0)

RECIPES: dict[str, Recipe] = {
    "a schema is registered anew": (
        ("publish", 0, None),
        ("evolve", 0, 0),
        ("evolve", 0, 0),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("turn", None, 0),
        ("publish", 0, None),
        ("register_anew", 0, None),
        ("query", 0, 1),
        ("publish", 0, None),
        ("query", 0, 1),
        *_OFFLOAD,
        ("query", 0, 1),
    ),
    "messages go before an offloader begins": (
        *_FILL,
        ("query", 0, 1),
        *_FILL,
        ("trim", 0, 0),
        ("pin", 0, None),
        *_FILL,
        ("turn", None, 0),
        ("run_pinned", 0, 0),
        ("query", 0, 1),
        ("delete_hold", 0, 0),
        ("query", 0, 1),
        *_OFFLOAD,
        ("query", 0, 1),
        ("settle", 0, 0),
    ),
    "clocks are set and servers are away": (
        ("skew", None, None),
        *_FILL,
        ("outage", None, None),
        ("turn", None, 0),
        ("query", 0, 1),
        ("skew", None, None),
        *_FILL,
        ("round", None, 0),
        ("outage", None, None),
        ("advance", None, 0),
        ("round", None, 0),
        ("skew", None, None),
        ("live", None, 0),
        ("query", 0, 1),
    ),
    "a registry forgets": (
        ("evolve", 0, 0),
        *_FILL,
        ("turn", None, 0),
        ("publish", 0, None),
        ("register_anew", 0, 9),
        ("query", 0, 1),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("turn", None, 0),
        ("evolve", 0, 0),
        ("publish", 0, None),
        ("query", 0, 1),
        *_OFFLOAD,
        ("query", 0, 1),
    ),
    "a cluster is restored": (
        *_OFFLOAD,
        ("publish", 0, None),
        ("backup", 0, 0),
        *_FILL,
        *_OFFLOAD,
        ("restore", 0, 0),
        *_FILL,
        *_FILL,
        ("turn", 0, 0),
        ("query", 0, 1),
    ),
    "a cluster is wiped": (
        *_PLAIN,
        ("query", 0, 1),
        ("wipe", 0, 0),
        ("publish", 0, 3),
        ("seal", 0, 0),
        ("count", 0, 0),
        ("query", 0, 4),
    ),
    "a gap is stepped over": (
        ("round", 0, 0),
        *_OFFLOAD,
        *_FILL,
        ("pin", 0, None),
        ("time_to_live", 0, 0),
        *_OFFLOAD,
        ("run_pinned", 0, 0),
    ),
    "a gap is known": (
        *_FILL,
        ("publish", 0, None),
        ("turn", 0, 0),
        ("seal", 0, 0),
        ("time_to_live", 0, 0),
        ("query", 0, 1),
        ("turn", 0, 0),
        ("query", 0, 1),
        *_OFFLOAD,
        ("query", 0, 1),
    ),
    "a gap is known to one process": (
        *_OFFLOAD,
        ("publish", 0, None),
        ("turn", 0, 0),
        ("seal", 0, 0),
        ("time_to_live", 0, 0),
        *_OFFLOAD,
        ("query", 0, 1),
    ),
    "the log is cleaned up": (
        *_OFFLOAD,
        *_OFFLOAD,
        ("turn", 0, 0),
        ("trim", 0, 1),
        *(_DAYS,) * 4,
        *_OFFLOAD,
        ("clean_log", 0, 0),
        ("query", 0, 0),
    ),
    "an old copy of a table": (
        *_OFFLOAD,
        ("copy_table", 0, 0),
        *_OFFLOAD,
        ("advance", 1, 0),
        ("turn", 0, 0),
        ("trim", 0, 1),
        ("restore_table", 0, 0),
        ("query", 0, 1),
        ("turn", 0, 0),
        ("give_up_newer", 0, 0),
        ("query", 0, 1),
        *_OFFLOAD,
        ("query", 0, 1),
        ("settle", 0, 0),
    ),
    "a table is out of sight": (
        *_OFFLOAD,
        ("advance", 1, 0),
        ("turn", 0, 0),
        ("trim", 0, 1),
        ("hide", 0, 1),
    ),
    "partitions are added": (
        ("round", 0, 0),
        ("advance", 0, 0),
        ("round", 0, 0),
        ("add_partitions", 0, 0),
        ("advance", 0, 0),
        ("round", 0, 0),
    ),
    "chunks across ledgers": (
        ("chunk", 0, 3),
        ("seal", 0, 0),
        ("chunk", 0, 3),
        ("chunk", 0, None),
        ("advance", 2, 0),
        ("turn", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        ("query", 0, 1),
    ),
    "chunks given up": (
        ("chunk", 0, 14),
        ("chunk", 0, 24),
        ("seal", 0, 0),
        ("turn", 0, 0),
        ("advance", 2, 0),
        *_OFFLOAD,
        ("advance", 2, 0),
        *_OFFLOAD,
        *_OFFLOAD,
        ("query", 0, 1),
    ),
    "transactions while a broker recovers": (
        ("transaction", 0, 3),
        ("seal", 0, 2),
        ("query", 0, 1),
        ("turn", 0, 0),
        ("transaction", 0, None),
        ("seal", 0, 2),
        ("turn", 0, 0),
        ("query", 0, 1),
    ),
    "chunks on an idle topic": (
        ("chunk", 0, None),
        ("seal", 0, 0),
        ("chunk", 0, None),
        ("turn", 0, 0),
        ("idle", 0, 0),
    ),
    "bookies fail in a read": (
        *_FILL,
        ("publish", 0, None),
        ("stumble", 0, None),
        ("stumble", 0, None),
        ("stumble", 0, None),
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
