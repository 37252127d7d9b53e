"""Columns of rows that are written, from Spark's JSON of a schema."""

import json

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    CharType,
    DataType,
    DayTimeIntervalType,
    GeographyType,
    GeometryType,
    MapType,
    StringType,
    StructField,
    StructType,
    VarcharType,
    VariantType,
    YearMonthIntervalType,
)

from reader.errors import ConfigurationError

# Some of them are structs for Arrow, which say nothing to whoever reads a topic.
_OF_SPARK_ALONE = (
    CalendarIntervalType,
    DayTimeIntervalType,
    GeographyType,
    GeometryType,
    VariantType,
    YearMonthIntervalType,
)


def arrow_columns(text: str) -> pa.Schema:
    """As Spark gives rows to Python. Raises ConfigurationError for a type that no topic has."""
    return pa.schema([_column(field) for field in StructType.fromJson(json.loads(text)).fields])


def _column(field: StructField) -> pa.Field:
    plain = StructField(field.name, _plain(field.dataType, field.name))
    try:
        return to_arrow_schema(StructType([plain]), timezone="UTC").field(0)
    except (PySparkTypeError, ValueError) as error:  # ValueError: a map without types
        raise _refused(field.dataType, field.name) from error


def _plain(kind: DataType, path: str) -> DataType:
    """With STRING for CHAR and VARCHAR: no schema of Pulsar says how long a text is."""
    match kind:
        case CharType() | VarcharType():
            return StringType()
        case ArrayType():
            return ArrayType(_plain(kind.elementType, f"{path}[]"))
        case MapType():
            key = _plain(kind.keyType, f"{path}[]")
            return MapType(key, _plain(kind.valueType, f"{path}[]"))
        case StructType():
            inner = [(one.name, _plain(one.dataType, f"{path}.{one.name}")) for one in kind]
            return StructType([StructField(name, member) for name, member in inner])
    if isinstance(kind, _OF_SPARK_ALONE):
        raise _refused(kind, path)
    return kind


def _refused(kind: DataType, path: str) -> ConfigurationError:
    return ConfigurationError(
        f"column {path!r} is {kind.simpleString()}, which no field of a schema can be",
        hint="cast it, or leave it out",
        context={"column": path},
    )
