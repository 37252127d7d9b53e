"""Random schemas with values, for the tests of `reader.payload`.

A `Kind` is one Avro type: its schema, the Arrow type that docs/types.md promises, and a strategy of
values. A `Value` is one datum in its three forms: as fastavro writes it, as JSON says it, and as
the column shows it (``to_pylist`` of the array, dates and times as integers).
"""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload import DecodedPayload, PayloadDecoder, payload_fields

TIMESTAMP = pa.timestamp("us", tz="UTC")
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@dataclass(frozen=True, slots=True)
class Value:
    avro: Any
    json: Any
    column: Any


@dataclass(frozen=True, slots=True)
class Kind:
    schema: Any
    arrow: pa.DataType
    values: st.SearchStrategy[Value]


def _same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Value]:
    return strategy.map(lambda v: Value(v, v, v))


def _scaled(strategy: st.SearchStrategy[int], factor: int) -> st.SearchStrategy[Value]:
    return strategy.map(lambda v: Value(v, v, v * factor))


def _binary(strategy: st.SearchStrategy[bytes]) -> st.SearchStrategy[Value]:
    return strategy.map(lambda v: Value(v, base64.b64encode(v).decode(), v))


def _logical(kind: str, logical: str) -> dict[str, str]:
    return {"type": kind, "logicalType": logical}


