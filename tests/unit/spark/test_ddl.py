"""Names and types as SQL text: what a topic or a field may be called must not matter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from reader.errors import UnsupportedError
from reader.model.columns import METADATA
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
