"""docs/types.md, row by row: the column of each Avro type, through Avro and through JSON.

Also names, the union over versions, and what such columns are in a Delta table.
"""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from reader.errors import UnsupportedError
from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.model.columns import METADATA_NAMES, TIMESTAMP
from reader.payload import payload_fields, prewarm
from reader.payload.avro_schema import MAX_NODES, parse_schema
from tests.support.schemas import avro_record
from tests.unit.payload.cases import avro_bytes, decode, decoder, json_bytes, rows, versions

DOCS = Path(__file__).parents[3] / "docs" / "types.md"


def record(*fields: Any) -> dict[str, Any]:
    """A record whose fields f0, f1, … are of these types."""
    return named({f"f{i}": field for i, field in enumerate(fields)})


def named(fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return avro_record(name, fields)


def logical(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "logicalType": name}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
RAW = bytes.fromhex(UUID.replace("-", ""))
FIXED = {"type": "fixed", "name": "F", "size": 2}
FIXED_UUID = {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}
DURATION = {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}
FIXED_DECIMAL = {
    "type": "fixed", "name": "F", "size": 5, "logicalType": "decimal", "precision": 9, "scale": 2
}  # fmt: skip
LINK = named({"v": "int", "next": ["null", "L"]}, "L")

# id in docs/types.md: schema, Arrow type, datum as fastavro writes it, JSON, value of the column.
MAPPING: dict[str, tuple[Any, pa.DataType, Any, str, Any]] = {
    "null": ("null", pa.string(), None, "null", None),
    "boolean": ("boolean", pa.bool_(), True, "true", True),
    "int": ("int", pa.int64(), 7, "7", 7),
    "long": ("long", pa.int64(), -(1 << 63), "-9223372036854775808", -(1 << 63)),
    "float": ("float", pa.float64(), 1.5, "1.5", 1.5),
    "double": ("double", pa.float64(), 0.1, "0.1", 0.1),
    "string": ("string", pa.string(), "ä", '"ä"', "ä"),
    "bytes": ("bytes", pa.binary(), b"hi", '"aGk="', b"hi"),
    "fixed": (FIXED, pa.binary(), b"hi", '"aGk="', b"hi"),
    "enum": ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.string(), "A", '"A"', "A"),
    "record": (named({"a": "int"}, "S"), pa.struct([("a", pa.int64())]), {"a": 1}, '{"a":1}',
               {"a": 1}),
    "record without fields": (named({}, "S"), pa.string(), {}, "{}", "{}"),
    "record inside itself": (LINK, pa.struct([("v", pa.int64()), ("next", pa.string())]),
                             {"v": 1, "next": {"v": 2, "next": None}},
                             '{"v":1,"next":{"v":2,"next":null}}',
                             {"v": 1, "next": '{"v":2,"next":null}'}),
    "array": ({"type": "array", "items": "int"}, pa.list_(pa.int64()), [1, 2], "[1,2]", [1, 2]),
    "map": ({"type": "map", "values": "int"}, pa.map_(pa.string(), pa.int64()), {"k": 1},
            '{"k":1}', [("k", 1)]),
    "null or X": (["null", "int"], pa.int64(), 5, "5", 5),
    "int or long": (["int", "null", "long"], pa.int64(), 1 << 40, "1099511627776", 1 << 40),
    "float or double": (["null", "float", "double"], pa.float64(), 2.5, "2.5", 2.5),
    "other unions": (["int", "null", "string"],
                     pa.struct([("member0", pa.int64()), ("member1", pa.string())]),
                     "x", '"x"', {"member0": None, "member1": "x"}),
    "decimal up to 38": (decimal(9, 2), pa.decimal128(9, 2), Decimal("-1.25"), "-1.25",
                         Decimal("-1.25")),
    "decimal fixed": (FIXED_DECIMAL, pa.decimal128(9, 2), Decimal("-1.25"), "-1.25",
                      Decimal("-1.25")),
    "decimal above 38": (decimal(39, 2), pa.string(), Decimal("-1.25"), "-1.25", "-1.25"),
    "decimal malformed": (decimal(5000, 3), pa.binary(), b"hi", '"aGk="', b"hi"),
    "date": (logical("int", "date"), pa.date32(), 19000, "19000", 19000),
    "time-millis": (logical("int", "time-millis"), pa.int64(), 5, "5", 5000),
    "time-micros": (logical("long", "time-micros"), pa.int64(), 5, "5", 5),
    "timestamp-millis": (logical("long", "timestamp-millis"), TIMESTAMP, 5, "5", 5000),
    "timestamp-micros": (logical("long", "timestamp-micros"), TIMESTAMP, 5, "5", 5),
    "timestamp-nanos": (logical("long", "timestamp-nanos"), pa.int64(), 5, "5", 5),
    "local-timestamp-millis": (logical("long", "local-timestamp-millis"), pa.int64(), 5, "5", 5000),
    "local-timestamp-micros": (logical("long", "local-timestamp-micros"), pa.int64(), 5, "5", 5),
    "local-timestamp-nanos": (logical("long", "local-timestamp-nanos"), pa.int64(), 5, "5", 5),
    "uuid": (logical("string", "uuid"), pa.string(), UUID, f'"{UUID}"', UUID),
    "uuid fixed": (FIXED_UUID, pa.string(), RAW, f'"{UUID}"', UUID),
    "duration": (DURATION, pa.binary(), b"abcdefghijkl", '"YWJjZGVmZ2hpamts"', b"abcdefghijkl"),
    "unknown logical": (logical("int", "colour"), pa.int64(), 5, "5", 5),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPING)
