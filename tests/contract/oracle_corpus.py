"""Topics of every kind of schema for the Java client: what it writes, and what must come out.

Nothing here is computed by the product. A case's `columns` turns the value that the Java client
read into the payload columns, as docs/types.md maps them.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from tests.oracle.oracle import Json
from tests.unit.protobuf_cases import proto_file

__all__ = ["CORPUS", "SOME", "Case", "Write"]

Row = dict[str, Any]
Columns = Callable[[Json], Row]
"""The payload columns of a message of the Java client; also `__rescued` and `__error`, if set."""


class _Some:
    """Equal to every text: the reason of a rescued row is for people."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and bool(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "some text"


SOME = _Some()


@dataclass(frozen=True)
class Write:
    """What one producer sends: values, or messages with a `value`."""

    schema: Json
    values: Sequence[Any]
    options: Json = field(default_factory=dict)

    def messages(self) -> list[Json]:
        return [{"value": value, "key": f"k{n % 3}"} for n, value in enumerate(self.values)]


@dataclass(frozen=True)
class Case:
    """One topic, written by several producers in turn.

    `keyed`: whether the messages get keys (those of SEPARATED have their own).
    `schema`: to read by, where the client's AUTO_CONSUME cannot.
    `tiers`: those that can give it.
    """

    name: str
    writes: Sequence[Write]
    columns: Columns
    keyed: bool = True
    schema: Json | None = None
    tiers: Sequence[str] = ("bookkeeper", "query", "broker", "parquet")

    def messages(self, write: Write) -> list[Json]:
        if self.keyed:
            return write.messages()
        return [{"value": value} for value in write.values]


# One entry a message; batches of three, so that the last one is shorter; one compressed batch.
_PACKINGS: tuple[Json, ...] = ({}, {"batch": 3}, {"batch": 100, "compression": "ZSTD"})


def _packed(schema: Json, values: Sequence[Any]) -> list[Write]:
    return [Write(schema, values, options) for options in _PACKINGS]


# --- what a value must become ---

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def avro_column(schema: Any, value: Any) -> Any:
    """The column of a value of an Avro schema, from its JSON; bytes are base64 in it.

    Times stay numbers: microseconds since 1970, as the tests compare them.
    """
    if value is None:
        return None
    if isinstance(schema, list):
        branches = [one for one in schema if one != "null"]
        if len(branches) == 1 or set(branches) in ({"int", "long"}, {"float", "double"}):
            return avro_column(branches[-1], value)
        chosen = next(i for i, one in enumerate(branches) if _takes(one, value))
        return {
            f"member{i}": avro_column(one, value) if i == chosen else None
            for i, one in enumerate(branches)
        }
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical in _LOGICAL:
        return _LOGICAL[logical](schema, value)
    match kind:
        case "record":
            return {
                one["name"]: avro_column(one["type"], value[one["name"]])
                for one in schema["fields"]
            }
        case "array":
            return [avro_column(schema["items"], item) for item in value]
        case "map":
            return {name: avro_column(schema["values"], item) for name, item in value.items()}
        case "bytes" | "fixed":
            return _bytes(value)
        case "float" | "double":
            return float(value)
    return value


def _takes(schema: Any, value: Any) -> bool:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return isinstance(
        value,
        {
            "string": str,
            "int": int,
            "long": int,
            "double": float,
            "boolean": bool,
            "record": dict,
            "array": list,
        }[kind],
    )


def _decimal(schema: Json, value: Any) -> decimal.Decimal:
    if isinstance(value, str):  # Avro's bytes; in JSON it is the number
        value = decimal.Decimal(int.from_bytes(_bytes(value), "big", signed=True)).scaleb(
            -schema["scale"]
        )
    return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-schema["scale"]))


_LOGICAL: dict[str, Callable[[Json, Any], Any]] = {
    "decimal": _decimal,
    "date": lambda _, days: dt.date(1970, 1, 1) + dt.timedelta(days=days),
    "time-millis": lambda _, value: value * 1000,
    "time-micros": lambda _, value: value,
    "timestamp-millis": lambda _, value: value * 1000,
    "timestamp-micros": lambda _, value: value,
    "local-timestamp-millis": lambda _, value: value * 1000,
    "local-timestamp-micros": lambda _, value: value,
    "uuid": lambda _, value: value,
}


def record_columns(definition: Json) -> Columns:
    names = [one["name"] for one in definition["fields"]]

    def columns(java: Json) -> Row:
        found: Row | None = avro_column(definition, java["value"])
        return found or dict.fromkeys(names)

    return columns


