"""Columns of rows as Spark's JSON has them: types that topics have, and those that none has."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    GeographyType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from reader.errors import ConfigurationError
from reader.model.columns import TIMESTAMP
from spark_ext.catalog.sink_columns import arrow_columns


def columns(kind: DataType) -> pa.Schema:
    return arrow_columns(StructType().add("c", kind).add("id", LongType()).json())


@pytest.mark.parametrize(
    ("kind", "arrow"),
    [
        (LongType(), pa.int64()),
        (CharType(3), pa.string()),
        (VarcharType(10), pa.string()),
        (StringType("UTF8_LCASE"), pa.string()),
        (NullType(), pa.null()),
        (TimestampType(), TIMESTAMP),
        (TimestampNTZType(), pa.timestamp("us")),
        (DecimalType(9, 2), pa.decimal128(9, 2)),
        (ArrayType(VarcharType(1)), pa.list_(pa.string())),
        (MapType(CharType(2), VarcharType(2)), pa.map_(pa.string(), pa.string())),
        (StructType().add("a", ArrayType(CharType(1))), pa.struct([("a", pa.list_(pa.string()))])),
    ],
)
def test_types_that_topics_have(kind: DataType, arrow: pa.DataType) -> None:
    found = columns(kind)
    assert found.names == ["c", "id"]
    assert found.field("c").type == arrow
    assert found.field("id").type == pa.int64()


@pytest.mark.parametrize(
    ("kind", "path", "name"),
    [
        (VariantType(), "c", "variant"),
        (DayTimeIntervalType(), "c", "interval day to second"),
        (YearMonthIntervalType(), "c", "interval year to month"),
        (CalendarIntervalType(), "c", "interval"),
        (GeographyType(4326), "c", "geography(4326)"),
        (ArrayType(VariantType()), "c[]", "variant"),
        (MapType(StringType(), DayTimeIntervalType()), "c[]", "interval day to second"),
        (StructType().add("a", StructType().add("b", VariantType())), "c.a.b", "variant"),
    ],
)
def test_types_that_no_topic_has(kind: DataType, path: str, name: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        columns(kind)
    assert caught.value.message == f"column {path!r} is {name}, which no field of a schema can be"
    assert caught.value.hint == "cast it, or leave it out"
    assert caught.value.context == {"column": path}
