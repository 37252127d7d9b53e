"""KeyValue of all kinds, in both encodings, and the layout of Debezium."""

from collections.abc import Sequence
from typing import Any, Literal

from testbed.oracle import Json
from tests.contract.kinds import Case, Write, packed, typed
from tests.contract.kinds.columns import key_value_columns
from tests.contract.kinds.protobuf import ORDER
from tests.support.schemas import avro_record

Encoding = Literal["INLINE", "SEPARATED"]
ENCODINGS: tuple[Encoding, ...] = ("INLINE", "SEPARATED")

STRING: Json = {"type": "STRING"}
BYTES: Json = {"type": "BYTES"}

_CUSTOMER: Json = avro_record("Customer", {"id": "long", "name": ["null", "string"]})


def _key_value(key: Json, value: Json, encoding: str) -> Json:
    return {"type": "KEY_VALUE", "key": key, "value": value, "encoding": encoding}


def _customer(kind: str, number: int, name: str | None) -> Json:
    tagged = {"string": name} if kind == "AVRO" and name is not None else name
    return {"id": number, "name": tagged}


def _pairs(keys: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    both = [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]
    return [
        *both,
        {"key": keys[0], "value": None},
        {"key": None, "value": values[0]},
        {"key": None, "value": None},
        None,
    ]


# --- Debezium ---

# What Debezium's connectors register: the row before and after, where it comes from, what was done.
_DEBEZIUM_KEY: Json = avro_record("Key", {"id": "long"}, namespace="db.shop")
_DEBEZIUM_ROW: Json = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {
            "name": "changed",
            "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        },
    ],
}
_DEBEZIUM_VALUE: Json = {
    "type": "record",
    "name": "Envelope",
    "namespace": "db.shop",
    "fields": [
        {"name": "before", "type": ["null", _DEBEZIUM_ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "fields": [
                    {"name": "connector", "type": "string"},
                    {"name": "ts_ms", "type": "long"},
                    {"name": "lsn", "type": ["null", "long"], "default": None},
                ],
            },
        },
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}


def _debezium(kind: str) -> list[Any]:
    def tag(name: str, value: Any) -> Any:
        return {name: value} if kind == "AVRO" and value is not None else value

    def row(name: str | None) -> Json:
        found = {"id": 7, "name": tag("string", name), "changed": 1_700_000_000_000_000}
        tagged: Json = tag("db.shop.Value", found)
        return tagged

    def change(op: str, before: Any, after: Any) -> Json:
        source = {"connector": "postgresql", "ts_ms": 1, "lsn": tag("long", 2**40)}
        return {
            "key": {"id": 7},
            "value": {
                "before": before,
                "after": after,
                "source": source,
                "op": op,
                "ts_ms": tag("long", 5),
            },
        }

    return [
        change("c", None, row("Ada")),
        change("u", row("Ada"), row(None)),
        change("d", row(None), None),
        {"key": {"id": 7}, "value": None},  # the tombstone that follows a deletion
    ]


# --- the cases ---


def _kinds() -> dict[str, tuple[Json, Json, list[Any]]]:
    """(key's schema, value's schema, pairs)."""

    def of(kind: str) -> Json:
        return {"type": kind}

    json_of = typed("JSON", _CUSTOMER)
    avro_of = typed("AVRO", _CUSTOMER)
    return {
        "strings": (STRING, STRING, _pairs(["a", "ü"], ["", "y" * 9000])),
        "bytes": (BYTES, BYTES, _pairs([b"\x00\xff", b"k", b"aGk="], [b"v", b"", b"\xff"])),
        "numbers": (of("INT32"), of("DOUBLE"), _pairs([0, -1, 2**31 - 1], [0.5, -0.0, 1e300])),
        "small": (of("INT8"), of("BOOLEAN"), _pairs([-128, 127], [True, False])),
        "times": (
            of("LOCAL_DATE"),
            of("INSTANT"),
            _pairs(["2024-02-29"], ["2023-11-14T22:13:20.123456789Z"]),
        ),
        "more-times": (of("TIMESTAMP"), of("LOCAL_TIME"), _pairs([-1, 0], ["00:00", "23:59:59.5"])),
        "string-json": (
            STRING,
            json_of,
            _pairs(["a", "b"], [_customer("JSON", 1, "A"), _customer("JSON", 2, None)]),
        ),
        "json": (
            json_of,
            json_of,
            _pairs(
                [_customer("JSON", 1, "A"), _customer("JSON", -1, "")],
                [_customer("JSON", 1, "A"), _customer("JSON", 2, None)],
            ),
        ),
        "avro": (
            avro_of,
            avro_of,
            _pairs(
                [_customer("AVRO", 1, "A"), _customer("AVRO", -1, "")],
                [_customer("AVRO", 2, None), _customer("AVRO", 2**62, "B" * 5000)],
            ),
        ),
        "avro-protobuf": (
            avro_of,
            ORDER,
            _pairs([_customer("AVRO", 1, "A")], [{"id": "3", "name": "c"}]),
        ),
        "debezium-avro": (
            typed("AVRO", _DEBEZIUM_KEY),
            typed("AVRO", _DEBEZIUM_VALUE),
            _debezium("AVRO"),
        ),
        "debezium-json": (
            typed("JSON", _DEBEZIUM_KEY),
            typed("JSON", _DEBEZIUM_VALUE),
            _debezium("JSON"),
        ),
    }


_OFFLOADED = ("small", "times", "more-times", "avro", "avro-protobuf", "debezium-json")


def _case(name: str, key: Json, value: Json, pairs: list[Any], encoding: Encoding) -> Case:
    inline = encoding == "INLINE"
    return Case(
        f"keyvalue-{name}-{encoding.lower()}",
        packed(_key_value(key, value, encoding), pairs),
        key_value_columns(key, value),
        keyed=inline,
        # Offloading takes most of the time: once is enough for columns of the same types.
        tiers=Case.tiers if name in _OFFLOADED and not inline else Case.tiers[:-1],
    )


def _empty_key(encoding: Encoding) -> Case:
    pairs = [{"key": "", "value": ""}, {"key": "", "value": None}, {"key": None, "value": "x"}]
    separated = encoding == "SEPARATED"
    return Case(
        f"keyvalue-empty-key-{encoding.lower()}",
        packed(_key_value(STRING, STRING, encoding), pairs),
        key_value_columns(STRING, STRING),
        keyed=not separated,
    )


def _versions(kind: str, encoding: Encoding) -> Case:
    """Both halves learn a field, then forget it."""

    def definition(name: str, *fields: str) -> Json:
        return {
            "type": "record",
            "name": name,
            "fields": [
                {"name": one, "type": ["null", "string"], "default": None} for one in fields
            ],
        }

    def value(**fields: str) -> Json:
        return {one: {"string": v} if kind == "AVRO" else v for one, v in fields.items()}

    def schema(*fields: str) -> Json:
        key, whole = definition("K", *fields), definition("V", *fields)
        return _key_value(typed(kind, key), typed(kind, whole), encoding)

    def pair(**fields: str) -> Json:
        return {"key": value(**fields), "value": value(**fields)}

    writes = [
        Write(schema("a"), [pair(a="1"), {"key": value(a="1"), "value": None}]),
        Write(schema("a", "b"), [pair(a="1", b="2")] * 3, {"batch": 2}),
        Write(schema("b"), [pair(b="2")]),
        Write(schema("a"), [pair(a="old")] * 2, {"batch": 2}),
    ]
    both = typed(kind, definition("R", "a", "b"))
    return Case(
        f"keyvalue-versions-{kind.lower()}-{encoding.lower()}",
        writes,
        key_value_columns(both, both),
        keyed=encoding == "INLINE",
    )


CASES = [
    *(_case(name, *kind, one) for name, kind in _kinds().items() for one in ENCODINGS),
    *(_empty_key(one) for one in ENCODINGS),
    *(_versions(kind, one) for kind in ("AVRO", "JSON") for one in ENCODINGS),
]
