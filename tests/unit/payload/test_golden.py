"""What Pulsar's Java client wrote (tests/golden/payload): its schema definitions and payloads."""

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.unit.payload.cases import Given, decode, decoder, rows

LINES = Path(__file__).parents[2] / "golden" / "payload" / "java.jsonl"
GOLDEN = {one["name"]: one for one in map(json.loads, LINES.read_text("utf-8").splitlines())}
FIELD = {
    "kind": "TYPE_INT32", "cardinality": "CARDINALITY_UNKNOWN", "number": -7, "name": "",
    "type_url": "", "oneof_index": 0, "packed": True, "options": [], "json_name": "",
    "default_value": "",
}  # fmt: skip
ROW = {"a": 2, "n": None, "s": "v"}

EXPECTED: dict[str, Any] = {
    "native": {"name": "ä", "fields": [FIELD], "oneofs": ["o"], "options": [],
               "source_context": None, "syntax": "SYNTAX_PROTO3", "edition": ""},
    "parsing info": {"name": "ä", "fields": [b"\x08\x05\x18\xf9" + b"\xff" * 8 + b"\x01@\x01"],
                     "oneofs": ["o"], "options": [], "source_context": None, "syntax": 1,
                     "edition": None},
    "struct": {"value": '{"k":1.0,"z":null}'},
    "inline": {"key": {"a": 1, "n": None, "s": "k"}, "value": ROW},
    "inline null key": {"key": None, "value": ROW},
    "inline nulls": {"key": None, "value": None},
    "separated": {"key": 5, "value": '{"k":1.0,"z":null}'},
}  # fmt: skip


def given(one: dict[str, Any]) -> Given:
    """As the REST API tells it: a KEY_VALUE definition is binary in the client."""
    raw = base64.b64decode(one["schema"])
    if one["type"] != "KEY_VALUE":
        return one["type"], raw.decode(), one["properties"]
    (size,) = struct.unpack_from(">i", raw)
    halves = raw[4 : 4 + size], raw[8 + size :]
    key, value = (json.loads(half) if half else "" for half in halves)
    return "KEY_VALUE", json.dumps({"key": key, "value": value}), one["properties"]


@pytest.mark.parametrize("name", GOLDEN)
def test_java(name: str) -> None:
    one = GOLDEN[name]
    payload = None if one["payload"] is None else base64.b64decode(one["payload"])
    key = None if one["key"] is None else base64.b64decode(one["key"])
    found = decode(decoder(given(one)), [payload], keys=[key])
    assert not found.problems
    assert rows(found) == [EXPECTED[name]]


def test_all_are_expected() -> None:
    assert list(GOLDEN) == list(EXPECTED)
