"""Records in Avro and JSON."""

import base64
import decimal
import json
from typing import Any

from testbed.oracle import Json
from tests.contract.kinds import SOME, Case, Row, Write, packed, raw, stated, typed
from tests.contract.kinds.columns import record_columns
from tests.support.schemas import avro_record

# --- every type ---

_STATE = {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}
_POINT = avro_record("Point", {"x": "int", "y": ["null", "double"]})


def _logical(kind: str, name: str, **more: Any) -> Json:
    return {"type": kind, "logicalType": name, **more}


def _everything(kind: str) -> Json:
    plain: dict[str, Any] = {
        "bool": "boolean",
        "i": "int",
        "l": "long",
        "f": "float",
        "d": "double",
        "s": "string",
        "raw": "bytes",
        "fix": {"type": "fixed", "name": "Fix", "size": 3},
        "state": _STATE,
        "point": _POINT,
        "points": {"type": "array", "items": "Point"},
        "grid": {"type": "array", "items": {"type": "array", "items": "long"}},
        "counts": {"type": "map", "values": "long"},
        "nested": {"type": "map", "values": {"type": "array", "items": ["null", "string"]}},
        "maybe": ["null", "string"],
        "maybe_point": ["null", "Point"],
        "day": _logical("int", "date"),
        "clock": _logical("int", "time-millis"),
        "clock_us": _logical("long", "time-micros"),
        "at": _logical("long", "timestamp-millis"),
        "at_us": _logical("long", "timestamp-micros"),
        "local": _logical("long", "local-timestamp-millis"),
        "price": _logical("bytes", "decimal", precision=12, scale=3),
        "id": _logical("string", "uuid"),
    }
    if kind == "JSON":
        del plain["fix"]  # Jackson has no form of its own for it
    fields = [{"name": name, "type": one} for name, one in plain.items()]
    return {"type": "record", "name": "Everything", "namespace": "shop", "fields": fields}


def _everything_values(kind: str) -> list[Any]:
    avro = kind == "AVRO"

    def raw(value: bytes) -> str:
        """Avro's JSON has a character for each byte, Jackson's has base64."""
        return value.decode("latin-1") if avro else base64.b64encode(value).decode()

    def price(unscaled: int) -> Any:
        size = (unscaled.bit_length() + 8) // 8
        text = unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
        return text if avro else float(decimal.Decimal(unscaled).scaleb(-3))

    def tag(name: str, value: Any) -> Any:
        return {name: value} if avro and value is not None else value

    def point(x: int, y: float | None) -> Json:
        return {"x": x, "y": tag("double", y)}

    values = [
        {
            "bool": True,
            "i": 2**31 - 1,
            "l": 2**53 + 1,
            "f": 0.5,
            "d": 0.1,
            "s": "Grüße \U0001f680\n\x00",
            "raw": raw(bytes(range(256))),
            "fix": raw(b"\x00\xff\x7f"),
            "state": "SENT",
            "point": point(-1, None),
            "points": [point(1, 0.5), point(2, None)],
            "grid": [[1, 2], [], [-(2**63)]],
            "counts": {"a": 1, "": 2, "ü": 2**63 - 1},
            "nested": {"x": [tag("string", "v"), None], "y": []},
            "maybe": tag("string", ""),
            "maybe_point": tag("shop.Point", point(7, 1e300)),
            "day": 19_000,
            "clock": 86_399_999,
            "clock_us": 86_399_999_999,
            "at": 1_700_000_000_123,
            "at_us": 1_700_000_000_123_456,
            "local": -1,
            "price": price(-123_456_789_012),
            "id": "123e4567-e89b-12d3-a456-426614174000",
        },
        {
            "bool": False,
            "i": -(2**31),
            "l": -(2**63),
            "f": -0.0 if avro else 0.0,  # reading JSON, the client takes them for the same
            "d": 5e-324,
            "s": "",
            "raw": raw(b""),
            "fix": raw(b"abc"),
            "state": "NEW",
            "point": point(0, 1e-300),
            "points": [],
            "grid": [],
            "counts": {},
            "nested": {},
            "maybe": None,
            "maybe_point": None,
            "day": -719_162,  # 0001-01-01
            "clock": 0,
            "clock_us": 0,
            "at": -1,
            "at_us": -62_135_596_800_000_000,
            "local": 0,
            "price": price(1),
            "id": "00000000-0000-0000-0000-000000000000",
        },
        None,
    ]
    return [value and {n: v for n, v in value.items() if avro or n != "fix"} for value in values]


# --- what is less common ---

