"""Schemas whose whole tree is too large: columns as deep as there is room, JSON text below."""

import json
from typing import Any

import pyarrow as pa
import pytest

from reader.payload import payload_fields
from reader.payload.avro_schema import CUT_NODES
from tests.support.schemas import avro_record
from tests.unit.payload.cases import avro_bytes, decode, decoder, json_bytes, rows, versions
from tests.unit.payload.protobuf_cases import message_class, native, proto_file


def nodes(count: int = 7, **more: Any) -> dict[str, Any]:
    """A record with ``root``, which is one of several records that may each hold each other."""
    seen: set[str] = set()

    def kind(number: int) -> Any:
        name = f"Node{number}"
        if name in seen:
            return name
        seen.add(name)
        fields = [
            {"name": f"n{other}", "type": ["null", kind(other)], "default": None}
            for other in range(count)
        ]
        fields.append({"name": "text", "type": ["null", "string"], "default": None})
        fields += [{"name": key, "type": ["null", value]} for key, value in more.items()]
        return {"type": "record", "name": name, "fields": fields}

    fields = [{"name": "id", "type": "long"}, {"name": "root", "type": ["null", kind(0)]}]
    return {"type": "record", "name": "Query", "fields": fields}


def chain(length: int) -> dict[str, Any]:
    """n1 within n2 within n1 …, with a text at the end."""
    value: dict[str, Any] = {"text": "leaf"}
    for level in range(length):
        value = {f"n{1 + level % 2}": value}
    return value


def filled(value: Any, count: int = 7) -> Any:
    """With all fields, as fastavro takes them."""
    if value is None:
        return None
    return {f"n{i}": filled(value.get(f"n{i}"), count) for i in range(count)} | {
        "text": value.get("text")
    }


def compact(value: Any) -> Any:
    """A row without what is NULL, and with its JSON texts read."""
    if isinstance(value, str) and value.startswith("{"):
        return compact(json.loads(value))
    if isinstance(value, dict):
        return {key: compact(item) for key, item in value.items() if item is not None}
    return value


def size(kind: pa.DataType) -> int:
    return 1 + sum(size(field.type) for field in kind) if pa.types.is_struct(kind) else 1


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_mutually_recursive_records(kind: str) -> None:
    schema = nodes()
    made = decoder((kind, schema))
    values = [
        {"id": n, "root": value} for n, value in enumerate([chain(0), chain(1), chain(9), None])
    ]
    payloads = [
        avro_bytes(schema, {**value, "root": filled(value["root"])})
        if kind == "AVRO"
        else json_bytes(value)
        for value in values
    ]
    found = decode(made, payloads)
    assert not found.problems
    assert [compact(row) for row in rows(found)] == [compact(value) for value in values]
    [_, root] = payload_fields(versions((kind, schema)))
    assert 100 < size(root.type) <= CUT_NODES


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_a_version_that_is_cut_at_another_level(kind: str) -> None:
    """Its records go to the members of the column, and to the text of the column, as they fit."""
    few, many = nodes(6), nodes(7)
    for first, later, own in ((few, many, 7), (many, few, 6)):
        value = {"id": 1, "root": chain(9)}
        payload = json_bytes(value)
        if kind == "AVRO":
            payload = avro_bytes(later, {"id": 1, "root": filled(chain(9), own)})
        fields = payload_fields(versions((kind, first)))
        found = decode(decoder((kind, first), (kind, later), fields=fields), [payload], 1)
        assert [compact(row) for row in rows(found)] == [compact(value)]
        assert not found.problems
    # A field that the column has no member for, above the text.
    value = {"id": 1, "root": {"n1": {"n2": {"n6": {"text": "lost"}}}}}
    payload = json_bytes(value)
    if kind == "AVRO":
        payload = avro_bytes(many, {"id": 1, "root": filled(value["root"], 7)})
    fields = payload_fields(versions((kind, few)))
    found = decode(decoder((kind, few), (kind, many), fields=fields), [payload], 1)
    assert "n6" in found.problems[0]


LEAF = avro_record("Leaf", {"a": "long", "s": ["null", "string"]})
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "b", "type": "long"}]}


