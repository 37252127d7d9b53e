"""The bounds in a manifest, of a file's statistics in the Delta log."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DoubleType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from offloader.iceberg.data_files import DeltaFile, data_file, delta_file
from reader.table import AddedFile

SCHEMA = Schema(
    NestedField(1, "a", LongType()),
    NestedField(2, "b", IntegerType()),
    NestedField(3, "day", DateType()),
    NestedField(4, "at", TimestamptzType()),
    NestedField(5, "local", TimestampType()),
    NestedField(6, "real", DoubleType()),
    NestedField(7, "text", StringType()),
    NestedField(8, "who", StructType(NestedField(9, "x", LongType()))),
)


def bounds(low: dict[str, Any], high: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """As a reader finds them, by column."""
    made = data_file(DeltaFile("p", 1, 3, {}, low, high), "file:///p", 3, SCHEMA)
    assert made.lower_bounds.keys() == made.upper_bounds.keys()
    found = {}
    for number, least in made.lower_bounds.items():
        column = SCHEMA.find_field(number)
        kind: Any = column.field_type
        found[column.name] = (from_bytes(kind, least), from_bytes(kind, made.upper_bounds[number]))
    return found


@pytest.mark.parametrize(
    ("column", "low", "high", "expected"),
    [
        ("a", -(2**63), 2**63 - 1, (-(2**63), 2**63 - 1)),
        ("b", -1, 2**31 - 1, (-1, 2**31 - 1)),
        ("day", "0001-01-02", "9999-12-31", (-719161, 2932896)),
        ("day", date(1970, 1, 1), date(1970, 1, 2), (0, 1)),
        (
            "at",
            "1969-12-31T23:59:59.999Z",
            "2023-11-14T22:13:20.001Z",
            (-1000, 1_700_000_000_001_999),
        ),
        (
            "local",
            "1970-01-01T00:00:00.000",
            datetime(1970, 1, 1, 1, tzinfo=UTC),
            (0, 3_600 * 10**6 + 999),
        ),
    ],
)
def test_ranges(column: str, low: Any, high: Any, expected: tuple[int, int]) -> None:
    assert bounds({column: low}, {column: high}) == {column: expected}


@pytest.mark.parametrize(
    ("column", "value"), [("real", 1.5), ("text", "x"), ("who", {"x": 1}), ("a", None), ("gone", 1)]
)
def test_none_of_what_readers_could_skip_rows_by(column: str, value: Any) -> None:
    assert bounds({column: value}, {column: value}) == {}


def test_half_a_range_is_none() -> None:
    assert bounds({"a": 1}, {}) == {}
    assert bounds({}, {"a": 1}) == {}


def test_the_counts_of_a_commit() -> None:
    text = json.dumps(
        {
            "numRecords": 9,
            "minValues": {"a": 1},
            "maxValues": {"a": 2},
            "nullCount": {"a": 3, "who": {"x": 4}},
        }
    )
    one = delta_file(AddedFile("p.parquet", 77, text))
    assert one.rows == 9
    made = data_file(one, "s3://b/p.parquet", 9, SCHEMA)
    assert (made.file_path, made.record_count, made.file_size_in_bytes) == (
        "s3://b/p.parquet",
        9,
        77,
    )
    assert (made.value_counts, made.null_value_counts) == ({1: 9}, {1: 3})
    assert delta_file(AddedFile("p.parquet", 77, "")).rows is None
