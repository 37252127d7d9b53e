"""What a schema's next version does to the columns, and that no message changes by it.

A message is read by the schema that it was written with: what it does not hold is NULL. Avro's
defaults and aliases are not applied, because a row would otherwise depend on when it is read.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from reader.payload import payload_fields
from tests.unit.payload import cases
from tests.unit.payload.protobuf_cases import message_class, native, proto_file, written


def record(fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    """Fields by name: a type, or all of a field's attributes."""
    return {
        "type": "record",
        "name": name,
        "fields": [
            {"name": key, **(kind if isinstance(kind, dict) and "was" in kind else {"type": kind})}
            for key, kind in fields.items()
        ],
    }


def inner(**fields: Any) -> dict[str, Any]:
    return record(fields, "S")


def enum(*symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)}


def listed(kind: Any) -> dict[str, Any]:
    return {"type": "array", "items": kind}


def mapped(kind: Any) -> dict[str, Any]:
    return {"type": "map", "values": kind}


WITH_DEFAULT = {"type": "int", "default": 7, "was": True}
WITH_ALIAS = {"type": "int", "aliases": ["a"], "was": True}

# fields before, a value; fields after, a value; both values as rows; problem of the later.
CHANGES: dict[str, tuple[Any, Any, Any, Any, Any, Any, str | None]] = {
    "widened": ({"a": "int", "b": "float"}, {"a": 1, "b": 0.5}, {"a": "long", "b": "double"},
                {"a": 1 << 40, "b": 0.1}, {"a": 1, "b": 0.5}, {"a": 1 << 40, "b": 0.1}, None),
    "narrowed": ({"a": "long"}, {"a": 1 << 40}, {"a": "int"}, {"a": 1}, {"a": 1 << 40}, {"a": 1},
                 None),
    "integer for double": ({"a": "double"}, {"a": 0.5}, {"a": "long"}, {"a": 3}, {"a": 0.5},
                           {"a": 3.0}, None),
    "double for integer": ({"a": "long"}, {"a": 3}, {"a": "double"}, {"a": 0.5}, {"a": 3},
                           {"a": None},
                           "field 'a' is not an integer of 64 bits"),
    "made nullable": ({"a": "int"}, {"a": 1}, {"a": ["null", "int"]}, {"a": None}, {"a": 1},
                      {"a": None}, None),
    "made not nullable": ({"a": ["null", "int"]}, {"a": None}, {"a": "int"}, {"a": 1}, {"a": None},
                          {"a": 1}, None),
    "removed": ({"a": "int", "b": "int"}, {"a": 1, "b": 2}, {"b": "int"}, {"b": 3},
                {"a": 1, "b": 2}, {"a": None, "b": 3}, None),
    "added": ({"a": "int"}, {"a": 1}, {"b": "string", "a": "int"}, {"b": "x", "a": 2},
              {"a": 1, "b": None}, {"a": 2, "b": "x"}, None),
    "added with a default": ({"a": "int"}, {"a": 1}, {"a": "int", "b": WITH_DEFAULT},
                             {"a": 2, "b": 3}, {"a": 1, "b": None}, {"a": 2, "b": 3}, None),
    "renamed": ({"a": "int"}, {"a": 1}, {"b": "int"}, {"b": 2}, {"a": 1, "b": None},
                {"a": None, "b": 2}, None),
    "renamed with an alias": ({"a": "int"}, {"a": 1}, {"b": WITH_ALIAS}, {"b": 2},
                              {"a": 1, "b": None}, {"a": None, "b": 2}, None),
    "reordered": ({"a": "int", "b": "string"}, {"a": 1, "b": "x"}, {"b": "string", "a": "int"},
                  {"a": 2, "b": "y"}, {"a": 1, "b": "x"}, {"a": 2, "b": "y"}, None),
    "another type": ({"a": "int"}, {"a": 1}, {"a": "string"}, {"a": "x"}, {"a": 1}, {"a": None},
                     "field 'a' is string in schema version 1, its column is int64"),
    "another meaning": ({"a": "long"}, {"a": 1}, {"a": {"type": "long", "logicalType":
                        "timestamp-micros"}}, {"a": 5}, {"a": 1}, {"a": None},
                        "field 'a' is timestamp[us, tz=UTC] in schema version 1, its column is "
                        "int64"),
    "a symbol more": ({"a": enum("A")}, {"a": "A"}, {"a": enum("B", "A")}, {"a": "B"}, {"a": "A"},
                      {"a": "B"}, None),
    "enum to string": ({"a": enum("A")}, {"a": "A"}, {"a": "string"}, {"a": "x"}, {"a": "A"},
                       {"a": "x"}, None),
    "a member more": ({"a": inner(x="int")}, {"a": {"x": 1}}, {"a": inner(y="string", x="long")},
                      {"a": {"x": 2, "y": "z"}}, {"a": {"x": 1, "y": None}},
                      {"a": {"x": 2, "y": "z"}}, None),
    "a member more in lists": ({"a": listed(inner(x="int"))}, {"a": [{"x": 1}]},
                               {"a": listed(inner(x="int", y="int"))}, {"a": [{"x": 1, "y": 2}]},
                               {"a": [{"x": 1, "y": None}]}, {"a": [{"x": 1, "y": 2}]}, None),
    "a member more in maps": ({"a": mapped(inner(x="int"))}, {"a": {"k": {"x": 1}}},
                              {"a": mapped(inner(y="int"))}, {"a": {"k": {"y": 2}}},
                              {"a": [("k", {"x": 1, "y": None})]},
                              {"a": [("k", {"x": None, "y": 2})]}, None),
    "a member of another type": ({"a": inner(x="int")}, {"a": {"x": 1}}, {"a": inner(x="string")},
                                 {"a": {"x": "z"}}, {"a": {"x": 1}}, {"a": {"x": None}},
                                 "field 'a.x' is string in schema version 1, its column is int64"),
    "one to many": ({"a": "int"}, {"a": 1}, {"a": listed("int")}, {"a": [1]}, {"a": 1},
                    {"a": None},
                    "field 'a' is list<item: int64> in schema version 1, its column is int64"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_records(kind: str, change: str) -> None:
    before, old, after, new, old_row, new_row, problem = CHANGES[change]
    first, later = record(before), record(after)
    write = cases.avro_bytes if kind == "AVRO" else lambda _, value: cases.json_bytes(value)
    schemas: list[cases.Given] = [(kind, first), (kind, later)]
    alone, both = (
        payload_fields(cases.versions(*schemas[:1])),
        payload_fields(cases.versions(*schemas)),
    )
    # Columns are only appended, and structs only grow.
    assert both.names[: len(alone)] == alone.names
    found = cases.decode(cases.decoder(*schemas), [write(first, old), write(later, new)], [0, 1])
    assert cases.rows(found) == [old_row, new_row]
    if kind == "JSON" and problem is not None:
        assert list(found.problems) == [1]
    else:
        assert found.problems == ({} if problem is None else {1: problem})
    # A message that is there already is the same row, except for columns that it cannot have.
    before_it = cases.rows(cases.decode(cases.decoder(*schemas[:1]), [write(first, old)]))[0]
    assert {name: value for name, value in old_row.items() if name in alone.names} == {
        name: _filled(value, old_row[name]) for name, value in before_it.items()
    }


def _filled(value: Any, like: Any) -> Any:
    """``value`` with the members that its struct has got since."""
    if isinstance(value, dict):
        return dict.fromkeys(like) | {k: _filled(v, like[k]) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, w) for v, w in zip(value, like, strict=True)]
    if isinstance(value, tuple):
        return value[0], _filled(value[1], like[1])
    return value


@pytest.mark.parametrize("change", CHANGES)
def test_halves_of_a_key_value(change: str) -> None:
    before, old, after, new, old_row, new_row, problem = CHANGES[change]
    first, later = record(before), record(after)
    schemas = [cases.key_value(("AVRO", s), ("JSON", s), "SEPARATED") for s in (first, later)]
    payloads = [cases.json_bytes(old), cases.json_bytes(new)]
    keys = [cases.avro_bytes(first, old), cases.avro_bytes(later, new)]
    found = cases.decode(cases.decoder(*schemas), payloads, [0, 1], keys)
    assert cases.rows(found) == [{"key": row, "value": row} for row in (old_row, new_row)]
    assert list(found.problems) == ([] if problem is None else [1])


@pytest.mark.parametrize(
    ("before", "old", "after", "new", "old_row", "new_row", "problem"),
    [
        (["int32 a = 1"], {"a": 1}, ["int64 a = 1"], {"a": 1 << 40}, {"a": 1}, {"a": 1 << 40},
         None),
        (["int32 a = 1"], {"a": 1}, ["optional int32 a = 1"], {}, {"a": 1}, {"a": None}, None),
        (["int32 a = 1", "int32 b = 2"], {"a": 1}, ["int32 b = 2"], {"b": 3}, {"a": 1, "b": 0},
         {"a": None, "b": 3}, None),
        (["int32 a = 1"], {"a": 1}, ["int32 a = 1", "string b = 2"], {"a": 1}, {"a": 1, "b": None},
         {"a": 1, "b": ""}, None),
        # The number is the identity on the wire, the name that of the column.
        (["int32 a = 1"], {"a": 1}, ["int32 b = 1"], {"b": 2}, {"a": 1, "b": None},
         {"a": None, "b": 2}, None),
        (["int32 a = 1"], {"a": 1}, ["int32 a = 5"], {"a": 2}, {"a": 1}, {"a": 2}, None),
        (["uint32 a = 1"], {"a": 1}, ["uint64 a = 1"], {"a": 2}, {"a": 1}, {"a": 2}, None),
        (["string a = 1"], {"a": "x"}, ["bytes a = 1"], {"a": b"y"}, {"a": "x"}, {"a": None},
         "field 'a' is binary in schema version 1, its column is string"),
        (["int32 a = 1"], {"a": 1}, ["repeated int32 a = 1"], {"a": [1]}, {"a": 1}, {"a": None},
         "field 'a' is list<item: int64> in schema version 1, its column is int64"),
        (["int32 a = 1"], {"a": 1}, ["repeated int32 a = 1"], {}, {"a": 1}, {"a": None},
         "field 'a' is list<item: int64> in schema version 1, its column is int64"),
    ],
)  # fmt: skip
def test_protobuf(
    before: list[str], old: Any, after: list[str], new: Any, old_row: Any, new_row: Any,
    problem: str | None,
) -> None:  # fmt: skip
    first, later = proto_file({"message M": before}), proto_file({"message M": after})
    payloads = [written(message_class(first), **old), written(message_class(later), **new)]
    found = cases.decode(cases.decoder(native(first), native(later)), payloads, [0, 1])
    assert cases.rows(found) == [old_row, new_row]
    assert found.problems == ({} if problem is None else {1: problem})


def test_from_avro_to_json_to_protobuf() -> None:
    """Another format is but another version: columns go by the names of the fields."""
    fields = record({"a": "int", "s": ["null", "string"]})
    file = proto_file({"message M": ["int32 a = 1", "string s = 2", "uint64 u = 3"]})
    schemas: list[cases.Given] = [("AVRO", fields), ("JSON", fields), native(file)]
    assert payload_fields(cases.versions(*schemas)) == pa.schema(
        [("a", pa.int64()), ("s", pa.string()), ("u", pa.string())]
    )
    payloads = [
        cases.avro_bytes(fields, {"a": 1, "s": "x"}),
        b'{"a":2}',
        written(message_class(file), a=3, u=1 << 63),
    ]
    found = cases.decode(cases.decoder(*schemas), payloads, [0, 1, 2])
    assert cases.rows(found) == [
        {"a": 1, "s": "x", "u": None},
        {"a": 2, "s": None, "u": None},
        {"a": 3, "s": "", "u": str(1 << 63)},
    ]
    assert not found.problems


def test_a_missing_version_leaves_the_others() -> None:
    """The registry has forgotten version 1."""
    made = cases.decoder(("STRING", ""))
    found = cases.decode(made, [b"x", b"y", None], [0, 1, 1])
    assert [row["value"] for row in cases.rows(found)] == ["x", None, None]
    assert found.problems == {1: "schema version 1 is not in the registry"}


LINK = {"a": "int", "next": ["null", "R"]}


def test_a_record_inside_itself_may_change() -> None:
    """From its second level on it is text, which takes any member."""
    first, later = record(LINK), record({**LINK, "b": "string"})
    old = {"a": 1, "next": {"a": 2, "next": None}}
    new: dict[str, Any] = {"a": 3, "b": "x", "next": {"a": 4, "b": "y", "next": None}}
    for kind in ("AVRO", "JSON"):
        write = cases.avro_bytes if kind == "AVRO" else lambda _, value: cases.json_bytes(value)
        found = cases.decode(
            cases.decoder((kind, first), (kind, later)),
            [write(first, old), write(later, new)],
            [0, 1],
        )
        one, two = cases.rows(found)
        assert (one["a"], one["b"], json.loads(one["next"])) == (1, None, old["next"])
        assert (two["a"], two["b"], json.loads(two["next"])) == (3, "x", new["next"])
        assert not found.problems


def test_a_table_grows_as_delta_does_it(tmp_path: Path) -> None:
    """Members at any depth, beside columns and members that are not in the registry's schema."""
    first = record(
        {
            "v": record({"x": "int"}, "V"),
            "l": listed(record({"x": "int"}, "L")),
            "m": mapped(record({"x": "int"}, "M")),
        }
    )
    later = record(
        {
            "n": "string",
            "m": mapped(record({"y": "int", "x": "int"}, "M")),
            "v": record({"y": record({"z": "int"}, "Y"), "X": "int"}, "V"),
            "l": listed(record({"y": "string"}, "L")),
        }
    )
    known = pa.schema([("gone", pa.int64()), *payload_fields(cases.versions(("AVRO", first)))])
    infos = cases.versions(("AVRO", first), ("AVRO", later))
    grown = payload_fields(infos, known)
    assert grown == pa.schema(
        [
            ("gone", pa.int64()),
            ("v", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.int64())])),
                             ("X_2", pa.int64())])),
            ("l", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.string())]))),
            ("m", pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.int64())]))),
            ("n", pa.string()),
        ]
    )  # fmt: skip
    assert payload_fields(infos, grown) == grown
    assert payload_fields([], known).names == [*known.names, "value"]
    table = DeltaTable.create(str(tmp_path), Schema.from_arrow(known))
    changed = [field for field in grown if field not in list(known)]
    table.alter.add_columns(list(Schema.from_arrow(pa.schema(changed)).fields))
    assert _plain(pa.schema(DeltaTable(str(tmp_path)).schema().to_arrow())) == grown
    value: dict[str, Any] = {"n": "t", "m": {"k": {"y": 1, "x": 2}}, "v": {"y": {"z": 3}, "X": 4},
                             "l": [{"y": "u"}]}  # fmt: skip
    found = cases.decode(cases.decoder(*[("AVRO", first), ("AVRO", later)], fields=grown),
                   [cases.avro_bytes(later, value)], 1)  # fmt: skip
    assert not found.problems
    assert cases.rows(found) == [
        {
            "gone": None,
            "v": {"x": None, "y": {"z": 3}, "X_2": 4},
            "l": [{"x": None, "y": "u"}],
            "m": [("k", {"x": 2, "y": 1})],
            "n": "t",
        }
    ]


def _plain(schema: pa.Schema) -> pa.Schema:
    """With Arrow's own names inside lists and maps."""
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return kind