def key_value_columns(key: Json, value: Json) -> Columns:
    def columns(java: Json) -> Row:
        pair = java["value"] or {"key": None, "value": None}
        return {"key": _half(key, pair["key"]), "value": _half(value, pair["value"])}

    return columns


def _half(schema: Json, value: Any) -> Any:
    if value is None:
        return None
    match schema["type"]:
        case "AVRO" | "JSON":
            return avro_column(schema["definition"], value)
        case "PROTOBUF_NATIVE":
            return proto_column(_descriptor(schema), value)
        case "BYTES":
            return _bytes(value)
        case "FLOAT" | "DOUBLE":
            return float(value)
    return value


# --- primitive values through one topic ---

STRING: Json = {"type": "STRING"}
INT32: Json = {"type": "INT32"}
BYTES: Json = {"type": "BYTES"}

# --- Avro and JSON of every type ---

_STATE = {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}
_POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "double"]}],
}


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


def _records() -> list[Case]:
    found = []
    for kind in ("AVRO", "JSON"):
        definition = _everything(kind)
        schema = {"type": kind, "definition": definition}
        resolved = _resolved(definition)
        writes = _packed(schema, _everything_values(kind))
        found.append(Case(f"{kind.lower()}-everything", writes, record_columns(resolved)))
    return found


def _resolved(definition: Json) -> Json:
    """With the names of records replaced by what they name."""

    def of(one: Any) -> Any:
        if one == "Point":
            return _POINT
        if isinstance(one, list):
            return [of(item) for item in one]
        if isinstance(one, dict):
            return {key: of(item) if key != "name" else item for key, item in one.items()}
        return one

    found: Json = of(definition)
    return found


# --- unions that become structs ---

_UNIONS: Json = {
    "type": "record",
    "name": "Unions",
    "fields": [
        {"name": "either", "type": ["null", "string", "long"]},
        {"name": "number", "type": ["int", "long"]},
        {"name": "real", "type": ["null", "float", "double"]},
    ],
}
_UNION_VALUES: list[Json] = [
    {"either": {"string": "a"}, "number": {"int": 1}, "real": {"float": 0.5}},
    {"either": {"long": 2}, "number": {"long": 2**40}, "real": {"double": 0.1}},
    {"either": None, "number": {"int": -1}, "real": None},
]

# --- KeyValue ---

_CUSTOMER: Json = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"]}],
}


def _key_value(key: Json, value: Json, encoding: str) -> Json:
    return {"type": "KEY_VALUE", "key": key, "value": value, "encoding": encoding}


def _typed(kind: str, definition: Json) -> Json:
    return {"type": kind, "definition": definition}


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


def _key_values() -> list[Case]:
    kinds: dict[str, tuple[Json, Json, list[Any]]] = {
        "strings": (STRING, STRING, _pairs(["a", "ü"], ["", "y" * 9000])),
        "numbers": (INT32, {"type": "DOUBLE"}, _pairs([0, -1, 2**31 - 1], [0.5, -0.0, 1e300])),
        "bytes": (BYTES, BYTES, _pairs([b"\x00\xff", b"k", b"aGk="], [b"v", b"", b"\xff"])),
        "string-json": (
            STRING,
            _typed("JSON", _CUSTOMER),
            _pairs(["a", "b"], [_customer("JSON", 1, "A"), _customer("JSON", 2, None)]),
        ),
        "json": (
            _typed("JSON", _CUSTOMER),
            _typed("JSON", _CUSTOMER),
            _pairs(
                [_customer("JSON", 1, "A"), _customer("JSON", -1, "")],
                [_customer("JSON", 1, "A"), _customer("JSON", 2, None)],
            ),
        ),
        "avro": (
            _typed("AVRO", _CUSTOMER),
            _typed("AVRO", _CUSTOMER),
            _pairs(
                [_customer("AVRO", 1, "A"), _customer("AVRO", -1, "")],
                [_customer("AVRO", 2, None), _customer("AVRO", 2**62, "B" * 5000)],
            ),
        ),
        "avro-protobuf": (
            _typed("AVRO", _CUSTOMER),
            _native(_ORDER_FILE, "shop.Order"),
            _pairs([_customer("AVRO", 1, "A")], [{"id": "3", "name": "c"}]),
        ),
        "debezium-avro": (
            _typed("AVRO", _DEBEZIUM_KEY),
            _typed("AVRO", _DEBEZIUM_VALUE),
            _debezium("AVRO"),
        ),
        "debezium-json": (
            _typed("JSON", _DEBEZIUM_KEY),
            _typed("JSON", _DEBEZIUM_VALUE),
            _debezium("JSON"),
        ),
    }
    empty = [{"key": "", "value": ""}, {"key": "", "value": None}, {"key": None, "value": "x"}]
    return [
        # pulsar-client cannot tell an empty key from none.
        Case(
            "keyvalue-empty-key-separated",
            _packed(_key_value(STRING, STRING, "SEPARATED"), empty),
            key_value_columns(STRING, STRING),
            keyed=False,
            tiers=("bookkeeper", "query", "parquet"),
        ),
        Case(
            "keyvalue-empty-key-inline",
            _packed(_key_value(STRING, STRING, "INLINE"), empty),
            key_value_columns(STRING, STRING),
        ),
    ] + [
        Case(
            f"keyvalue-{name}-{encoding.lower()}",
            _packed(_key_value(key, value, encoding), values),
            key_value_columns(_inner(key), _inner(value)),
            keyed=encoding == "INLINE",
        )
        for name, (key, value, values) in kinds.items()
        for encoding in ("INLINE", "SEPARATED")
    ]