# Of the years 1 to 9999.
DAYS = st.integers(-719_162, 2_932_896)
MILLIS = st.integers(-62_135_596_800_000, 253_402_300_799_999)
MICROS = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)
FEW_MILLIS = st.integers(-(1 << 53), 1 << 53)
DECIMALS = st.integers(-(10**12) + 1, 10**12 - 1).map(lambda n: Decimal(n).scaleb(-3))
LEAVES: Sequence[Kind] = (
    Kind("boolean", pa.bool_(), _same(st.booleans())),
    Kind("int", pa.int64(), _same(INT32)),
    Kind("long", pa.int64(), _same(INT64)),
    Kind("float", pa.float64(), _same(st.floats(width=32, allow_nan=False, allow_infinity=False))),
    Kind("double", pa.float64(), _same(st.floats(allow_nan=False, allow_infinity=False))),
    Kind("bytes", pa.binary(), _binary(st.binary(max_size=12))),
    Kind("string", pa.string(), _same(TEXT)),
    Kind(_logical("int", "date"), pa.date32(), _same(DAYS)),
    Kind(_logical("int", "time-millis"), pa.int64(), _scaled(INT32, 1000)),
    Kind(_logical("long", "time-micros"), pa.int64(), _same(INT64)),
    Kind(_logical("long", "timestamp-millis"), TIMESTAMP, _scaled(MILLIS, 1000)),
    Kind(_logical("long", "timestamp-micros"), TIMESTAMP, _same(MICROS)),
    Kind(_logical("long", "timestamp-nanos"), pa.int64(), _same(INT64)),
    Kind(_logical("long", "local-timestamp-millis"), pa.int64(), _scaled(FEW_MILLIS, 1000)),
    Kind(_logical("long", "local-timestamp-micros"), pa.int64(), _same(INT64)),
    Kind(_logical("long", "local-timestamp-nanos"), pa.int64(), _same(INT64)),
    Kind(_logical("string", "uuid"), pa.string(), _same(st.uuids().map(str))),
    Kind(
        {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        pa.decimal128(12, 3),
        DECIMALS.map(lambda d: Value(d, d, d)),
    ),
    Kind(
        {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 3},
        pa.string(),
        DECIMALS.map(lambda d: Value(d, d, f"{d:.3f}" if d else "0.000")),
    ),
)
OF_A_DAY = (
    Kind(_logical("int", "time-millis"), pa.int64(), _scaled(st.integers(0, 86_399_999), 1000)),
    Kind(_logical("long", "time-micros"), pa.int64(), _same(st.integers(0, 86_399_999_999))),
)
"""What is read of any time, and written of one in a day alone."""
WRITABLE = [*(kind for kind in LEAVES if kind.schema not in [one.schema for one in OF_A_DAY]),
            *OF_A_DAY]  # fmt: skip


class Names:
    """Names of types, which a schema may give only once; and the types that it has (``leaves``)."""

    def __init__(self, leaves: Sequence[Kind] = LEAVES) -> None:
        self.count = 0
        self.leaves = leaves

    def fresh(self) -> str:
        self.count += 1
        return f"T{self.count}"


@st.composite
def kinds(draw: st.DrawFn, names: Names, depth: int = 3) -> Kind:
    choice = draw(st.integers(0, 6 if depth == 0 else 12))
    if choice == 5:
        symbols = draw(st.lists(st.sampled_from("ABCDEFG"), min_size=1, unique=True))
        enum = {"type": "enum", "name": names.fresh(), "symbols": symbols}
        return Kind(enum, pa.string(), _same(st.sampled_from(symbols)))
    if choice == 6:
        size = draw(st.integers(1, 5))
        fixed = {"type": "fixed", "name": names.fresh(), "size": size}
        return Kind(fixed, pa.binary(), _binary(st.binary(min_size=size, max_size=size)))
    if choice < 5:
        return draw(st.sampled_from(names.leaves))
    if choice in (7, 8):
        inner = draw(kinds(names, depth - 1))
        # No union inside a union; a record with every member optional covers it.
        if isinstance(inner.schema, list):
            return inner
        null_first = draw(st.booleans())
        schema = ["null", inner.schema] if null_first else [inner.schema, "null"]
        return Kind(schema, inner.arrow, st.just(Value(None, None, None)) | inner.values)
    if choice == 9:
        inner = draw(kinds(names, depth - 1))
        return Kind(
            {"type": "array", "items": inner.schema},
            pa.list_(inner.arrow),
            st.lists(inner.values, max_size=4).map(_list),
        )
    if choice == 10:
        inner = draw(kinds(names, depth - 1))
        return Kind(
            {"type": "map", "values": inner.schema},
            pa.map_(pa.string(), inner.arrow),
            st.dictionaries(TEXT, inner.values, max_size=4).map(_map),
        )
    if choice == 11:
        return _wide_union(draw(kinds(names, depth - 1)))
    return draw(records(names, depth - 1))


def _list(values: list[Value]) -> Value:
    return Value([v.avro for v in values], [v.json for v in values], [v.column for v in values])


def _map(values: dict[str, Value]) -> Value:
    return Value(
        {k: v.avro for k, v in values.items()},
        {k: v.json for k, v in values.items()},
        [(k, v.column) for k, v in values.items()],
    )


def _wide_union(inner: Kind) -> Kind:
    """null, boolean, string, and lists of something: fastavro and JSON tell them apart."""
    schema = ["boolean", "null", "string", {"type": "array", "items": inner.schema}]
    arrow = pa.struct(
        [("member0", pa.bool_()), ("member1", pa.string()), ("member2", pa.list_(inner.arrow))]
    )
    branches = (_same(st.booleans()), _same(TEXT), st.lists(inner.values, max_size=3).map(_list))

    def chosen(index: int) -> st.SearchStrategy[Value]:
        def member(value: Value) -> Value:
            column = {f"member{i}": value.column if i == index else None for i in range(3)}
            return Value(value.avro, value.json, column)

        return branches[index].map(member)

    values = st.just(Value(None, None, None)) | chosen(0) | chosen(1) | chosen(2)
    return Kind(schema, arrow, values)


@st.composite
def records(draw: st.DrawFn, names: Names, depth: int = 3) -> Kind:
    fields = draw(st.lists(kinds(names, depth), min_size=1, max_size=5))
    schema = {
        "type": "record",
        "name": names.fresh(),
        "fields": [{"name": f"f{i}", "type": field.schema} for i, field in enumerate(fields)],
    }
    arrow = pa.struct([(f"f{i}", field.arrow) for i, field in enumerate(fields)])

    def together(values: tuple[Value, ...]) -> Value:
        named = [(f"f{i}", value) for i, value in enumerate(values)]
        return Value(
            {name: value.avro for name, value in named},
            {name: value.json for name, value in named},
            {name: value.column for name, value in named},
        )

    return Kind(schema, arrow, st.tuples(*(field.values for field in fields)).map(together))


@st.composite
def topics(draw: st.DrawFn, leaves: Sequence[Kind] = LEAVES) -> tuple[Kind, list[Value]]:
    """A record schema and some messages of it."""
    kind = draw(records(Names(leaves)))
    return kind, draw(st.lists(kind.values, min_size=1, max_size=8))


def avro_bytes(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def json_bytes(value: Any) -> bytes:
    """JSON text; a Decimal is written with all its digits."""
    marks: dict[str, str] = {}

    def mark(item: Any) -> str:
        name = f"decimal:{len(marks)}"
        marks[f'"{name}"'] = str(item)
        return name

    text = json.dumps(value, default=mark, ensure_ascii=False)
    for quoted, number in marks.items():
        text = text.replace(quoted, number)
    return text.encode()


Given = tuple[str, Any] | tuple[str, Any, Mapping[str, str]]


def key_value(key: Given, value: Given, encoding: str | None = "INLINE") -> Given:
    """The KEY_VALUE schema of two others, as the REST API tells it."""
    halves = {"key": key, "value": value}
    # Primitives have no definition; the broker shows "" for them.
    definition = {half: json.loads(one[1]) if _is_json(one[1]) else one[1]
                  for half, one in halves.items()}  # fmt: skip
    properties = {} if encoding is None else {"kv.encoding.type": encoding}
    for half, one in halves.items():
        properties[f"{half}.schema.name"] = ""
        properties[f"{half}.schema.type"] = one[0]
        properties[f"{half}.schema.properties"] = json.dumps(dict(one[2]) if len(one) > 2 else {})
    return "KEY_VALUE", definition, properties


def _is_json(definition: Any) -> bool:
    return isinstance(definition, str) and definition[:1] in tuple('{["')


def decoder(
    *schemas: Given, wanted: Sequence[str] | None = None, fields: pa.Schema | None = None
) -> PayloadDecoder:
    """A decoder of versions 0, 1, … given as (type, definition) or with properties."""
    infos = versions(*schemas)
    return PayloadDecoder(infos, payload_fields(infos) if fields is None else fields, wanted=wanted)


def versions(*schemas: Given) -> list[SchemaInfo]:
    return [
        SchemaInfo(
            i,
            given[0],
            given[1] if isinstance(given[1], str) else json.dumps(given[1]),
            given[2] if len(given) > 2 else {},
        )
        for i, given in enumerate(schemas)
    ]


def decode(
    made: PayloadDecoder,
    payloads: Sequence[bytes | None],
    version: int | Sequence[int] = 0,
    keys: Sequence[bytes | None] | None = None,
) -> DecodedPayload:
    """Decode, and hold the result against what every result must be."""
    numbers = [version] * len(payloads) if isinstance(version, int) else list(version)
    # Rows before and after, so that offsets do not start at 0 by chance.
    found = made.decode(
        ByteSpans.of(_padded(payloads)),
        np.array(numbers, np.int64),
        None if keys is None else _padded(keys),
    )
    for array in found.arrays.values():
        assert len(array) == len(payloads)
        array.validate(full=True)
    for row, reason in found.problems.items():
        assert 0 <= row < len(payloads)
        assert reason and "\n" not in reason and reason.encode()
    return found


def _padded(values: Sequence[bytes | None]) -> pa.LargeBinaryArray:
    return pa.array([b"before", *values, b"after"], pa.large_binary()).slice(1, len(values))


def shown(array: pa.Array) -> list[Any]:
    """``to_pylist`` with dates and timestamps as the integers that they are stored as."""
    found: list[Any] = array.cast(_as_integers(array.type)).to_pylist()
    return found


def _as_integers(real: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(real):
        return pa.int64()
    if pa.types.is_date32(real):
        return pa.int32()
    if pa.types.is_struct(real):
        return pa.struct([(f.name, _as_integers(f.type)) for f in real])
    if pa.types.is_map(real):
        return pa.map_(pa.string(), _as_integers(real.item_type))
    if pa.types.is_list(real):
        return pa.list_(_as_integers(real.value_type))
    return real


def rows(found: DecodedPayload) -> list[dict[str, Any]]:
    """The columns as one dict a row."""
    columns = {name: shown(array) for name, array in found.arrays.items()}
    count = max((len(values) for values in columns.values()), default=0)
    return [{name: values[i] for name, values in columns.items()} for i in range(count)]