def test_mapping(name: str) -> None:
    kind, arrow, datum, text, column = MAPPING[name]
    schema = record(kind, "int")
    assert payload_fields(versions(("AVRO", schema))) == pa.schema(
        [("f0", arrow), ("f1", pa.int64())]
    )
    assert payload_fields(versions(("JSON", schema))) == payload_fields(versions(("AVRO", schema)))
    # fastavro would write logical types from Python's; these are what they are stored as.
    through_avro = decode(decoder(("AVRO", schema)), [avro_bytes(schema, {"f0": datum, "f1": 1})])
    through_json = decode(decoder(("JSON", schema)), [f'{{"f0":{text},"f1":1}}'.encode()])
    assert not through_avro.problems and not through_json.problems
    assert rows(through_avro) == rows(through_json) == [{"f0": column, "f1": 1}]


def test_every_row_of_the_document_has_its_test_and_the_other_way_round() -> None:
    documented = re.findall(r"`test_mapping\[(.+?)\]`", DOCS.read_text("utf-8"))
    assert sorted(documented) == sorted(MAPPING)


def test_all_types_in_a_delta_table(tmp_path: Path) -> None:
    schema = named({name: _renamed(case[0], i) for i, (name, case) in enumerate(MAPPING.items())})
    fields = payload_fields(versions(("AVRO", schema)))
    assert len(fields) == len(MAPPING)
    values = {name: case[2] for name, case in MAPPING.items()}
    found = decode(decoder(("AVRO", schema)), [avro_bytes(schema, values), None])
    batch = pa.record_batch(list(found.arrays.values()), schema=fields)
    write_deltalake(str(tmp_path), batch)
    back = DeltaTable(str(tmp_path)).to_pyarrow_table()
    assert back.schema.names == fields.names
    assert back.cast(fields).to_pylist() == batch.to_pylist()
    # Nothing that other readers would first have to learn.
    assert not DeltaTable(str(tmp_path)).protocol().writer_features


def _renamed(kind: Any, number: int) -> Any:
    """The named types of a schema may be defined but once."""
    if isinstance(kind, dict) and "name" in kind:
        text = repr({**kind, "name": f"N{number}"}).replace(f"'{kind['name']}'", f"'N{number}'")
        return eval(text)  # noqa: S307
    return kind


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        (["a", "A", "a_2"], ["a", "A_2", "a_2_2"]),
        (["__key", "__Topic"], ["__key_2", "__Topic_2"]),
        (["a b", "a;b", "a,b{c}(d)\n\t=e"], ["a_b", "a_b_2", "a_b_c__d____e"]),
        (["a\0b", "a\0c"], ["a_b", "a_c"]),
        (["ä", "Ä"], ["ä", "Ä_2"]),
        (["kis", "k\u0131s", "\u017f", "s"], ["kis", "k\u0131s_2", "\u017f", "s_2"]),
        (["__part\u0131tion"], ["__part\u0131tion_2"]),
        (["value"], ["value"]),
    ],
)
def test_names(fields: list[str], columns: list[str]) -> None:
    schema = named(dict.fromkeys(fields, "int"))
    assert payload_fields(versions(("JSON", schema))).names == columns
    payload = json_bytes({name: i for i, name in enumerate(fields)})
    found = decode(decoder(("JSON", schema)), [payload])
    assert list(rows(found)[0].values()) == list(range(len(fields)))
    inner = payload_fields(versions(("JSON", record(named(dict.fromkeys(fields, "int"), "S")))))
    assert [f.name for f in inner.field(0).type] == [
        c.removesuffix("_2") if c.startswith("__") else c for c in columns
    ]


