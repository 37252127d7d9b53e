"""Histories of a compacted view: their steps, drawn from a seed."""

from random import Random

from tests.simulation.recipes import Recipe, filled
from tests.simulation.steps import History, Step, drawing
from tests.simulation.world import Settings

_WEIGHTS = {
    "publish_keyed": 16,
    "seal": 10,
    "roll": 5,
    "turn": 10,
    "round": 2,
    "crash": 3,
    "fail": 3,
    "meet": 2,
    "restart": 1,
    "maintain": 5,
    "clean_log": 1,
    "trim_needed": 8,
    "advance": 8,
    "compact": 8,
    "view": 12,
    "read_view": 5,
}

_FILL = (("publish_keyed", 0, None), ("publish_keyed", 0, None), ("seal", 0, 0))
_OFFLOAD = (("turn", 0, 0), ("advance", 2, 0), ("turn", 0, 0), ("trim_needed", 0, 0))
_COMPACT = ("compact", 0, 0)
_EXPIRE = (("advance", 5, 0), ("maintain", 0, 1))
_VIEW = ("view", 0, 1)

VIEW_RECIPES: dict[str, Recipe] = {
    "an offloader begins after compaction": (
        *_FILL,
        _COMPACT,
        *_FILL,
        ("trim_needed", 0, 0),
        _VIEW,
        *_OFFLOAD,
        _VIEW,
    ),
    "rows expire behind compaction": (*_FILL, _COMPACT, *_OFFLOAD, *_FILL, *_EXPIRE, _VIEW),
    "compaction begins behind expiry": (*_FILL, *_OFFLOAD, *_EXPIRE, *_FILL, _COMPACT, _VIEW),
    "compaction is behind expiry": (*_FILL, _COMPACT, *_FILL, *_OFFLOAD, *_EXPIRE, _VIEW),
    "compaction after a view was planned": (
        *_FILL,
        _COMPACT,
        *_FILL,
        ("trim_needed", 0, 0),
        ("view", 0, 0),
        *_FILL,
        _COMPACT,
        ("read_view", 0, 0),
    ),
}
"""By what it tries. Their offloader keeps rows for three hours."""


def draw_view(seed: int, without: frozenset[str] = frozenset()) -> History:
    """Return the history of a seed, without some kinds of steps."""
    random = Random(seed)
    name = random.choice(list(VIEW_RECIPES)) if random.random() < 0.6 else ""
    settings = Settings(
        partitions=random.choice((0, 1)) if name else random.choice((0, 0, 1, 2)),
        wildcard=False,
        broker_times=random.random() < 0.5,
        grace_minutes=random.choice((0, 0, 10)),
        retention_hours=3 if name else random.choice((0, 3, 3)),
    )
    some = drawing(random, _WEIGHTS)
    if name:
        steps = some(random.choice((0, 0, 2)))
        for told in filled(VIEW_RECIPES[name], random):
            steps += [Step(*told), *some(random.choice((0, 0, 0, 0, 0, 1)))]
    else:
        steps = some(random.randrange(12, 40))
    steps += [Step("view", 0, 1), Step("read_view"), Step("read_view", 1)]
    return History(settings, tuple(one for one in steps if one.kind not in without))
