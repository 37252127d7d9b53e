"""Topics whose messages are of several schema types."""

import base64

from testbed.oracle import Json
from tests.contract.kinds import SOME, Case, Row, Write, raw, typed

STRING: Json = {"type": "STRING"}
INT32: Json = {"type": "INT32"}
BYTES: Json = {"type": "BYTES"}
_RECORD: Json = {
    "type": "record",
    "name": "R",
    "fields": [{"name": "a", "type": ["null", "long"], "default": None}],
}


def _rescued(java: Json) -> Row:
    data = base64.b64decode(java["data"])
    return {"__rescued": data, "__error": SOME, "__kind": "undecodable"}


def _mixed_columns(java: Json) -> Row:
    found: Row = dict.fromkeys(("a", "value"))
    if java["null"]:
        return found
    match java["schema_version"]:
        case 0 | 1:
            return found | {"a": java["value"].get("a")}
        case 2:
            return found | {"value": java["value"]}
    return found | _rescued(java)  # the column is text


_MIXED = Case(
    "mixed-types",
    [
        Write(raw(typed("AVRO", _RECORD)), [b"\x02\x02", b"\x00"]),
        Write(raw(typed("JSON", _RECORD)), [b'{"a":5}', b'{"a": null}', b"{}"], {"batch": 2}),
        Write(STRING, ["text", "", None]),
        Write(INT32, [1, -1]),
        Write(BYTES, [b"\x00\xff", b"", None]),
        Write({"type": "AUTO_PRODUCE"}, [b"\x00\x00\x00\x07"]),  # of the latest, INT32
    ],
    _mixed_columns,
)


def _pair_columns(java: Json) -> Row:
    """`value` is the text's; that of the pairs is another column."""
    found: Row = dict.fromkeys(("value", "key", "value_2"))
    if java["schema_version"] == 0:
        return found | {"value": java["value"]}
    pair = java["value"]
    return found | {"key": pair["key"], "value_2": pair["value"]}


_PAIRS = Case(
    "mixed-keyvalue",
    [
        Write(STRING, ["text", None]),
        Write(
            {"type": "KEY_VALUE", "key": STRING, "value": INT32, "encoding": "INLINE"},
            [{"key": "k", "value": 1}, {"key": None, "value": -1}],
            {"batch": 2},
        ),
    ],
    _pair_columns,
)


def _encoded_columns(java: Json) -> Row:
    """Both encodings of the same two schemas are one version to Pulsar, of the first encoding.

    So the Java client cannot read the messages of the other one, and neither can we.
    """
    found: Row = dict.fromkeys(("key", "value", "value_2"))
    if "value_error" in java:
        return found | _rescued(java)
    if java["schema_version"] == 1:
        return found | {"value_2": java["value"]}
    return found | (java["value"] or {})


def _both(encoding: str) -> Json:
    return {"type": "KEY_VALUE", "key": STRING, "value": STRING, "encoding": encoding}


_ENCODINGS = Case(
    "mixed-encodings",
    [
        Write(_both("INLINE"), [{"key": "in", "value": "a"}, {"key": None, "value": "b"}]),
        Write(_both("SEPARATED"), [{"key": "apart", "value": "c"}, {"key": None, "value": "d"}]),
        Write(STRING, ["text"]),
        Write(_both("INLINE"), [{"key": "again", "value": None}] * 2, {"batch": 2}),
        Write(_both("SEPARATED"), [{"key": "again", "value": None}] * 2, {"batch": 2}),
    ],
    _encoded_columns,
    keyed=False,
)

CASES = [_MIXED, _PAIRS, _ENCODINGS]