def test_no_metadata_name_is_ever_taken() -> None:
    schema = named(dict.fromkeys([*METADATA_NAMES, *map(str.upper, METADATA_NAMES)], "int"))
    names = payload_fields(versions(("AVRO", schema))).names
    assert len({*map(str.lower, names), *map(str.lower, METADATA_NAMES)}) == 3 * len(METADATA_NAMES)


V0 = named({"a": "int", "s": named({"x": "int"}, "S"), "l": {"type": "array", "items": "int"}})
V1 = named(
    {
        "s": named({"y": "string", "x": "long"}, "S"),
        "b": "string",
        "a": ["null", "long"],
        "l": {"type": "array", "items": "long"},
    }
)
V2 = named({"a": "string", "b": "double", "s": "string", "l": {"type": "array", "items": "string"}})


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_versions_make_one_set_of_columns(kind: str) -> None:
    schemas = [(kind, V0), (kind, V1), (kind, V2)]
    fields = payload_fields(versions(*schemas))
    assert fields == pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("l", pa.list_(pa.int64())),
            ("b", pa.string()),
        ]
    )
    # Order of the registry's answer does not matter; appending only appends.
    assert payload_fields(versions(*schemas)[::-1]) == fields
    assert payload_fields(versions(*schemas[:1])).names == fields.names[:3]
    values: list[Any] = [
        {"a": 1, "s": {"x": 2}, "l": [3]},
        {"a": None, "s": {"x": 5, "y": "z"}, "l": [], "b": "t"},
        {"a": "no", "b": 0.5, "s": "no", "l": ["no"]},
    ]
    write = avro_bytes if kind == "AVRO" else lambda _, value: json_bytes(value)
    payloads = [write(schema[1], value) for schema, value in zip(schemas, values, strict=True)]
    made = decoder(*schemas)
    found = decode(made, [payloads[1], payloads[0], payloads[2], payloads[1]], [1, 0, 2, 1])
    second: dict[str, Any] = {"a": None, "s": {"x": 5, "y": "z"}, "l": [], "b": "t"}
    assert rows(found) == [
        second,
        {"a": 1, "s": {"x": 2, "y": None}, "l": [3], "b": None},
        {"a": None, "s": None, "l": [None], "b": None},
        second,
    ]
    assert found.problems == {2: "field 'a' is string in schema version 2, its column is int64"}


def test_an_integer_fits_a_column_of_doubles() -> None:
    made = decoder(("AVRO", record("double")), ("AVRO", record("long")))
    payloads = [avro_bytes(record("long"), {"f0": v}) for v in (7, 1 << 53, (1 << 53) + 1)]
    found = decode(made, payloads, 1)
    assert rows(found) == [{"f0": 7.0}, {"f0": 2.0**53}, {"f0": None}]
    assert found.problems == {2: "field 'f0' is out of the range of its column"}


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("long", logical("long", "time-micros")),
        (logical("long", "timestamp-nanos"), "long"),
        (logical("long", "local-timestamp-micros"), logical("long", "local-timestamp-nanos")),
        (named({}, "S"), "string"),
    ],
)
def test_one_arrow_type_may_mean_two_things(first: Any, later: Any) -> None:
    made = decoder(("JSON", record(first)), ("JSON", record(later)))
    found = decode(made, [b'{"f0":5}' if later != "string" else b'{"f0":"x"}'], 1)
    assert rows(found) == [{"f0": None}]
    assert "another kind of" in found.problems[0]


def test_a_union_that_grows_gets_members() -> None:
    made = decoder(
        ("AVRO", record(["null", "int", "string"])),
        ("AVRO", record(["null", "int", "string", "boolean"])),
    )
    payload = avro_bytes(record(["null", "int", "string", "boolean"]), {"f0": True})
    assert rows(decode(made, [payload], 1)) == [
        {"f0": {"member0": None, "member1": None, "member2": True}}
    ]


