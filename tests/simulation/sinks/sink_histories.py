"""Histories with writes to a topic: their steps, drawn from a seed."""

from random import Random

from tests.simulation.recipes import Recipe, filled
from tests.simulation.steps import History, Step, drawing
from tests.simulation.world import Settings

_WEIGHTS = {
    "publish": 4,
    "seal": 6,
    "roll": 4,
    "turn": 1,
    "advance": 6,
    "transaction": 3,
    "outage": 3,
    "add_partitions": 1,
    "sink": 22,
    "sink_crash": 14,
    "sink_fail": 12,
    "sink_meet": 10,
    "sink_resume": 4,
    "sink_rerun": 2,
    "sink_restart": 2,
    "sink_incident": 16,
    "sink_trim": 8,
    "sink_clean": 3,
    "sink_policy": 1,
    "sink_exclusive": 1,
    "sink_puts": 1,
    "sink_broker": 2,
    "sink_restore": 1,
    "sink_skew": 3,
}


_FORGOTTEN = ("advance", 5, 0)
_BEGUN = (("sink", 9, None), ("sink_crash", None, None))

SINK_RECIPES: dict[str, Recipe] = {
    "a name is forgotten": (*_BEGUN, _FORGOTTEN, ("sink", 9, None)),
    "a name is forgotten, and what it sent deleted": (
        *_BEGUN,
        ("seal", 0, 0),
        ("seal", 1, 0),
        ("sink_trim", 0, 0),
        ("sink_trim", 1, 0),
        ("advance", None, 0),
        _FORGOTTEN,
        ("sink", 9, None),
    ),
    "what was sent is in the table": (
        ("turn", 0, 0),
        *_BEGUN,
        ("publish", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        ("sink_trim", 0, 0),
        _FORGOTTEN,
        ("sink", 9, None),
    ),
    "a write once a day": (
        ("sink", 9, None),
        ("advance", 5, 0),
        ("seal", 0, 0),
        ("sink_trim", 0, 0),
        ("sink_incident", None, None),
        ("sink", 9, None),
        ("advance", 5, 0),
        ("sink_incident", None, None),
        ("sink_incident", None, None),
        ("sink", 9, None),
    ),
    "a driver is paused": (
        ("sink", 9, None),
        ("sink_meet", None, None),
        ("sink", 9, None),
        ("sink_meet", None, None),
    ),
    "brokers are slow and forget what waits": (
        ("sink", 9, None),
        ("sink_incident", 5, 1),  # slow for 90 s
        ("sink_incident", 0, 0),  # a connection is lost
        ("sink", 9, None),
        ("sink_broker", 0, None),
        ("sink_incident", 5, None),
        ("sink_incident", None, None),
        ("sink_incident", None, None),
        ("sink", 9, None),
        ("sink_broker", 0, None),
    ),
    "an entry is refused": (
        ("sink", 9, None),
        ("sink_incident", 48, 9),
        ("sink_crash", None, None),
        ("sink", 9, None),
        ("seal", 0, 0),
        ("sink_trim", 0, 0),
        ("sink", 9, None),
    ),
    "clocks are set": (
        ("sink_skew", None, None),
        *_BEGUN,
        ("sink_skew", None, None),
        ("advance", None, 0),
        ("sink", 9, None),
        ("sink_skew", None, None),
        ("sink_crash", None, None),
        _FORGOTTEN,
        ("sink", 9, None),
    ),
    "a batch is gone on with": (
        ("sink_meet", 306, 12),
        ("advance", None, 0),
        ("sink_clean", 0, 0),
        ("sink_resume", 0, None),
    ),
    "the storage is set back": (
        ("sink", 9, None),
        ("sink_restore", 0, 0),
        ("sink", 9, None),
        ("sink_crash", None, None),
        ("sink_restore", 0, 1),
        ("sink", 9, None),
        ("sink", 9, None),
    ),
    "tasks take days": (
        ("sink", 9, None),
        ("sink_meet", 250, None),
        ("sink_clean", 0, 0),
        ("sink_crash", None, None),
        ("advance", 6, 0),
        ("sink_clean", 0, 0),
        ("sink", 9, None),
    ),
}
"""By what it tries."""


def draw_sink(seed: int, without: frozenset[str] = frozenset()) -> History:
    """The history of a seed; without some kinds of steps, which are left out of it."""
    random = Random(seed)
    settings = Settings(
        partitions=random.choice((0, 1, 2, 3)),
        wildcard=False,
        broker_times=random.random() < 0.5,
        transactions=random.random() < 0.3 and "transaction" not in without,
    )
    some = drawing(random, _WEIGHTS)
    if random.random() < 0.5:
        steps = some(random.choice((0, 0, 1)))
        for told in filled(random.choice(list(SINK_RECIPES.values())), random):
            steps += [Step(*told), *some(random.choice((0, 0, 0, 0, 1)))]
    else:
        steps = some(random.randrange(4, 12))
    steps.append(Step("sink_settle", 0, random.randrange(1000)))
    return History(settings, tuple(one for one in steps if one.kind not in without))
