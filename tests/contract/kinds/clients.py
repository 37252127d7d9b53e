"""What clients write for types of their own, and fields that change their types."""

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import Any

from testbed.oracle import Json
from tests.contract.kinds import SOME, Case, Row, Write, raw, stated, typed
from tests.unit.payload.json.test_clients import EXPECTED, GOLDEN

_EPOCH = dt.date(1970, 1, 1)

# --- one topic with a column for each line of tests/golden/clients ---


def _payload(line: Json, column: str) -> bytes:
    """Return a message whose one field is what the client wrote, laid out as the client does it."""
    if line["type"] == "AVRO":
        return base64.b64decode(line["payload"])
    start = "{\n " if line["name"].startswith("python") else "{"
    return f'{start}"{column}":{line["payload"]}}}'.encode()


def _dated(schema: Any, value: Any) -> Any:
    """Return an expected value with dates instead of their days."""
    if isinstance(schema, list):
        return _dated(next(branch for branch in schema if branch != "null"), value)
    if value is None or not isinstance(schema, dict):
        return value
    match schema["type"]:
        case "record" if schema["fields"]:
            fields = {field["name"]: field["type"] for field in schema["fields"]}
            return {name: _dated(fields[name], item) for name, item in value.items()}
        case "array" if isinstance(value, list):
            return [_dated(schema["items"], item) for item in value]
        case "map":
            return [(key, _dated(schema["values"], item)) for key, item in value]
        case "int" if schema.get("logicalType") == "date":
            return _EPOCH + dt.timedelta(days=value)
    return value


def _clients() -> Case:
    columns = {name: name.replace(" ", "_").replace("-", "_") for name in GOLDEN}
    writes = []
    rows: list[tuple[bytes, Row | None, bool]] = []
    for name, column in columns.items():
        line = GOLDEN[name]
        schema = json.loads(line["schema"])
        field = {"name": column, "type": schema}
        record = {"type": "record", "name": f"Of_{column}", "fields": [field]}
        payload = _payload(line, column)
        value, problem = EXPECTED[name]
        row = {**dict.fromkeys(columns.values()), column: _dated(schema, value)}
        writes.append(Write(raw(typed(line["type"], record)), [payload]))
        rows.append((payload, row, problem is not None))
    return Case("clients", writes, stated(rows))


# --- values that the columns of older versions hold, or do not hold ---


def _changing(price: int, either: list[str], number: str, real: str) -> Json:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": price, "scale": 2}
    types: Json = {"id": "int", "price": decimal, "either": either, "number": number, "real": real}
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return {"type": "record", "name": "Changing", "fields": fields}


_FIRST = _changing(10, ["null", "string"], "int", "double")
_GROWN = _changing(12, ["null", "string", "long"], "long", "long")
_LARGE = 123_456_789_012  # twelve digits, for a column of ten


def _cents(number: int) -> str:
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True).decode("latin-1")


def _avro(id_: int, cents: int, either: Json | None, number: int, real: float) -> Json:
    return {"id": id_, "price": _cents(cents), "either": either, "number": number, "real": real}


_PRICE = Decimal("12.34")
_CHANGED: dict[int, tuple[Any, ...]] = {
    # price, either, number, real
    0: (_PRICE, "a", -1, 0.5),
    1: (Decimal("-0.01"), None, 2**31 - 1, -0.0),
    2: (_PRICE, "b", 2**63 - 1, 2.0**53),
    3: (None, "c", 1, 1.0),
    4: (_PRICE, None, 1, 1.0),
    5: (_PRICE, None, 1, None),
    6: (_PRICE, "d", 5, 1.5),
    7: (_PRICE, "e", None, 3.0),
}
_RESCUED = (3, 4, 5, 7)


def _changed(java: Json) -> Row:
    id_ = java["value"]["id"]
    price, either, number, real = _CHANGED[id_]
    row = {"id": id_, "price": price, "either": either, "number": number, "real": real}
    if id_ not in _RESCUED:
        return row
    return {**row, "__rescued": base64.b64decode(java["data"]), "__error": SOME}


def _text(value: str) -> Json:
    return {"string": value}


CASES = [
    _clients(),
    Case(
        "__changing",  # a topic's name may begin so
        [
            Write(
                typed("AVRO", _FIRST),
                [_avro(0, 1234, _text("a"), -1, 0.5), _avro(1, -1, None, 2**31 - 1, -0.0)],
            ),
            Write(
                typed("AVRO", _GROWN),
                [
                    _avro(2, 1234, _text("b"), 2**63 - 1, 2**53),
                    _avro(3, _LARGE, _text("c"), 1, 1),
                    _avro(4, 1234, {"long": 7}, 1, 1),
                    _avro(5, 1234, None, 1, 2**53 + 1),
                ],
                {"batch": 3},
            ),
            Write(
                raw(typed("JSON", _changing(12, ["null", "string"], "double", "float"))),
                [
                    b'{"id":6,"price":12.34,"either":"d","number":5.0,"real":1.5}',
                    b'{"id":7,"price":"12.34","either":"e","number":0.5,"real":"3"}',
                ],
            ),
        ],
        _changed,
    ),
]