def _inner(schema: Json) -> Json:
    if "definition" not in schema:
        return schema
    return {**schema, "definition": _with(schema["definition"], {"Value": _DEBEZIUM_ROW})}


def _with(one: Any, names: Json) -> Any:
    if isinstance(one, str) and one in names:
        return names[one]
    if isinstance(one, list):
        return [_with(item, names) for item in one]
    if isinstance(one, dict):
        return {key: item if key == "name" else _with(item, names) for key, item in one.items()}
    return one


# What Debezium's connectors register: the row before and after, where it comes from, what was done.
_DEBEZIUM_KEY: Json = {
    "type": "record",
    "name": "Key",
    "namespace": "db.shop",
    "fields": [{"name": "id", "type": "long"}],
}
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


# --- Protobuf ---


def _set(*files: descriptor_pb2.FileDescriptorProto) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def _native(files: bytes, message: str) -> Json:
    return {"type": "PROTOBUF_NATIVE", "descriptors": files, "message": message}


def _descriptor(schema: Json) -> Descriptor:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema["descriptors"]).file:
        pool.AddSerializedFile(file.SerializeToString())
    found: Descriptor = pool.FindMessageTypeByName(schema["message"])
    return found


_UNSIGNED_64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_FLOATS = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


def proto_column(message: Descriptor, value: Json) -> Row:
    """The struct of a message, from ProtoJSON with the names of the fields and all defaults."""
    return {one.name: _proto_field(one, value.get(one.name)) for one in message.fields}


def _proto_field(one: FieldDescriptor, value: Any) -> Any:
    if value is None:
        return None
    entry = one.message_type
    if entry is not None and entry.GetOptions().map_entry:
        item = entry.fields_by_name["value"]
        return {name: _proto_single(item, found) for name, found in value.items()}
    if isinstance(value, list):
        return [_proto_single(one, item) for item in value]
    return _proto_single(one, value)


def _proto_single(one: FieldDescriptor, value: Any) -> Any:
    if one.message_type is not None:
        return proto_column(one.message_type, value)
    if one.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(value)
    if one.type in _UNSIGNED_64:
        return str(value)
    if one.type in _FLOATS:
        return float(value)
    if one.type in (
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_SFIXED64,
    ):
        return int(value)
    return value


def proto_columns(schema: Json) -> Columns:
    message = _descriptor(schema)
    names = [one.name for one in message.fields]

    def columns(java: Json) -> Row:
        if java["value"] is None:
            return dict.fromkeys(names)
        return proto_column(message, java["value"])

    return columns


_ORDER_FILE = _set(
    proto_file(
        {"message Order": ["int64 id = 1", "string name = 2"]}, package="shop", name="o.proto"
    )
)

_SCALARS = [
    "bool", "int32", "sint32", "sfixed32", "uint32", "fixed32", "int64", "sint64", "sfixed64",
    "uint64", "fixed64", "float", "double", "string", "bytes",
]  # fmt: skip