def test_a_table_with_other_columns_than_the_registry() -> None:
    schema = record("int", named({"x": "int", "y": "int"}, "S"), "string", "int")
    table = pa.schema(
        [
            ("f0", pa.int64()),
            ("gone", pa.list_(pa.string())),
            ("f1", pa.struct([("y", pa.int64()), ("old", pa.string())])),
            ("f2", pa.int64()),
        ]
    )
    value = {"f0": 1, "f1": {"x": 2, "y": 3}, "f2": "s", "f3": 4}
    expected = {"f0": 1, "gone": None, "f1": {"y": 3, "old": None}, "f2": None}
    for kind, payload in (("AVRO", avro_bytes(schema, value)), ("JSON", json_bytes(value))):
        made = decoder((kind, schema), fields=table)
        found = decode(made, [payload])
        assert rows(found) == [expected]
        assert [array.type for array in found.arrays.values()] == table.types
        assert found.problems == {0: "field 'f1.x' of schema version 0 has no column"}


def test_json_reads_fields_that_only_other_versions_declare() -> None:
    made = decoder(("JSON", record("int")), ("JSON", named({"g": "string"})))
    found = decode(made, [b'{"f0":1,"g":"x"}', b'{"f0":1,"g":"x"}', b'{"g":"x"}'], [0, 1, -1])
    assert rows(found) == [{"f0": 1, "g": "x"}, {"f0": 1, "g": "x"}, {"f0": None, "g": "x"}]
    assert not found.problems


@pytest.mark.parametrize(
    ("kind", "definition", "reason"),
    [
        ("AVRO", "", "schema version 0: not an Avro schema"),
        ("AVRO", "nonsense", "schema version 0: not an Avro schema"),
        ("AVRO", '{"type":"record","name":"R","fields":[{"name":"f","type":"X"}]}',
         "schema version 0: not an Avro schema"),
        ("JSON", '{"type":"object","properties":{}}', "schema version 0: not an Avro schema"),
        ("AVRO", '{"type":"array","items":' * 100 + '"int"' + "}" * 100,
         "schema version 0: the Avro schema is too large or nested too deeply"),
        ("AVRO", '{"type":"enum","name":"E","symbols":["\\ud800"]}',
         "schema version 0: not an Avro schema"),
        ("AVRO", "[" * 100_000, "schema version 0: not an Avro schema"),
        ("AUTO_CONSUME", "", "schema type AUTO_CONSUME is not supported"),
    ],
)  # fmt: skip
def test_schemas_that_cannot_be_used(kind: str, definition: Any, reason: str) -> None:
    made = decoder((kind, definition))
    found = decode(made, [b"\0", None, b""])
    assert not found.arrays
    assert list(found.problems) == [0, 2]
    assert found.problems[0].startswith(reason)


def test_a_tree_of_types_stops_at_its_bound() -> None:
    wide = record(*[named({f"g{j}": "int" for j in range(200)}, f"S{i}") for i in range(90)])
    assert len(payload_fields(versions(("AVRO", wide)))) == 90
    assert MAX_NODES < 200 * 110


def test_what_is_not_a_record_is_the_value() -> None:
    made = decoder(("AVRO", {"type": "array", "items": "int"}))
    assert rows(decode(made, [b"\x02\x02\0"])) == [{"value": [1]}]
    made = decoder(("JSON", {"type": "array", "items": "int"}))
    found = decode(made, [b"[1]", b"null", b"1", b" [ ]\n", b'[1,"x"]', b"[1", b"{}"])
    assert [row["value"] for row in rows(found)] == [[1], None, None, [], [1, None], None, None]
    assert list(found.problems) == [2, 4, 5, 6]
    assert found.problems[2] == "field 'the value' is not an array"
    made = decoder(("JSON", ["null", named({"a": "int"})]), ("JSON", named({"a": "int"})))
    found = decode(made, [b'{"a":1}', b'{"a":2}', b'{"a":1,"b":2}'], [0, 1, 0])
    assert rows(found)[:2] == [{"value": {"a": 1}, "a": None}, {"value": None, "a": 2}]
    assert found.problems == {2: "unknown field 'the value.b'"}


