"""The publish times that are wanted: as predicates that prune, and as a filter that is exact."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from reader.errors import ConfigurationError
from reader.model.columns import TIMESTAMP
from reader.plan import Predicate

Moment = datetime | str
"""A time, or its ISO 8601 text; without an offset it is UTC."""

_COLUMN = "__publishTime"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_predicates(start: Moment | None, end: Moment | None) -> list[Predicate]:
    """From ``start`` to ``end``, both inclusive; None: open.

    Raises ConfigurationError for a text that is no time.
    """
    bounds = ((">=", start), ("<=", end))
    return [Predicate(_COLUMN, op, (_micros(time),)) for op, time in bounds if time is not None]


def time_filter(predicates: list[Predicate]) -> pc.Expression | None:
    """The rows that match all of ``time_predicates``; None: every row does."""
    found = None
    for one in predicates:
        value = pa.scalar(one.values[0], TIMESTAMP)
        bound = pc.field(_COLUMN) >= value if one.op == ">=" else pc.field(_COLUMN) <= value
        found = bound if found is None else found & bound
    return found


def _micros(time: Moment) -> int:
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError as error:
            raise ConfigurationError(
                f"{time!r} is not a time", hint="ISO 8601, such as 2026-01-31T12:00:00Z"
            ) from error
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)