_COMMON = proto_file({"message Money": ["int64 units = 1", "string currency = 2"]}, name="m.proto")
_PROTO3 = _set(
    _COMMON,
    proto_file(
        {
            "enum Color": ["NONE = 0", "RED = 1", "BLUE = 5"],
            "message Inner": ["int32 x = 1", "repeated string names = 2"],
            "message M": [
                # Before the optional ones, which are oneofs, too, of one member.
                "oneof choice string text = 67",
                "oneof choice int64 number = 68",
                "oneof choice Inner deep = 69",
                *(f"{kind} a_{kind} = {n}" for n, kind in enumerate(_SCALARS, 1)),
                *(f"optional {kind} o_{kind} = {n}" for n, kind in enumerate(_SCALARS, 21)),
                *(f"repeated {kind} r_{kind} = {n}" for n, kind in enumerate(_SCALARS, 41)),
                "Color color = 60",
                "repeated Color colors = 61",
                "Inner inner = 62",
                "repeated Inner inners = 63",
                "map<string, int64> counts = 64",
                "map<int32, Inner> by_number = 65",
                "map<bool, string> by_truth = 66",
                "t.Money price = 1000",
            ],
        },
        imports=("m.proto",),
        name="n.proto",
    ),
)
_PROTO2 = _set(
    proto_file(
        {
            "enum Color": ["RED = 1", "BLUE = 5"],
            "message Inner": ["required int32 x = 1"],
            "message M": [
                "required int64 id = 1",
                "optional string name = 2",
                "optional bool on = 3",
                "optional Color color = 4",
                "repeated sint32 deltas = 5",
                "optional Inner inner = 6",
                "repeated Inner inners = 7",
                "optional bytes raw = 8",
                "optional uint64 big = 9",
            ],
        },
        syntax="proto2",
        name="two.proto",
    )
)


def _scalar(kind: str, extreme: bool) -> Any:
    """A value of the type in ProtoJSON; `extreme`: at its edge."""
    base64_of = base64.b64encode(b"\x00\xff" if extreme else b"").decode()
    if kind.startswith(("u", "fixed")):
        return str(2 ** int(kind[-2:]) - 1) if extreme else 7
    special: dict[str, tuple[Any, Any]] = {
        "bool": (True, False),
        "string": ("ü\x00", "text"),
        "bytes": (base64_of, base64_of),
        "float": ("NaN", 0.5),
        "double": (-1e300, "-Infinity"),
    }
    if kind in special:
        return special[kind][0 if extreme else 1]
    return str(-(2 ** (int(kind[-2:]) - 1))) if extreme else 3


_PROTO3_VALUES: list[Json | None] = [
    {},
    {f"a_{kind}": _scalar(kind, True) for kind in _SCALARS},
    {f"o_{kind}": _scalar(kind, False) for kind in _SCALARS},
    {f"r_{kind}": [_scalar(kind, True), _scalar(kind, False)] for kind in _SCALARS},
    {
        "o_int32": 0,
        "o_string": "",
        "o_bool": False,
        "color": "BLUE",
        "colors": ["RED", "NONE"],
        "inner": {},
        "inners": [{"x": 1, "names": ["a", ""]}, {}],
        "counts": {"a": 1, "": -1},
        "by_number": {"7": {"x": 2}, "-1": {}},
        "by_truth": {"true": "yes", "false": "no"},
        "text": "",
        "price": {"units": "12", "currency": "EUR"},
    },
    {"number": "-5", "color": "RED"},
    {"deep": {"x": 9}},
    None,
]
_PROTO2_VALUES: list[Json | None] = [
    {"id": "1"},
    {"id": "0", "name": "", "on": False, "color": "BLUE", "deltas": [-1, 0], "big": str(2**64 - 1)},
    {"id": "-1", "inner": {"x": 0}, "inners": [{"x": -5}], "raw": "AP8="},
    None,
]


def _protobufs() -> list[Case]:
    found = []
    for name, schema, values in (
        ("proto3", _native(_PROTO3, "t.M"), _PROTO3_VALUES),
        ("proto2", _native(_PROTO2, "t.M"), _PROTO2_VALUES),
    ):
        found.append(Case(f"native-{name}", _packed(schema, values), proto_columns(schema)))
    flat = {**_native(_FLAT, "t.M"), "type": "PROTOBUF"}
    writes = _packed(flat, _FLAT_VALUES)
    found.append(Case("protobuf-flat", writes, _flat_columns, schema=flat))
    return found


# PROTOBUF tells of its fields' types alone, so presence is what the wire says: docs/types.md.
_FLAT = _set(
    proto_file(
        {
            "message M": [
                *(f"optional {kind} a_{kind} = {n}" for n, kind in enumerate(_SCALARS, 1)),
                "repeated int64 numbers = 20",
                "repeated string words = 21",
            ]
        },
        name="f.proto",
    )
)
_FLAT_VALUES: list[Json | None] = [
    {f"a_{kind}": _scalar(kind, True) for kind in _SCALARS},
    {f"a_{kind}": _scalar(kind, False) for kind in _SCALARS} | {"numbers": ["1", "-1"]},
    {"words": ["a", ""]},
    {},
    None,
]


