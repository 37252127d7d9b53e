"""Which columns of a file have values that nearly all differ, by its first rows. Pure.

For these a dictionary is made, found to be too large and thrown away, in each row group: of a
column of numbers that is most of what writing takes, and its size.
"""

import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE = 16 << 10
_FEWEST = 4 << 10
"""Rows of a sample that says something; a file of fewer costs little either way."""
_DIFFERENT = 0.9
"""Distinct values of a sample's: there are then some 75,000 at least, half a row group's rows."""
_UPWARDS = 0.9


def different_columns(table: pa.Table) -> dict[str, bool]:
    """The columns whose values nearly all differ, and whether most are integers that go up.

    Columns of one value a row only: nothing nested.
    """
    sample = table.slice(0, _SAMPLE).combine_chunks()
    found = {}
    for field, column in zip(sample.schema, sample.columns, strict=True):
        valid = len(column) - column.null_count
        if valid < _FEWEST or not _comparable(field.type) or "." in field.name:
            continue  # a name with a dot may be a nested column's path
        if pc.count_distinct(column).as_py() > _DIFFERENT * valid:
            found[field.name] = _goes_up(column.chunk(0))
    return found


def _comparable(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
    )


def _goes_up(values: pa.Array) -> bool:
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if not pa.types.is_integer(values.type):
        return False
    values = values.drop_null()
    steps = pc.greater_equal(values.slice(1), values.slice(0, len(values) - 1))
    return bool(pc.mean(steps).as_py() > _UPWARDS)