_FLAG: Json = {"type": "record", "name": "Flag", "fields": [{"name": "on", "type": "boolean"}]}
_LATIN = bytes(range(240, 256)).decode("latin-1")
_RARE: Json = avro_record(
    "Rare",
    {
        "nothing": "null",
        "empty": {"type": "record", "name": "Empty", "fields": []},
        "alone": ["string"],
        "last": ["long", "null"],
        "either": ["null", "string", "long"],
        "record_or": ["null", _FLAG, "boolean"],
        "number": ["int", "long"],
        "real": ["null", "float", "double"],
        "many": {"type": "array", "items": ["null", "string", "long"]},
        "nanos": _logical("long", "timestamp-nanos"),
        "local_us": _logical("long", "local-timestamp-micros"),
        "local_ns": _logical("long", "local-timestamp-nanos"),
        "unknown": _logical("long", "no-such-type"),
        "id": {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"},
        "price": {
            "type": "fixed",
            "name": "Price",
            "size": 4,
            "logicalType": "decimal",
            "precision": 9,
            "scale": 2,
        },
        "huge": _logical("bytes", "decimal", precision=50, scale=10),
        "tree": avro_record(
            "Tree",
            {
                "label": "string",
                "left": ["null", "Tree"],
                "more": {"type": "array", "items": "Tree"},
            },
        ),
    },
    namespace="shop",
)


def _tree(label: str, left: Json | None = None, *more: Json) -> Json:
    return {"label": label, "left": left and {"shop.Tree": left}, "more": list(more)}


_RARE_VALUES: list[Json | None] = [
    {
        "nothing": None,
        "empty": {},
        "alone": {"string": "a"},
        "last": {"long": 1},
        "either": {"string": "a"},
        "record_or": {"shop.Flag": {"on": True}},
        "number": {"int": 1},
        "real": {"float": 0.5},
        "many": [{"long": 1}, None, {"string": "s"}],
        "nanos": 1_700_000_000_123_456_789,
        "local_us": -1,
        "local_ns": 1,
        "unknown": 5,
        "id": _LATIN,
        "price": "\x00\x00\x01\x00",
        "huge": "\x7f" + "\xff" * 19,
        "tree": _tree("ü", _tree("l", _tree("ll")), _tree("m"), _tree("n", _tree("nl"))),
    },
    {
        "nothing": None,
        "empty": {},
        "alone": {"string": ""},
        "last": None,
        "either": {"long": 2},
        "record_or": {"boolean": False},
        "number": {"long": 2**40},
        "real": {"double": 0.1},
        "many": [],
        "nanos": -(2**63),
        "local_us": 2**63 - 1,
        "local_ns": 0,
        "unknown": -5,
        "id": "\x00" * 16,
        "price": "\xff\xff\xff\x9c",
        "huge": "\xff",
        "tree": _tree(""),
    },
    {
        "nothing": None,
        "empty": {},
        "alone": {"string": "x"},
        "last": None,
        "either": None,
        "record_or": None,
        "number": {"int": -1},
        "real": None,
        "many": [None],
        "nanos": 0,
        "local_us": 0,
        "local_ns": -1,
        "unknown": 0,
        "id": "\x01" * 16,
        "price": "\x00\x00\x00\x00",
        "huge": "\x00",
        "tree": _tree("x", _tree("")),
    },
    None,
]

# --- names that Delta would take for one, or that are taken ---

_NAMES: Json = {
    "type": "record",
    "name": "Names",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "ID", "type": "string"},
        {"name": "__key", "type": "string"},
        {"name": "__TOPIC", "type": "long"},
        # For Spark and Java the next two pairs are the same names: dotless i, long s.
        {"name": "kis", "type": "string"},
        {"name": "k\u0131s", "type": "string"},
        {"name": "\u017f", "type": "string"},
        {"name": "S", "type": "string"},
        {
            "name": "inner",
            "type": {
                "type": "record",
                "name": "Inner",
                "fields": [{"name": "x", "type": "long"}, {"name": "X", "type": "string"}],
            },
        },
    ],
}


def _names(java: Json) -> Row:
    value = _NAMES_VALUE if java["schema_version"] is None else java["value"]
    return {
        "id": value["id"],
        "ID_2": value["ID"],
        "__key_2": value["__key"],
        "__TOPIC_2": value["__TOPIC"],
        "kis": value["kis"],
        "k\u0131s_2": value["k\u0131s"],
        "\u017f": value["\u017f"],
        "S_2": value["S"],
        "inner": {"x": value["inner"]["x"], "X_2": value["inner"]["X"]},
    }


_NAMES_VALUE: Json = {
    "id": 1,
    "ID": "a",
    "__key": "mine",
    "__TOPIC": 2,
    "kis": "i",
    "k\u0131s": "dotless",
    "\u017f": "long",
    "S": "short",
    "inner": {"x": 3, "X": "b"},
}
_NAMES_AVRO = b"\x02\x02a\x08mine\x04\x02i\x0edotless\x08long\x0ashort\x06\x02b"
_UNVERSIONED: Json = {"type": "BYTES"}
"""A producer without a schema: its messages have no schema version."""

# --- JSON that a schema does not foresee ---

