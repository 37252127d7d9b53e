"""Protobuf: native descriptors, and the schemas by parsing information."""

import base64
from typing import Any

from google.protobuf import descriptor_pb2, json_format, message_factory, struct_pb2, timestamp_pb2

from testbed.oracle import Json
from tests.contract.kinds import Case, Row, Write, packed, raw, stated
from tests.contract.kinds.columns import descriptor_of, proto_columns
from tests.unit.payload.protobuf_cases import proto_file


def _files(*files: descriptor_pb2.FileDescriptorProto) -> bytes:
    return descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


def _native(files: bytes, message: str) -> Json:
    return {"type": "PROTOBUF_NATIVE", "descriptors": files, "message": message}


ORDER = _native(
    _files(
        proto_file(
            {"message Order": ["int64 id = 1", "string name = 2"]}, package="shop", name="o.proto"
        )
    ),
    "shop.Order",
)

_SCALARS = [
    "bool", "int32", "sint32", "sfixed32", "uint32", "fixed32", "int64", "sint64", "sfixed64",
    "uint64", "fixed64", "float", "double", "string", "bytes",
]  # fmt: skip

_COMMON = proto_file({"message Money": ["int64 units = 1", "string currency = 2"]}, name="m.proto")
_PROTO3 = _files(
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
_PROTO2 = _files(
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


_FLAT = _files(
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


# --- messages in messages ---


def _known(module: Any) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


_DEEP = _files(
    _known(timestamp_pb2),
    _known(struct_pb2),
    proto_file(
        {
            "message Empty": [],
            "message M": [
                "int64 v = 1",
                "string label = 2",
                "M left = 3",
                "repeated M kids = 4",
                "map<string, M> named = 5",
                "Empty empty = 6",
                "google.protobuf.Timestamp at = 7",
                "repeated google.protobuf.Timestamp times = 8",
                "google.protobuf.Struct loose = 9",
            ],
        },
        imports=("google/protobuf/timestamp.proto", "google/protobuf/struct.proto"),
        name="d.proto",
    ),
)
_DEEP_VALUES: list[Json | None] = [
    {
        "v": "1",
        "left": {"v": "2", "label": "ü", "left": {"kids": [{"v": "-3"}]}},
        "kids": [{"label": "a"}, {}],
        "named": {"x": {"v": "9"}},
        "empty": {},
        "at": "2023-11-14T22:13:20.123456789Z",
        "times": ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z"],
        "loose": {"a": ["x", True, None]},
    },
    {},
    None,
]

# --- versions: a field more, one less, one that gets a member ---


def _versions() -> Case:
    def schema(*fields: str, **inner: list[str]) -> Json:
        messages = {f"message {name}": lines for name, lines in inner.items()}
        file = proto_file({**messages, "message M": list(fields)}, name="v.proto")
        return _native(_files(file), "t.M")

    first = schema("int64 id = 1", "optional string name = 2")
    second = schema(
        "int64 id = 1", "optional string name = 2", "Inner inner = 3", Inner=["int32 x = 1"]
    )
    third = schema(
        "int64 id = 1", "Inner inner = 3", Inner=["int32 x = 1", "optional string y = 2"]
    )
    union = schema(
        "int64 id = 1",
        "optional string name = 2",
        "Inner inner = 3",
        Inner=["int32 x = 1", "optional string y = 2"],
    )
    writes = [
        Write(first, [{"id": "1", "name": "n"}, {}, None]),
        Write(second, [{"id": "2", "inner": {"x": 1}}] * 3, {"batch": 2}),
        Write(third, [{"id": "3", "inner": {"x": 1, "y": "z"}}]),
        Write(first, [{"id": "4"}] * 2, {"batch": 2}),
    ]
    return Case("native-versions", writes, proto_columns(union))


# --- what a schema does not foresee ---

_ODD = _native(
    _files(
        proto_file(
            {
                "enum Color": ["NONE = 0", "RED = 1"],
                "message M": [
                    "int64 id = 1",
                    "Color color = 2",
                    "repeated int32 packed = 3",
                    "string name = 4",
                ],
            },
            name="x.proto",
        )
    ),
    "t.M",
)


def _odd(number: int = 0, color: str | None = "NONE", *items: int) -> Row:
    return {"id": number, "color": color, "packed": list(items), "name": ""}


_NULLS: Row = dict.fromkeys(("id", "color", "packed", "name"))
_ODD_ROWS: list[tuple[bytes, Row | None, bool]] = [
    (b"\x08\x07\x10\x01", _odd(7, "RED"), False),
    (b"\x10\x63", _odd(0, None), True),  # an enum number without a name
    (b"\x18\x01\x18\x02\x1a\x02\x03\x04", _odd(0, "NONE", 1, 2, 3, 4), False),
    (b"\x08\x01\x28\x05", _odd(1), True),  # field 5 is not known
    (b"\x08\x01\x08\x02", _odd(2), True),  # twice
    (b"\x22\x01\xff", _NULLS, True),  # not UTF-8
    (b"\x08", _NULLS, True),
    (b"\x22\x05a", _NULLS, True),
]

# --- PROTOBUF: a schema that knows numbers, types and labels of the top level alone ---

_NESTED = {
    **_native(
        _files(
            proto_file(
                {
                    "enum Color": ["NONE = 0", "RED = 1"],
                    "message Inner": ["int32 x = 1", "string y = 2"],
                    "message M": [
                        "int64 plain = 1",
                        "Inner inner = 2",
                        "repeated Inner inners = 3",
                        "map<string, int64> counts = 4",
                        "Color color = 5",
                        "repeated Color colors = 6",
                        "oneof choice string text = 7",
                        "oneof choice int64 number = 8",
                    ],
                },
                name="s.proto",
            )
        ),
        "t.M",
    ),
    "type": "PROTOBUF",
}
_NESTED_VALUES: list[Json | None] = [
    {
        "plain": "5",
        "inner": {"x": 1, "y": "a"},
        "inners": [{"x": 2}, {}],
        "counts": {"a": "1"},
        "color": "RED",
        "colors": ["RED", "NONE"],
        "text": "t",
    },
    {"number": "0", "inner": {}},
    {"plain": "0", "color": "NONE"},
    {},
    None,
]


def _nested(java: Json) -> Row:
    """Messages are their bytes, enums their numbers, and what is not on the wire is NULL."""
    descriptor = descriptor_of(_NESTED)
    found: Row = {one.name: None for one in descriptor.fields}
    if java["value"] is None:
        return found
    message = message_factory.GetMessageClass(descriptor)()
    json_format.ParseDict(java["value"], message)
    for one in descriptor.fields:
        found[one.name] = [] if one.is_repeated else None
    for one, value in message.ListFields():
        if one.message_type is None:
            found[one.name] = list(value) if isinstance(found[one.name], list) else value
        elif one.name == "counts":
            [(name, count)] = value.items()
            entry = message_factory.GetMessageClass(one.message_type)(key=name, value=count)
            found[one.name] = [entry.SerializeToString()]
        elif isinstance(found[one.name], list):
            found[one.name] = [item.SerializeToString() for item in value]
        else:
            found[one.name] = value.SerializeToString()
    return found


_PROTO3_SCHEMA, _PROTO2_SCHEMA = _native(_PROTO3, "t.M"), _native(_PROTO2, "t.M")
_DEEP_SCHEMA = _native(_DEEP, "t.M")
_FLAT_SCHEMA = {**_native(_FLAT, "t.M"), "type": "PROTOBUF"}

CASES = [
    Case("native-proto3", packed(_PROTO3_SCHEMA, _PROTO3_VALUES), proto_columns(_PROTO3_SCHEMA)),
    Case("native-proto2", packed(_PROTO2_SCHEMA, _PROTO2_VALUES), proto_columns(_PROTO2_SCHEMA)),
    Case("native-deep", packed(_DEEP_SCHEMA, _DEEP_VALUES), proto_columns(_DEEP_SCHEMA)),
    _versions(),
    Case(
        "native-odd",
        [Write(raw(_ODD), [payload for payload, _, _ in _ODD_ROWS], {"batch": 3})],
        stated(_ODD_ROWS),
    ),
    Case(
        "protobuf-flat",
        packed(_FLAT_SCHEMA, _FLAT_VALUES),
        proto_columns(_FLAT_SCHEMA),
        schema=_FLAT_SCHEMA,
    ),
    Case("protobuf-nested", packed(_NESTED, _NESTED_VALUES), _nested, schema=_NESTED),
]
