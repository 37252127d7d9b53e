"""Histories with writes to a topic: their steps, drawn from a seed."""

from random import Random

from tests.simulation.recipes import Recipe, filled, recipe
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

SINK_RECIPES: dict[str, Recipe] = {
    "a name is forgotten": recipe("sink 9 ?, sink_crash ? ?, advance 5, sink 9 ?"),
    "a name is forgotten, and what it sent deleted": recipe(
        "sink 9 ?, sink_crash ? ?, seal, seal 1, sink_trim, sink_trim 1, advance ?, advance 5, "
        "sink 9 ?"
    ),
    "what was sent is in the table": recipe(
        "turn, sink 9 ?, sink_crash ? ?, publish, seal, turn, sink_trim, advance 5, sink 9 ?"
    ),
    "a write once a day": recipe(
        "sink 9 ?, advance 5, seal, sink_trim, sink_incident ? ?, sink 9 ?, advance 5, "
        "sink_incident ? ?, sink_incident ? ?, sink 9 ?"
    ),
    "a driver is paused": recipe("sink 9 ?, sink_meet ? ?, sink 9 ?, sink_meet ? ?"),
    "brokers are slow and forget what waits": recipe(
        "sink 9 ?, sink_incident 5 1, sink_incident, sink 9 ?, sink_broker 0 ?, sink_incident 5 ?, "
        "sink_incident ? ?, sink_incident ? ?, sink 9 ?, sink_broker 0 ?"
    ),
    "an entry is refused": recipe(
        "sink 9 ?, sink_incident 48 9, sink_crash ? ?, sink 9 ?, seal, sink_trim, sink 9 ?"
    ),
    "clocks are set": recipe(
        "sink_skew ? ?, sink 9 ?, sink_crash ? ?, sink_skew ? ?, advance ?, sink 9 ?, "
        "sink_skew ? ?, sink_crash ? ?, advance 5, sink 9 ?"
    ),
    "a batch is gone on with": recipe("sink_meet 306 12, advance ?, sink_clean, sink_resume 0 ?"),
    "the storage is set back": recipe(
        "sink 9 ?, sink_restore, sink 9 ?, sink_crash ? ?, sink_restore 0 1, sink 9 ?, sink 9 ?"
    ),
    "tasks take days": recipe(
        "sink 9 ?, sink_meet 250 ?, sink_clean, sink_crash ? ?, advance 6, sink_clean, sink 9 ?"
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
