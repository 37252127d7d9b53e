"""Histories with a stream: their steps, drawn from a seed.

A history has the steps of a skeleton, or of none, with random steps in between, as those without a
stream have.
"""

from random import Random

from tests.simulation.recipes import Recipe, filled, recipe
from tests.simulation.steps import History, Step, drawing
from tests.simulation.world import Settings

_WEIGHTS = {
    "publish": 14,
    "burst": 1,
    "seal": 10,
    "roll": 5,
    "turn": 10,
    "round": 2,
    "crash": 4,
    "fail": 4,
    "meet": 3,
    "restart": 1,
    "maintain": 4,
    "clean_log": 1,
    "trim": 8,
    "time_to_live": 1,
    "delete_hold": 1,
    "add_partitions": 2,
    "advance": 6,
    "transaction": 6,
    "chunk": 8,
    "evolve": 1,
    "lag": 1,
    "idle": 2,
    "skew": 2,
    "outage": 2,
    "revive": 2,
    "remake": 1,
    "stream": 26,
    "replay": 5,
}

_IN_TROUBLE = _WEIGHTS | {"stream_crash": 8, "stream_fail": 8, "stream_meet": 24}

STREAM_RECIPES: dict[str, Recipe] = {
    "an offloader begins after a loss": recipe(
        "publish, stream, stream ? 10, publish 0 ?, seal, publish 0 ?, seal, trim, publish 0 ?, "
        "seal, turn, stream ? 10"
    ),
    "a ledger goes that no commit saw filled": recipe(
        "publish, seal, turn, stream, publish, stream ? 10, publish 0 ?, seal, delete_hold, "
        "publish 0 ?, seal, turn, stream ? 10"
    ),
    "a topic is empty where a stream begins": recipe(
        "stream, publish 0 ?, roll, trim, publish 0 ?, stream ? 10"
    ),
    "a topic was empty until an offloader began": recipe(
        "stream, publish 0 ?, roll, trim, publish 0 ?, roll, turn, publish 0 ?, stream ? 10"
    ),
    "a partition is idle": recipe(
        "publish, publish 1, stream, stream ? 10, seal, publish 1, seal 1, turn, stream ? 10, "
        "advance 5, trim, maintain 0 1, publish 1, seal 1, turn, stream ? 10, advance 5, "
        "advance 6, advance 6, advance 6, advance 6, maintain 0 1, clean_log, publish 0 ?, "
        "publish 1, seal 1, turn, stream ? 10, advance 5, maintain 0 1, stream ? 10"
    ),
    "rows expire before they are read": recipe(
        "publish 0 ?, seal, stream, turn, advance 5, publish 0 ?, seal, turn, maintain 0 1, "
        "stream ? 10"
    ),
    "an idle partition is deleted": recipe(
        "publish 0 ?, publish 1 ?, stream, stream ? 10, idle 1, publish 0 ?, stream ? 10, "
        "revive 1, stream ? 10, publish 1 ?, stream ? 10"
    ),
    "an idle partition is deleted behind an offloader": recipe(
        "publish 0 ?, publish 1 ?, seal 1, turn, stream, stream ? 10, delete_hold 1, idle 1, "
        "query 0 1, turn, revive 1, seal 1, query 0 1, turn, query 0 1, stream ? 10"
    ),
    "a loss that the log has forgotten": recipe(
        "publish, seal, turn, stream, stream ? 10, publish 0 ?, turn, seal, time_to_live, publish, "
        "seal, turn, advance 6, advance 6, advance 6, advance 6, publish, seal, turn, clean_log, "
        "stream ? 10"
    ),
    "a message from the future": recipe(
        "burst 0 1, burst, stream 4, stream 0 1, burst 0 ?, stream ? 10"
    ),
}
"""By what it tries. Their offloader keeps rows for three hours where they ``expire``."""

_EXPIRING = ("a partition is idle", "rows expire before they are read")


def draw_stream(seed: int, without: frozenset[str] = frozenset()) -> History:
    """The history of a seed; without some kinds of steps, which are left out of it."""
    random = Random(seed)
    name = random.choice(list(STREAM_RECIPES)) if random.random() < 0.5 else ""
    settings = Settings(
        partitions=2 if "partition" in name else random.choice((0, 0, 1, 2)),
        wildcard=False,
        broker_times=random.random() < 0.5,
        transactions=random.random() < 0.4 and "transaction" not in without,
        grace_minutes=random.choice((0, 0, 10)),
        retention_hours=3 if name in _EXPIRING else random.choice((0, 0, 0, 3)),
        schemas=random.random() < 0.3,
    )
    some = drawing(random, _WEIGHTS)
    if name:
        steps = some(random.choice((0, 0, 0, 2)))
        for told in filled(STREAM_RECIPES[name], random):
            steps += [Step(*told), *some(random.choice((0, 0, 0, 0, 0, 1)))]
    else:
        steps = [*some(2), Step("stream", random.randrange(1000), random.randrange(1000))]
        steps += some(random.randrange(10, 40))
    return _drained(settings, steps, without)


def draw_troubled_stream(seed: int, without: frozenset[str] = frozenset()) -> History:
    """The history of a seed in which drivers die, effects fail and ledgers move in a batch."""
    random = Random(seed)
    settings = Settings(
        partitions=random.choice((0, 0, 1, 2)),
        wildcard=False,
        broker_times=random.random() < 0.5,
        transactions=random.random() < 0.4 and "transaction" not in without,
        retention_hours=random.choice((0, 0, 0, 3)),
    )
    some = drawing(random, _IN_TROUBLE)
    steps = [*some(2), Step("stream", random.randrange(1000), random.randrange(1000))]
    return _drained(settings, [*steps, *some(random.randrange(10, 40))], without)


def _drained(settings: Settings, steps: list[Step], without: frozenset[str]) -> History:
    """Return the history with a stream that reads all there is at its end."""
    end = (Step("advance", 1), Step("stream", 0, 10)) * 2
    return History(settings, tuple(one for one in (*steps, *end) if one.kind not in without))
