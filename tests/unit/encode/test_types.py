"""docs/types.md, row by row: what is read is written again, through Avro and through JSON."""

import math
from typing import Any

import pyarrow as pa
import pytest

from reader.encode.payload import prewarm
from reader.payload import payload_fields
from tests.unit.encode.writing import again, encode, info, payloads
from tests.unit.payload.cases import Given, avro_bytes, decode, decoder, rows, shown, versions
from tests.unit.payload.test_types import MAPPING, named, record

MOST, LEAST = (1 << 63) - 1, -(1 << 63)
DOUBLES = [0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, 1e16, 1e21,
           1 / 3, 2.0**53 + 2]  # fmt: skip
TEXTS = ["", "a", "ä€😀", '\0\x1f\n"\\/\x7f\u2028', "x" * 31 + '"', "x" * 64, "\\" * 70]
# id in docs/types.md: more values of the column.
MORE: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [0, -1, (1 << 31) - 1, -(1 << 31)],
    "long": [0, -1, 1 << 32, MOST, LEAST],
    "float": [value for value in DOUBLES if value == 0 or not math.isfinite(value)],
    "double": DOUBLES,
    "string": TEXTS,
    "bytes": [b"", b"\0", b"\xff" * 33, b"ab", b"abc"],
    "fixed": [b"\0\xff"],
    "record": [{"a": -5}],
    "array": [[], [0] * 70, [MOST >> 40]],
    "map": [[], [("", 1), ('"', 2), ("k" * 40, 3)]],
    "null or X": [None],
    "int or long": [None, LEAST],
    "float or double": [None, 0.1, math.nan],
    "other unions": [None, {"member0": 3, "member1": None}, {"member0": None, "member1": ""}],
    "decimal above 38": ["0.00", "-0.01", "9" * 37 + ".99"],
    "date": [0, -1, 2_932_896, -719_162],
    "time-millis": [0, 86_399_999_000],
    "time-micros": [0, 86_399_999_999],
    "timestamp-millis": [-1000, 253_402_300_799_999_000],
    "timestamp-micros": [-1, 253_402_300_799_999_999, -62_135_596_800_000_000],
    "timestamp-nanos": [MOST, LEAST],
    "local-timestamp-millis": [-1000],
    "local-timestamp-micros": [MOST, LEAST],
    "local-timestamp-nanos": [MOST, LEAST],
}


def columns_of(name: str) -> tuple[Any, pa.Array]:
    """The schema's type, and values of its column; as integers where Python has no such time."""
    kind, arrow, _, _, value = MAPPING[name]
    values = [value, *MORE.get(name, [])]
    stored: pa.DataType = arrow
    if pa.types.is_timestamp(arrow):
        stored = pa.int64()
    if pa.types.is_date32(arrow):
        stored = pa.int32()
    return kind, pa.array(values, stored).cast(arrow)


@pytest.mark.parametrize("name", MAPPING)
@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_what_is_read_is_written_again(name: str, format_: str) -> None:
    kind, _, datum, text, column = MAPPING[name]
    given = (format_, versions((format_, record(kind, "int")))[0].definition)
    payload = f'{{"f0":{text},"f1":1}}'.encode()
    if format_ == "AVRO":
        payload = avro_bytes(record(kind, "int"), {"f0": datum, "f1": 1})
    found = decode(decoder(given), [payload] * 2)
    assert rows(found) == [{"f0": column, "f1": 1}] * 2
    batch = pa.record_batch(list(found.arrays.values()), schema=payload_fields([info(given)]))
    assert again(given, batch) == rows(found)
    written = payloads(given, batch, json_times="numbers")
    assert rows(decode(decoder(given), written)) == rows(found)
    # JSON leaves out what is null.
    assert written == [payload.replace(b'"f0":null,', b"")] * 2


@pytest.mark.parametrize("name", MAPPING)
@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
@pytest.mark.parametrize("where", ["record", "list", "map", "optional", "nested"])
def test_more_values_and_wherever_they_are(name: str, format_: str, where: str) -> None:
    kind, array = columns_of(name)
    own = isinstance(kind, list) or kind == "null"
    optional = kind if own else ["null", kind]
    count = len(array)
    offsets = pa.array([0, 0, count - 1, count, count], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, array)
    values: pa.Array
    match where:
        case "record":
            schema, values = kind, array
        case "optional":
            schema = optional
            values = pa.concat_arrays([array, pa.nulls(2, array.type), array])
        case "list":
            schema, values = {"type": "array", "items": kind}, lists
        case "map":
            keys = pa.array([f"k{i}" for i in range(count)])
            schema = {"type": "map", "values": optional}
            values = pa.MapArray.from_arrays(offsets, keys, array)
        case _:
            inner = named({"x": kind, "l": ["null", {"type": "array", "items": optional}]}, "Inner")
            schema = ["null", inner]
            values = pa.StructArray.from_arrays(
                [array.take(pa.array([0, 0, 0, 0])), lists], ["x", "l"],
                mask=pa.array([False, True, False, False]),
            )  # fmt: skip
    given: Given = (format_, versions((format_, named({"f0": schema})))[0].definition)
    batch = pa.record_batch([values], names=["f0"])
    expected = repr(shown_rows(batch))
    assert repr(again(given, batch)) == expected
    # A slice is written as its rows are in the whole.
    whole = payloads(given, batch)
    for start in range(len(batch)):
        assert payloads(given, batch.slice(start, 2)) == whole[start : start + 2]


def shown_rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [{"f0": value} for value in shown(batch.column(0))]


def test_all_types_at_once_and_none_of_the_rows() -> None:
    given: Given = ("AVRO", versions(("AVRO", record("int", "string")))[0].definition)
    batch = pa.RecordBatch.from_pylist([], payload_fields([info(given)]))
    assert len(encode(given, batch).values) == 0


def test_prewarm() -> None:
    prewarm()