def test_named_types_and_namespaces() -> None:
    inner = named({"a": "int"}, "S") | {"namespace": "x.y"}
    schema = named({"f0": inner, "f1": "x.y.S", "f2": ["null", "x.y.S"]})
    value = {"f0": {"a": 1}, "f1": {"a": 2}, "f2": {"a": 3}}
    found = decode(decoder(("AVRO", schema)), [avro_bytes(schema, value)])
    assert rows(found) == [value]
    java = {"type": "record", "name": "O$I", "namespace": "com.x", "fields": [
        {"name": "s", "type": {"type": "string", "avro.java.string": "String"}, "default": ""},
        {"name": "k", "type": ["null", {"type": "int", "java-class": "java.lang.Short"}]},
    ]}  # fmt: skip
    assert rows(decode(decoder(("AVRO", java)), [b"\x02x\x02\x04"])) == [{"s": "x", "k": 2}]


def test_names_of_anything_in_a_reason() -> None:
    for kind, payload in (("AVRO", b"\4"), ("JSON", b'{"a\\nb\\u2028":"x"}')):
        found = decode(decoder((kind, named({"a\nb\u2028": "string"}))), [payload, b"{"])
        assert found.arrays["a_b\u2028"].null_count == (2 if kind == "AVRO" else 1)
        assert all(reason.isprintable() for reason in found.problems.values())


@pytest.mark.parametrize("definition", [decimal(2, 3), decimal(0, 0), decimal(5, -1)])
def test_a_decimal_that_is_none_is_binary(definition: dict[str, Any]) -> None:
    fields = payload_fields(versions(("AVRO", record(definition))))
    assert fields.field("f0").type == pa.binary()


def test_a_record_without_fields_has_no_columns() -> None:
    for kind, payloads in (("AVRO", [b"", b"x"]), ("JSON", [b"{}", b'{"a":1}'])):
        found = decode(decoder((kind, record())), payloads)
        assert not found.arrays
        assert list(found.problems) == [1]


def test_an_empty_batch() -> None:
    for kind in ("AVRO", "JSON"):
        made = decoder((kind, record("int", {"type": "map", "values": "string"})))
        found = made.decode(ByteSpans.of(pa.array([], pa.large_binary())), np.empty(0, np.int64))
        assert [len(array) for array in found.arrays.values()] == [0, 0]
        assert not found.problems


def test_versions_of_a_registry_may_have_gaps() -> None:
    infos = [SchemaInfo(7, "AVRO", versions(("AVRO", record("int")))[0].definition)]
    made = decoder(fields=payload_fields(infos))
    found = decode(made, [b"\x02"], 7)
    assert found.problems == {0: "schema version 7 is not in the registry"}


def test_prewarm() -> None:
    prewarm()


@pytest.mark.parametrize(
    "text",
    [
        '/* "of" ours */ {"type": "record", "name": "R", // a line\n "fields": [{"name": "a", '
        '"doc": "http://x /* no comment */", "type": "long"}]}',
        '{"type": "record", "name": "R", "doc": "\\ud800", '
        '"fields": [{"name": "a", "type": "long"}]}',
    ],
)
def test_texts_that_the_registry_takes(text: str) -> None:
    assert payload_fields([SchemaInfo(0, "AVRO", text)]).names == ["a"]


@pytest.mark.parametrize("text", ['/* {"type": "long"}', '{"type": "long"} // x\n {'])
def test_a_comment_without_an_end_is_no_schema(text: str) -> None:
    with pytest.raises(UnsupportedError, match="not an Avro schema"):
        parse_schema(text)


@pytest.mark.parametrize("namespace", ["", "a.b"])
def test_a_type_without_namespace_is_found_where_it_is_used_again_or_before(namespace: str) -> None:
    """As Java finds it: in the namespace first, then among the types that have none."""
    fields: Any = [{"name": "i", "type": "long"}]
    inner = {"type": "record", "name": "In", "namespace": "", "fields": fields}
    for kinds in ([inner, "In"], [["null", "In"], inner]):
        fields = [{"name": name, "type": kind} for name, kind in zip("xy", kinds, strict=True)]
        outer = {"type": "record", "name": "Out", "namespace": namespace, "fields": fields}
        found = payload_fields([SchemaInfo(0, "AVRO", json.dumps(outer))])
        assert found.names == ["x", "y"]
        assert found.field("x").type == found.field("y").type == pa.struct([("i", pa.int64())])
