"""The demo's SQL, and the comparison of its results with pandas on the source data."""

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.flights import COLUMNS

MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

Answer = Mapping[tuple[str, int], tuple[int, float | None]]
"""(carrier, month) → (flights, mean delay of departure in minutes)."""

_TOLERANCE = 1e-9
_KEY = ["time_hour", "minute", "carrier", "flight", "origin", "dest"]


def by_carrier_and_month(table: str, more: str = "") -> str:
    """`more`: columns before the others, with their comma."""
    return (
        f"SELECT {more}carrier, month, count(*) AS flights, avg(dep_delay) AS delay\n"
        f"FROM {table}\n"
        "GROUP BY carrier, month"
    )


def moment(millis: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC, exactly."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis)


def timestamp(millis: int) -> str:
    """As a SQL literal; sessions of pulsar-lake are in UTC."""
    return f"TIMESTAMP '{moment(millis):%Y-%m-%d %H:%M:%S}.{millis % 1000:03d}'"


def expected(frame: Any) -> Answer:
    """The answer of pandas."""
    groups = frame.groupby(["carrier", "month"])["dep_delay"].agg(["size", "mean"])
    return {
        (carrier, int(month)): (int(size), None if math.isnan(mean) else float(mean))
        for (carrier, month), size, mean in zip(
            groups.index, groups["size"], groups["mean"], strict=True
        )
    }


def found(rows: Iterable[Any]) -> Answer:
    """The answer of Spark's collected rows."""
    return {(row.carrier, row.month): (row.flights, row.delay) for row in rows}


def total(answer: Answer) -> int:
    """How many flights it counts."""
    return sum(flights for flights, _ in answer.values())


def until_november(answer: Answer) -> Answer:
    """Of the months that do not change while December's flights come."""
    return {key: value for key, value in answer.items() if key[1] <= 11}


def differences(ours: Answer, theirs: Answer, whose: str = "pandas") -> str:
    """The first difference and how many there are, or "": counts exactly, means to 1e-9."""
    wrong = [key for key in sorted({*ours, *theirs}) if not _same(ours.get(key), theirs.get(key))]
    if not wrong:
        return ""
    first = wrong[0]
    return f"{len(wrong)} differ; {first}: {ours.get(first)}, {whose} has {theirs.get(first)}"


def _same(a: tuple[int, float | None] | None, b: tuple[int, float | None] | None) -> bool:
    if a is None or b is None or a[0] != b[0]:
        return a == b
    if a[1] is None or b[1] is None:
        return a[1] is b[1]
    return math.isclose(a[1], b[1], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def field_differences(table: Any, frame: Any) -> str:
    """Compare all fields of all rows of an Arrow table with the source; "" if they are equal."""
    ours = table.to_pandas()
    ours["time_hour"] = ours["time_hour"].astype("datetime64[ms, UTC]").astype("int64")
    ours = ours.sort_values(_KEY, ignore_index=True)
    theirs = frame.sort_values(_KEY, ignore_index=True)
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    for name in COLUMNS:
        a, b = ours[name], theirs[name]
        same = (a == b) | (a.isna() & b.isna())
        if not same.all():
            row = int((~same).idxmax())
            return f"{name} of {int((~same).sum())} rows, e.g. {a[row]!r}, not {b[row]!r}"
    return ""
