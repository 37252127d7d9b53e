"""Names and types as SQL text: what a topic or a field may be called must not matter. And types of
Spark as those of rows that are written."""

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type
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

from reader.errors import ConfigurationError, UnsupportedError
from reader.model.columns import METADATA, TIMESTAMP
from spark_ext.ddl import columns_ddl, quoted, string_literal, type_ddl
from spark_ext.planner.column_changes import require_columns
from spark_ext.planner.sink_columns import arrow_columns


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        (pa.bool_(), "BOOLEAN"),
        (pa.int32(), "INT"),
        (pa.int64(), "BIGINT"),
        (pa.float64(), "DOUBLE"),
        (pa.string(), "STRING"),
        (pa.large_string(), "STRING"),
        (pa.binary(), "BINARY"),
        (pa.date32(), "DATE"),
        (pa.decimal128(38, 9), "DECIMAL(38,9)"),
        (pa.timestamp("us", "UTC"), "TIMESTAMP_LTZ"),
        (pa.timestamp("us"), "TIMESTAMP_NTZ"),
        (pa.list_(pa.int64()), "ARRAY<BIGINT>"),
        (pa.map_(pa.string(), pa.list_(pa.binary())), "MAP<STRING, ARRAY<BINARY>>"),
        (
            pa.struct([("a b", pa.int64()), ("c`d", pa.string())]),
            "STRUCT<`a b`: BIGINT, `c``d`: STRING>",
        ),
        (pa.struct([]), "STRUCT<>"),
    ],
)
def test_types(kind: pa.DataType, ddl: str) -> None:
    assert type_ddl(kind) == ddl


def test_a_type_that_spark_lacks_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="duration"):
        type_ddl(pa.struct([("x", pa.duration("us"))]))


def test_names_are_quoted() -> None:
    assert quoted("pulsar", "a/b", "we`ird.na-me") == "`pulsar`.`a/b`.`we``ird.na-me`"


def test_a_schema() -> None:
    schema = pa.schema([("select", pa.int64()), ("__key", pa.string())])
    assert columns_ddl(schema) == "`select` BIGINT, `__key` STRING"


def test_every_metadata_column_has_a_type() -> None:
    assert columns_ddl(METADATA).count("`__") == len(METADATA)


# -- what a stream is told of columns that its topics have got since it was started ----------------

PLACE = pa.struct([("town", pa.string())])
LARGER = pa.struct([("town", pa.string()), ("zip", pa.string())])
EVERY = [
    pa.bool_(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.decimal128(20, 3),
    PLACE,
    pa.list_(PLACE),
    pa.map_(pa.string(), pa.list_(PLACE)),
]


def _told(now: pa.DataType, then: pa.DataType) -> str:
    started = StructType.fromJson({"type": "struct", "fields": [_spark("c", then)]})
    snapshot: Any = SimpleNamespace(topic="t", columns=pa.schema([("c", now)]))
    try:
        require_columns(snapshot, started.json())
    except ConfigurationError as error:
        return str(error)
    return ""


def _spark(name: str, kind: pa.DataType) -> dict[str, Any]:
    found = json.loads(from_arrow_type(kind).json())
    return {"name": name, "type": found, "nullable": True, "metadata": {}}


@pytest.mark.parametrize("kind", EVERY, ids=type_ddl)
def test_what_has_not_changed(kind: pa.DataType) -> None:
    assert _told(kind, kind) == ""


@pytest.mark.parametrize(
    "nest",
    [
        lambda kind: kind,
        pa.list_,
        lambda kind: pa.map_(pa.string(), kind),
        lambda kind: pa.struct([("a", pa.list_(kind))]),
    ],
)
def test_members_are_found_at_any_depth(nest: Any) -> None:
    told = _told(nest(LARGER), nest(PLACE))
    assert "has got the columns c" in told
    assert ".zip since" in told
    assert _told(nest(PLACE), nest(LARGER)) == ""  # of another topic of the stream


@pytest.mark.parametrize("now", [pa.string(), PLACE, pa.list_(pa.int64())])
def test_another_type(now: pa.DataType) -> None:
    assert "its column c has another type" in _told(now, pa.int64())


def written(kind: DataType) -> pa.Schema:
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
    found = written(kind)
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
        written(kind)
    assert caught.value.message == f"column {path!r} is {name}, which no field of a schema can be"
    assert caught.value.hint == "cast it, or leave it out"
    assert caught.value.context == {"column": path}


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("a b`", "'a b`'"),
        ("it's", "CAST(X'69742773' AS STRING)"),
        ("a\\", "CAST(X'615c' AS STRING)"),
        ("\u00e4'", "CAST(X'c3a427' AS STRING)"),
    ],
)
def test_a_text_means_the_same_whatever_a_session_takes_a_backslash_for(
    text: str, sql: str
) -> None:
    """``spark.sql.parser.escapedStringLiterals``"""
    assert string_literal(text) == sql