def _flat_columns(java: Json) -> Row:
    found = proto_columns({**_native(_FLAT, "t.M")})(java)
    # What is not on the wire is NULL; so is an empty list, which has no form there.
    return {name: found[name] if found[name] != [] else _ABSENT for name in found}


_ABSENT: list[Any] = []


# --- several schemas in one topic ---


def _versions(kind: str) -> Case:
    def definition(*fields: Json) -> Json:
        return {"type": "record", "name": "Order", "fields": list(fields)}

    def maybe(name: str, of: Any) -> Json:
        return {"name": name, "type": ["null", of], "default": None}

    number = {"name": "id", "type": "long"}
    first = definition(number, maybe("name", "string"))
    second = definition(number, maybe("name", "string"), maybe("price", "double"))
    third = definition(
        number, maybe("price", "double"), maybe("tags", {"type": "array", "items": "string"})
    )
    tagged = kind == "AVRO"

    def value(n: int, **fields: tuple[str, Any]) -> Json:
        return {
            "id": n,
            **{f: {t: v} if tagged and v is not None else v for f, (t, v) in fields.items()},
        }

    name, price, tags = ("string", "n"), ("double", 0.5), ("array", ["a", "b"])
    writes = [
        Write(_typed(kind, first), [value(1, name=name), value(2, name=("string", None)), None]),
        Write(_typed(kind, second), [value(3, name=name, price=price)], {"batch": 5}),
        Write(_typed(kind, third), [value(4, price=price, tags=tags)] * 3, {"batch": 2}),
        Write(_typed(kind, first), [value(5, name=name)] * 2, {"batch": 2}),
    ]
    everything = definition(*second["fields"], third["fields"][-1])
    names = ["id", "name", "price", "tags"]

    def columns(java: Json) -> Row:
        given = java["value"] or {}
        found: Row = avro_column(everything, dict.fromkeys(names) | given)
        return found

    return Case(f"{kind.lower()}-versions", writes, columns)


def _raw(schema: Json) -> Json:
    return {**schema, "raw": True}


def _mixed() -> Case:
    """AUTO_PRODUCE and others in one topic: every version has another type."""
    record: Json = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": ["null", "long"], "default": None}],
    }
    writes = [
        Write(_raw(_typed("AVRO", record)), [b"\x02\x02", b"\x00"]),
        Write(_raw(_typed("JSON", record)), [b'{"a":5}', b'{"a": null}', b"{}"], {"batch": 2}),
        Write(STRING, ["text", "", None]),
        Write(INT32, [1, -1]),
        Write(BYTES, [b"\x00\xff", b"", None]),
    ]

    def columns(java: Json) -> Row:
        found: Row = dict.fromkeys(("a", "value"))
        version, value = java["schema_version"], java["value"]
        if java["null"]:
            return found
        data = _bytes(java["data"])
        match version:
            case 0 | 1:
                found["a"] = value.get("a")
            case 2:
                found["value"] = value
            case _:  # the column is text: what is none is rescued
                found |= {"__rescued": data, "__error": SOME}
        return found

    return Case("mixed-types", writes, columns)


# --- broken payloads ---


def _broken() -> list[Case]:
    names = [one["name"] for one in _CUSTOMER["fields"]]

    def nothing(java: Json) -> Row:
        return {**dict.fromkeys(names), "__rescued": _bytes(java["data"]), "__error": SOME}

    avro = _raw(_typed("AVRO", _CUSTOMER))
    json = _raw(_typed("JSON", _CUSTOMER))
    native = _raw(_native(_ORDER_FILE, "shop.Order"))
    return [
        Case(
            "broken-avro",
            [Write(avro, [b"", b"\x02", b"\x02\x04\x00", b"\x02\x00\x00", b"\xff" * 11])],
            nothing,
        ),
        Case(
            "broken-json",
            [
                Write(
                    json,
                    [b"", b"{", b"[]", b'"text"', b"1", b"{} {}", b'{"id":1}\xff'],
                    {"batch": 3},
                )
            ],
            nothing,
        ),
        Case(
            "broken-native",
            [Write(native, [b"\x08", b"\x12\x05a", b"\x12\x01\xff", b"\x00"])],
            nothing,
        ),
    ]


CORPUS: list[Case] = [
    *_records(),
    Case(
        "avro-unions",
        _packed(_typed("AVRO", _UNIONS), _UNION_VALUES),
        record_columns(_UNIONS),
    ),
    *_key_values(),
    *_protobufs(),
    _versions("AVRO"),
    _versions("JSON"),
    _mixed(),
    *_broken(),
]