_LOOSE: Json = avro_record(
    "Loose",
    {
        "id": ["null", "long"],
        "name": ["null", "string"],
        "at": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
    },
)


def _loose(number: Any = None, name: Any = None, at: Any = None) -> Row:
    return {"id": number, "name": name, "at": at}


_LOOSE_ROWS: list[tuple[bytes, Row | None, bool]] = [
    (b"{}", _loose(), False),
    (b' { "name" : "a" , "id" : 1 } ', _loose(1, "a"), False),
    (b'{"id":null,"at":5}', _loose(at=5000), False),
    (rb'{"name":"\u00fc\ud83d\ude80\n\"\\\/"}', _loose(name='ü\U0001f680\n"\\/'), False),
    (b'{"id":1,"more":{"x":[]}}', _loose(1), True),
    (b'{"id":9223372036854775808,"name":"big"}', _loose(name="big"), True),
    (b'{"id":1.5,"name":"real"}', _loose(name="real"), True),
    (b'{"id":"7","name":8}', _loose(7), True),
    # As Go, Python, Jackson and JavaScript write them (docs/types.md).
    (b'{"ID":"8","Name":"go"}', _loose(8, "go"), False),
    (b'{\n "id": 9.0,\n "at": 1e3\n}', _loose(9), True),
    (b'{"at":"1970-01-01T01:00:05.25+01:00"}', _loose(at=5_250_000), False),
    (b'{"at":5.250000000}', _loose(at=5_250_000), False),
    (b'{"at":5.250000001}', _loose(at=5_250_000), True),
    (b'{"id":1,"at":9223372036854775807}', _loose(1), True),
]


def _versions(kind: str) -> Case:
    def definition(*fields: Json) -> Json:
        return {"type": "record", "name": "Order", "fields": list(fields)}

    def maybe(name: str, of: Any) -> Json:
        return {"name": name, "type": ["null", of], "default": None}

    number, name, price = (
        {"name": "id", "type": "long"},
        *(maybe("name", "string"), maybe("price", "double")),
    )
    tags = maybe("tags", {"type": "array", "items": "string"})
    first, second = definition(number, name), definition(number, name, price)
    third, union = definition(number, price, tags), definition(number, name, price, tags)

    def value(n: int, **fields: tuple[str, Any]) -> Json:
        tagged = kind == "AVRO"
        return {
            "id": n,
            **{f: {t: v} if tagged and v is not None else v for f, (t, v) in fields.items()},
        }

    n, p, t = ("string", "n"), ("double", 0.5), ("array", ["a", "b"])
    writes = [
        Write(typed(kind, first), [value(1, name=n), value(2, name=("string", None)), None]),
        Write(typed(kind, second), [value(3, name=n, price=p)], {"batch": 5}),
        Write(typed(kind, third), [value(4, price=p, tags=t)] * 3, {"batch": 2}),
        Write(typed(kind, first), [value(5, name=n)] * 2, {"batch": 2}),
    ]
    return Case(f"{kind.lower()}-versions", writes, record_columns(union))


def _everything_case(kind: str) -> Case:
    definition = _everything(kind)
    writes = packed(typed(kind, definition), _everything_values(kind))
    return Case(f"{kind.lower()}-everything", writes, record_columns(definition))


def _nothing(java: Json) -> Row:
    data = base64.b64decode(java["data"])
    return {**_loose(), "__rescued": data, "__error": SOME, "__kind": "undecodable"}


_AVRO, _JSON = raw(typed("AVRO", _LOOSE)), raw(typed("JSON", _LOOSE))

CASES = [
    _everything_case("AVRO"),
    _everything_case("JSON"),
    Case("avro-rare", packed(typed("AVRO", _RARE), _RARE_VALUES), record_columns(_RARE)),
    Case(
        "avro-names",
        [Write(typed("AVRO", _NAMES), [_NAMES_VALUE]), Write(_UNVERSIONED, [_NAMES_AVRO])],
        _names,
    ),
    Case(
        "json-names",
        [
            Write(typed("JSON", _NAMES), [_NAMES_VALUE]),
            Write(_UNVERSIONED, [json.dumps(_NAMES_VALUE).encode()]),
        ],
        _names,
    ),
    Case(
        "json-loose",
        [Write(_JSON, [payload for payload, _, _ in _LOOSE_ROWS], {"batch": 4})],
        stated(_LOOSE_ROWS),
    ),
    _versions("AVRO"),
    _versions("JSON"),
    Case(
        "avro-broken",
        [Write(_AVRO, [b"", b"\x02", b"\x02\x04\x00", b"\x00\x02\x02", b"\xff" * 11])],
        _nothing,
    ),
    Case(
        "json-broken",
        [
            Write(
                _JSON, [b"", b"{", b"[]", b'"text"', b"1", b"{} {}", b'{"id":1}\xff'], {"batch": 3}
            )
        ],
        _nothing,
    ),
]
