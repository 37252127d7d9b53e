"""Unions of records that are JSON text: an object goes to a branch that it is a record of."""

import json
from typing import Any

import pytest

from tests.support.schemas import avro_record
from tests.unit.payload.cases import decode, decoder, rows

NONE = "field 'u' matches no branch of its union"


def record(name: str, **fields: Any) -> dict[str, Any]:
    return avro_record(name, fields)


def tree(*others: Any) -> str:
    """Return a record Tree whose field u is a Tree, which becomes text, or one of the others."""
    return json.dumps(record("Tree", n="int", u=["null", "Tree", *others]))


def read(schema: str, value: Any) -> tuple[Any, str | None]:
    """Return the column u, and the problem, of a message with this value."""
    found = decode(decoder(("JSON", schema)), [json.dumps({"n": 1, "u": value}).encode()])
    (row,) = rows(found)
    u = row["u"]
    if isinstance(u, dict):
        u = {name: member for name, member in u.items() if member is not None}
    return u, found.problems.get(0)


# A record of columns, one that is text as it is inside of itself, and one of other types.
LEAF = record("Leaf", x="int")
LOOP = record("Loop", again=["null", "Tree", "Loop"], word="string")
NUMBER = record("Number", n="string")


@pytest.mark.parametrize(
    ("others", "value", "member"),
    [
        ((LEAF,), {"n": 5}, ("member0", '{"n":5}')),
        ((LEAF,), {"n": 5, "u": None}, ("member0", '{"n":5,"u":null}')),
        ((LEAF,), {"n": 5, "u": {"n": 6}}, ("member0", '{"n":5,"u":{"n":6}}')),
        ((LEAF,), {"n": 5, "u": {"x": 6}}, ("member0", '{"n":5,"u":{"x":6}}')),
        ((LEAF,), {"x": 5}, ("member1", {"x": 5})),
        ((NUMBER,), {"n": "five"}, ("member1", {"n": "five"})),
        (({"type": "map", "values": "string"},), {"n": "five"}, ("member1", [("n", "five")])),
        ((LEAF, {"type": "array", "items": "Leaf"}), [{"x": 1}], ("member2", [{"x": 1}])),
    ],
)
def test_an_object_is_no_record_of_other_fields(
    others: tuple[Any, ...], value: Any, member: tuple[str, Any]
) -> None:
    assert read(tree(*others), value) == (dict([member]), None)


@pytest.mark.parametrize(
    "value",
    [
        {"y": 5},
        {"n": 5, "y": 5},
        {"n": 1.5},
        {"n": 5, "u": {"y": 1}},
        {"n": 5, "u": {"x": "one"}},
        {"n": "5"},
    ],
)
def test_an_object_that_is_no_branchs_record_is_null(value: Any) -> None:
    assert read(tree(LEAF), value) == (None, NONE)


def test_two_records_that_are_both_text() -> None:
    """Loop is text where it is inside of itself, as Tree is: each object has one member."""
    schema = tree(LOOP)
    inner = [{"n": 2}, {"word": "w"}, {"word": "w", "again": {"n": 3}}, {"n": 2, "word": "w"}]
    expected = ["member0", "member1", "member1", None]
    for value, member in zip(inner, expected, strict=True):
        found, problem = read(schema, {"word": "outer", "again": value})
        if member is None:
            assert (found, problem) == (None, NONE)
        else:
            ((name, text),) = (
                (k, v) for k, v in found["member1"]["again"].items() if v is not None
            )
            assert (name, json.loads(text), problem) == (member, value, None)


def test_a_class_without_fields_takes_any_object() -> None:
    schema = json.dumps(record("R", n="int", u=["null", record("Object"), LEAF]))
    assert read(schema, {"any": [1, {}]}) == ({"member0": '{"any":[1,{}]}'}, None)


def test_a_record_that_is_text_outside_of_unions_takes_any_object() -> None:
    """Nothing has to be chosen, so the text shows what was written."""
    schema = json.dumps(record("R", n="int", u=["null", "R"]))
    assert read(schema, {"other": 1}) == ('{"other":1}', None)


def test_objects_are_compared_as_deep_as_json_may_be() -> None:
    value: Any = {"x": 1}
    for _ in range(250):
        value = {"n": 1, "u": value}
    found, problem = read(tree(LEAF), value)
    assert (json.loads(found["member0"]), problem) == (value, None)