def with_unions(union: list[Any], *, cut: bool) -> dict[str, Any]:
    """A record whose field ``u`` has a union below the level at which a cut schema ends."""
    inner = [
        {"name": "leaf", "type": ["null", LEAF]},
        {"name": "other", "type": ["null", OTHER]},
        {"name": "u", "type": union},
        {"name": "items", "type": {"type": "array", "items": union}},
    ]
    below: Any = {"type": "record", "name": "Below", "fields": inner}
    fields = [{"name": "x", "type": ["null", below]}]
    tree: Any = "long"
    for level in range(3 * cut):
        name = tree if isinstance(tree, str) else tree["name"]
        more = [{"name": f"f{i}", "type": name if i else tree} for i in range(60)]
        tree = {"type": "record", "name": f"X{level}", "fields": more}
    if cut:
        fields.append({"name": "big", "type": ["null", tree]})
    return {"type": "record", "name": "R", "fields": fields}


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["null", "string", "Leaf"], ["null", "string", "Leaf"]),
        (["null", "string", "Leaf"], ["null", "Leaf", "Other", "string"]),
        (["null", "Leaf"], ["null", "string", "Leaf"]),
        (["null", "string", "Leaf"], ["null", "Leaf"]),
        (["null", "string", {"type": "array", "items": "Leaf"}],
         ["null", "string", {"type": "array", "items": "Leaf"}]),
    ],
)  # fmt: skip
def test_a_union_in_a_version_that_is_cut(kind: str, before: list[Any], after: list[Any]) -> None:
    """Its records go to the members that an earlier version gave them, not to new ones."""
    first, later = with_unions(before, cut=False), with_unions(after, cut=True)
    leaf: Any = {"a": 7, "s": "t"}
    value: Any = [leaf] if isinstance(after[-1], dict) else leaf
    named: Any = value if len(after) == 2 or isinstance(value, list) else ("Leaf", value)
    rest = {"leaf": leaf, "other": None}
    payload = json_bytes({"x": {**rest, "u": value, "items": [value]}})
    if kind == "AVRO":
        payload = avro_bytes(later, {"x": {**rest, "u": named, "items": [named]}, "big": None})
    found = decode(decoder((kind, first), (kind, later)), [payload], 1)
    assert not found.problems
    [row] = rows(found)
    for shown in (row["x"]["u"], row["x"]["items"][0]):
        members = shown if len(before) > 2 else {"": shown}
        assert [one for one in members.values() if one is not None] == [value]


def test_a_type_that_is_defined_below_the_columns() -> None:
    """A record that is cut away defines types that the columns use."""
    tree: Any = avro_record("B0", {"e": {"type": "enum", "name": "E", "symbols": ["A", "B"]}})
    for level in range(1, 20):
        fields = [{"name": "l", "type": tree}, {"name": "r", "type": f"B{level - 1}"}]
        tree = {"type": "record", "name": f"B{level}", "fields": fields}
    schema = avro_record(
        "R", {"tree": ["null", tree], "e": "E", "b": ["null", "n.B0"]}, namespace="n"
    )
    value: dict[str, Any] = {"tree": None, "e": "B", "b": {"e": "A"}}
    found = decode(decoder(("AVRO", schema)), [avro_bytes(schema, value)])
    assert rows(found) == [value]
    assert not found.problems


def test_protobuf() -> None:
    count = 8
    file = proto_file({
        "message M": ["int64 id = 1", "N0 root = 2"],
        **{f"message N{i}": [*(f"N{j} n{j} = {j + 1}" for j in range(count)), "string text = 99"]
           for i in range(count)},
    })  # fmt: skip
    made: Any = message_class(file)
    message = made(id=5)
    inner = message.root
    for level in range(9):
        inner = getattr(inner, f"n{1 + level % 2}")
    inner.text = "leaf"
    schema = native(file, root="t.M")
    found = decode(decoder(schema), [message.SerializeToString()])
    assert not found.problems
    [row] = rows(found)
    assert '"leaf"' in json.dumps(row).replace("\\", "")
    assert row["id"] == 5
    assert 100 < size(payload_fields(versions(schema)).field("root").type) <= CUT_NODES


def test_a_chain_of_messages() -> None:
    chain = {"message C0": ["int32 a = 1"]} | {
        f"message C{i}": [f"C{i - 1} l = 1"] for i in range(1, 100)
    }
    schema = native(proto_file(chain), root="t.C99")
    assert payload_fields(versions(schema)).names == ["l"]
