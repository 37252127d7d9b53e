"""Dates and times outside of the years 1 to 9999, which Python does not have: NULL, and a problem.

One such value would fail a whole result in ``to_pylist`` and in PySpark's ``collect``.
"""

import struct
from typing import Any

import pytest

from tests.unit.payload.cases import Given, avro_bytes, decode, decoder, json_bytes, key_value

# The first and the last value of these years, as the schema counts them.
DAYS = (-719_162, 2_932_896)
MILLIS = (-62_135_596_800_000, 253_402_300_799_999)
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
LOGICAL = [
    ("int", "date", DAYS),
    ("long", "timestamp-millis", MILLIS),
    ("long", "timestamp-micros", MICROS),
]
PRIMITIVES = [("LOCAL_DATE", DAYS), ("DATE", MILLIS), ("TIMESTAMP", MILLIS)]


def around(bounds: tuple[int, int]) -> list[int]:
    """Two values in the range, and two outside of it."""
    return [*bounds, bounds[0] - 1, bounds[1] + 1]


def check(schema: Given, payloads: list[bytes], column: str) -> None:
    """The first half of the payloads has values, the second half has problems and no values."""
    half = len(payloads) // 2
    found = decode(decoder(schema), payloads)
    assert list(found.problems) == list(range(half, len(payloads)))
    values = found.arrays[column].to_pylist()
    assert None not in values[:half]
    assert all(value is None or value in ([None], {"t": None}) for value in values[half:])
    # Which rows have problems does not depend on what is wanted.
    assert decode(decoder(schema, wanted=[]), payloads).problems == found.problems


def nested(kind: str, logical: str) -> dict[str, Any]:
    time = {"type": kind, "logicalType": logical} if logical else {"type": kind}
    fields = [
        {"name": "t", "type": time},
        {"name": "many", "type": {"type": "array", "items": ["null", time]}},
    ]
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.parametrize(("kind", "logical", "bounds"), LOGICAL)
@pytest.mark.parametrize("column", ["t", "many"])
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON"])
def test_records(
    schema_type: str, column: str, kind: str, logical: str, bounds: tuple[int, int]
) -> None:
    schema = nested(kind, logical)
    values = [
        {"t": value if column == "t" else 0, "many": [value] if column == "many" else []}
        for value in around(bounds)
    ]
    written = [
        json_bytes(value) if schema_type == "JSON" else avro_bytes(nested(kind, ""), value)
        for value in values
    ]
    check((schema_type, schema), written, column)


@pytest.mark.parametrize(
    ("kind", "logical", "texts"),
    [
        ("int", "date", ["0001-01-01", "9999-12-31", "0000-12-31", "+10000-01-01"]),
        (
            "long",
            "timestamp-millis",
            [
                "0001-01-01T00:00:00Z",
                "9999-12-31T23:59:59.999Z",
                "0001-01-01T00:59:59+01:00",
                "9999-12-31T23:00:00-01:00",
            ],
        ),
        (
            "long",
            "timestamp-micros",
            [
                "0001-01-01T01:00:00+01:00",
                "9999-12-31T22:59:59.999999-01:00",
                "-0001-12-31T23:59:59Z",
                "+294247-01-09T23:59:59-23:59",
            ],
        ),
    ],
)
def test_text(kind: str, logical: str, texts: list[str]) -> None:
    payloads = [json_bytes({"t": text, "many": []}) for text in texts]
    check(("JSON", nested(kind, logical)), payloads, "t")


@pytest.mark.parametrize(("kind", "bounds"), PRIMITIVES)
@pytest.mark.parametrize("inline", [False, True])
def test_primitives(kind: str, bounds: tuple[int, int], inline: bool) -> None:
    payloads = [struct.pack(">q", value) for value in around(bounds)]
    schema: Given = (kind, "")
    if inline:
        schema = key_value(schema, ("STRING", ""))
        payloads = [b"\0\0\0\x08" + one + b"\0\0\0\x01v" for one in payloads]
    check(schema, payloads, "key" if inline else "value")
