"""What Pulsar's clients write for their own types (tests/golden/clients): schemas and payloads."""

import base64
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reader.payload.json.time_forms import CUT
from reader.payload.json.values import DOUBTFUL
from tests.unit.payload.cases import decode, decoder, rows
from tests.unit.payload.json.agreement import agrees

FOLDER = Path(__file__).parents[3] / "golden" / "clients"
LINES = [
    json.loads(line)
    for path in sorted(FOLDER.glob("*.jsonl"))
    for line in path.read_text("utf-8").rstrip("\n").split("\n")
]
GOLDEN = {line["name"]: line for line in LINES}
INF, NAN = float("inf"), float("nan")
# A day of the year -5.
YEAR = "field 'days[]' is not certain to be a date of the years 1 to 9999"
YEAR_IN_AVRO = "field 'days[]' is out of the range of its column"
# Read in Python: values without a certain meaning, characters, and other years.
DEFERRED = {"java Scalars", "java Negative", "java Times", "java Times with JSR-310 conversion"}

TIMES: dict[str, Any] = {
    "at": 1700000000123456,
    "ats": [0, -1000000, 1000000],
    "clock": 80000123000,
    "day": 19675,
    "days": [("a", None)],
    "local": 1700000000123456,
    "noon": 43200000000,
}
EVERYTHING: dict[str, Any] = {
    "flag": True,
    "small": -1,
    "big": 1152921504606846976,
    "narrow": 0.5,
    "wide": 1e100,
    "text": 'ä "x"\n',
    "items": [{"a": 1}],
    "numbers": [("k", 5)],
    "inner": {"a": 2},
    "nothing": None,
}

EXPECTED: dict[str, tuple[dict[str, Any], str | None]] = {
    "go order": (
        {
            "id": 1,
            "name": "<ä>",
            "raw": b"hi",
            "at": 1700000000123456,
            "amount": 1e21,
            "counts": [("1", "a")],
            "missing": None,
            "inner": {"zip": "12345"},
            "price": Decimal("12.25"),
            "quoted": 7,
            "any": '[1,"x"]',
        },
        None,
    ),
    "java Scalars": (
        {
            "b": 5,
            "boxed": 2,
            "c": 65,
            "chars": None,
            "colour": "GREEN",
            "d": 12345678.9,
            "f": 0.1,
            "i": -1,
            "ints": [1],
            "l": 1152921504606846976,
            "low": -INF,
            "nan": NAN,
            "none": None,
            "raw": b"\x01\x02\x03",
            "s": 4,
            "set": ["a", "b"],
            "str": 'ä\x01"/',
            "t": True,
            "uuid": "00000000-0000-0001-0000-000000000002",
        },
        "field 'chars' is not an array",
    ),
    "java Objects": (
        {
            "any": '"text"',
            "attributes": [("b", "true"), ("l", '[1,"y"]'), ("n", "1"), ("s", '"x \\n"')],
            "list": ["1", '"a"'],
            "locale": '"en_US"',
            "number": "5.5",
            "optional": "x",
        },
        None,
    ),
    "java Maps": (
        {
            "booleans": [{"key": True, "value": "t"}],
            "chars": [{"key": 99, "value": "x"}],
            "colours": [{"key": "RED", "value": 1}],
            "dates": [{"key": 19675, "value": "x"}],
            "decimals": [("1.50", "x")],
            "doubles": [{"key": 1.5, "value": "d"}],
            "instants": [{"key": 1700000000000005, "value": "i"}],
            "ints": [{"key": -2, "value": "b"}, {"key": 1, "value": "a"}],
            "longs": [{"key": 5, "value": 1.5}],
            "nested": [("k", [{"key": 1, "value": 2}])],
            "objects": [{"key": 1, "value": '"o"'}],
            "uuids": [{"key": "00000000-0000-0001-0000-000000000002", "value": "u"}],
        },
        None,
    ),
    "java Times": (TIMES, YEAR),
    "java Fine": ({"at": 1700000000123456}, f"field 'at' {CUT}"),
    "java Negative": (
        {"at": None},
        "field 'at' is not certain to be a point in time of the years 1 to 9999",
    ),
    "java Dates": (
        {
            "duration": "1.500000000",
            "made": "1700000000123",
            "month": "[2023,3]",
            "offset": '[1,2,3,4,"Z"]',
            "period": '"P3D"',
            "stamp": "5",
            "zoned": "1699996400.000000000",
        },
        None,
    ),
    "java Decimals": (
        {
            "big": "1E+20",
            "clock": 3723000004,
            "epoch": 1700000000123000,
            "exact": Decimal("5.25"),
            "integer": "123456789012345678901234567890",
            "list": ["1.5"],
            "price": "12.340",
        },
        None,
    ),
    "java Texts": (
        {
            "at": 1700000000123456,
            "clock": 79980000000,
            "colour": "1",
            "day": 19675,
            "flag": True,
            "fraction": 0.1,
            "local": 1699999980000000,
            "made": '"2023-11-14T22:13:20.123+00:00"',
            "number": 5,
            "price": "1.50",
        },
        None,
    ),
    "java Getters": ({"URL": "u", "xAxis": "x"}, None),
    "java Times with JSR-310 conversion": (TIMES, YEAR),
    "java Times AVRO": ({**TIMES, "local": 1700000000123000}, YEAR_IN_AVRO),
    "java IntMap AVRO": ({"names": [{"key": 1, "value": "a"}, {"key": 2, "value": "b"}]}, None),
    "node event": (
        {
            "id": 5,
            "amount": 1e-07,
            "none": None,
            "at": 1700000000123000,
            "ms": 1700000000123000,
            "big": 1152921504606846976,
            "huge": 1e21,
            "flag": True,
            "tags": ["a", "\u2028"],
            "raw": b"hi",
        },
        None,
    ),
    "python Everything 224 JSON": (EVERYTHING, None),
    "python Everything 52 AVRO": (EVERYTHING, None),
    "python Paint 30 JSON": ({"colour": "2", "size": "s"}, None),
    "python Paint 4 AVRO": ({"colour": "GREEN", "size": "SMALL"}, None),
    "python Reading 46 JSON": ({"a": NAN, "b": INF, "c": -INF}, None),
    "python Reading 27 AVRO": ({"a": NAN, "b": INF, "c": -INF}, None),
    "python Blob 27 JSON": ({"n": 1, "raw": None}, f"field 'raw' {DOUBTFUL}"),
    "python Blob 8 AVRO": ({"n": 1, "raw": b"test"}, None),
    "python Blob 23 JSON": ({"n": 2, "raw": b""}, None),
    "python Blob 4 AVRO": ({"n": 2, "raw": b""}, None),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_client(name: str) -> None:
    line = GOLDEN[name]
    of_json = line["type"] == "JSON"
    payload = line["payload"].encode() if of_json else base64.b64decode(line["payload"])
    found = decode(decoder((line["type"], line["schema"], {})), [payload])
    row, problem = EXPECTED[name]
    assert repr(rows(found)) == repr([row])
    assert found.problems == ({} if problem is None else {0: problem})
    if of_json:
        agrees(json.loads(line["schema"]), [payload], deferred=name in DEFERRED)


def test_all_are_expected() -> None:
    assert len(GOLDEN) == len(LINES)
    assert sorted(GOLDEN) == sorted(EXPECTED)
