"""Histories with a stream: their steps, drawn from a seed.

A history has the steps of a skeleton, or of none, with random steps in between, as those without a
stream have.
"""

from random import Random

from tests.simulation.recipes import Recipe, filled
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

_DAYS = ("advance", 6, 0)
_BEGIN = ("stream", 0, 0)
_DRAIN = ("stream", None, 10)
_DAY = (("publish", 1, 0), ("seal", 1, 0), ("turn", 0, 0), _DRAIN, ("advance", 5, 0))

STREAM_RECIPES: dict[str, Recipe] = {
    "an offloader begins after a loss": (
        ("publish", 0, 0),
        _BEGIN,
        _DRAIN,
        ("publish", 0, None),
        ("seal", 0, 0),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("trim", 0, 0),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("turn", 0, 0),
        _DRAIN,
    ),
    "a ledger goes that no commit saw filled": (
        ("publish", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        _BEGIN,
        ("publish", 0, 0),
        _DRAIN,
        ("publish", 0, None),
        ("seal", 0, 0),
        ("delete_hold", 0, 0),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("turn", 0, 0),
        _DRAIN,
    ),
    "a topic is empty where a stream begins": (
        _BEGIN,
        ("publish", 0, None),
        ("roll", 0, 0),
        ("trim", 0, 0),
        ("publish", 0, None),
        _DRAIN,
    ),
    "a topic was empty until an offloader began": (
        _BEGIN,
        ("publish", 0, None),
        ("roll", 0, 0),
        ("trim", 0, 0),
        ("publish", 0, None),
        ("roll", 0, 0),
        ("turn", 0, 0),
        ("publish", 0, None),
        _DRAIN,
    ),
    "a partition is idle": (
        ("publish", 0, 0),
        ("publish", 1, 0),
        _BEGIN,
        _DRAIN,
        ("seal", 0, 0),
        *_DAY,
        ("trim", 0, 0),
        ("maintain", 0, 1),
        *_DAY,
        *(_DAYS,) * 4,
        ("maintain", 0, 1),
        ("clean_log", 0, 0),
        ("publish", 0, None),
        *_DAY,
        ("maintain", 0, 1),
        _DRAIN,
    ),
    "rows expire before they are read": (
        ("publish", 0, None),
        ("seal", 0, 0),
        _BEGIN,
        ("turn", 0, 0),
        ("advance", 5, 0),
        ("publish", 0, None),
        ("seal", 0, 0),
        ("turn", 0, 0),
        ("maintain", 0, 1),
        _DRAIN,
    ),
    "an idle partition is deleted": (
        ("publish", 0, None),
        ("publish", 1, None),
        _BEGIN,
        _DRAIN,
        ("idle", 1, 0),
        ("publish", 0, None),
        _DRAIN,
        ("revive", 1, 0),
        _DRAIN,
        ("publish", 1, None),
        _DRAIN,
    ),
    "an idle partition is deleted behind an offloader": (
        ("publish", 0, None),
        ("publish", 1, None),
        ("seal", 1, 0),
        ("turn", 0, 0),
        _BEGIN,
        _DRAIN,
        ("delete_hold", 1, 0),
        ("idle", 1, 0),
        ("query", 0, 1),
        ("turn", 0, 0),
        ("revive", 1, 0),
        ("seal", 1, 0),
        ("query", 0, 1),
        ("turn", 0, 0),
        ("query", 0, 1),
        _DRAIN,
    ),
    "a loss that the log has forgotten": (
        ("publish", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        _BEGIN,
        _DRAIN,
        ("publish", 0, None),
        ("turn", 0, 0),
        ("seal", 0, 0),
        ("time_to_live", 0, 0),
        ("publish", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        *(_DAYS,) * 4,
        ("publish", 0, 0),
        ("seal", 0, 0),
        ("turn", 0, 0),
        ("clean_log", 0, 0),
        _DRAIN,
    ),
    "a message from the future": (
        ("burst", 0, 1),
        ("burst", 0, 0),
        ("stream", 4, 0),
        ("stream", 0, 1),
        ("burst", 0, None),
        _DRAIN,
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
