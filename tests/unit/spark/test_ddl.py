"""Names and types as SQL text: what a topic or a field may be called must not matter."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from reader.errors import ConfigurationError, UnsupportedError
from reader.model.columns import METADATA
from spark_ext.catalog.column_changes import require_columns
from spark_ext.ddl import columns_ddl, quoted, type_ddl


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
