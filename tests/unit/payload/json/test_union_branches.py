"""Unions in JSON: a value goes to the first branch whose type has it, not whose column takes it."""

import json
from typing import Any

import pytest

from tests.support.schemas import avro_record
from tests.unit.payload.cases import decode, decoder, rows


def record(name: str, **fields: Any) -> dict[str, Any]:
    return avro_record(name, fields)


def enum(name: str, *symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols)}


def fixed(name: str, size: int, **more: str) -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size, **more}


def read(branches: list[Any], value: str) -> tuple[Any, str | None]:
    """Return the column u, without members that are NULL, and the problem of a message."""
    schema = json.dumps(record("R", u=["null", *branches]))
    found = decode(decoder(("JSON", schema)), [b'{"u":%s}' % value.encode()])
    (row,) = rows(found)
    u = row["u"]
    if isinstance(u, dict):
        u = {name: member for name, member in u.items() if member is not None}
    return u, found.problems.get(0)


CREATED, DELETED = record("Created", id="int", amount="string"), record("Deleted", id="int")
CIRCLE = record("Circle", kind=enum("K1", "CIRCLE"), size="int")
SQUARE = record("Square", kind=enum("K2", "SQUARE"), size="int")
UUID = fixed("U", 16, logicalType="uuid")
UUID_TEXT = "6f1a3c0e-8f5e-4c43-b3a4-0a3d5e1c2b7f"


@pytest.mark.parametrize(
    ("branches", "value", "member"),
    [
        ([CREATED, DELETED], '{"id":5}', ("member1", {"id": 5})),
        ([CREATED, DELETED], '{"id":5,"amount":"1"}', ("member0", {"id": 5, "amount": "1"})),
        (
            [CIRCLE, SQUARE],
            '{"kind":"SQUARE","size":2}',
            ("member1", {"kind": "SQUARE", "size": 2}),
        ),
        ([enum("K", "A"), "string"], '"hello"', ("member1", "hello")),
        ([enum("K", "A"), "string"], '"A"', ("member0", "A")),
        (["int", "long", "string"], "1099511627776", ("member1", 1 << 40)),
        (["int", "long", "string"], "5", ("member0", 5)),
        (["float", "double", "string"], "1e300", ("member1", 1e300)),
        (["float", "double", "string"], '"NaN"', ("member0", float("nan"))),
        ([fixed("F", 4), fixed("G", 8)], '"AAAAAAAAAAA="', ("member1", bytes(8))),
        ([fixed("F", 4), fixed("G", 8)], '"AAAAAA=="', ("member0", bytes(4))),
        ([fixed("F", 3), fixed("G", 2), fixed("H", 1)], '"AAA="', ("member1", bytes(2))),
        ([fixed("F", 3), fixed("G", 2), fixed("H", 1)], '"AA=="', ("member2", bytes(1))),
        ([UUID, "string"], '"hello"', ("member1", "hello")),
        ([UUID, "string"], f'"{UUID_TEXT}"', ("member0", UUID_TEXT)),
        (
            [{"type": "array", "items": "int"}, {"type": "map", "values": "int"}],
            '{"a":1}',
            ("member1", [("a", 1)]),
        ),
        (
            [{"type": "map", "values": enum("K", "A")}, record("M", a="string", b=["null", "int"])],
            '{"a":"x"}',
            ("member1", {"a": "x", "b": None}),
        ),
        (
            [
                record("M", a={"type": "array", "items": "int"}),
                record("N", a={"type": "array", "items": ["null", "int"]}),
            ],
            '{"a":[1,null]}',
            ("member1", {"a": [1, None]}),
        ),
    ],
)
def test_a_value_is_of_the_branch_that_has_it(
    branches: list[Any], value: str, member: tuple[str, Any]
) -> None:
    found, problem = read(branches, value)
    assert (repr(found), problem) == (repr(dict([member])), None)


@pytest.mark.parametrize(
    ("branches", "value", "member"),
    [
        # An enum written by value, a number that only the column holds, fields left out.
        ([CIRCLE, DELETED], '{"kind":"a circle","size":1}', {"kind": "a circle", "size": 1}),
        (["int", "string"], "5000000000", 5_000_000_000),
        ([CREATED, CIRCLE], '{"amount":"1"}', {"id": None, "amount": "1"}),
    ],
)
def test_what_no_branch_has_is_of_the_only_one_whose_column_takes_it(
    branches: list[Any], value: str, member: Any
) -> None:
    assert read(branches, value) == ({"member0": member}, None)


@pytest.mark.parametrize(
    ("branches", "value"),
    [
        ([CIRCLE, SQUARE], '{"kind":"TRIANGLE","size":1}'),
        ([CREATED, DELETED], "{}"),
        ([enum("K", "A"), enum("L", "B")], '"C"'),
    ],
)
def test_what_several_columns_take_is_null(branches: list[Any], value: str) -> None:
    assert read(branches, value) == (None, "field 'u' matches several branches of its union")


def test_records_that_are_text_are_told_by_their_fields_as_well() -> None:
    tree = record("Tree", n="int", word="string", u=["null", "Tree", record("Leaf", n="int")])
    found = decode(
        decoder(("JSON", json.dumps(tree))),
        [b'{"n":1,"word":"x","u":{"n":2}}', b'{"n":1,"word":"x","u":{"n":2,"word":"y"}}'],
    )
    assert [row["u"] for row in rows(found)] == [
        {"member0": None, "member1": {"n": 2}},
        {"member0": '{"n":2,"word":"y"}', "member1": None},
    ]
    assert not found.problems


@pytest.mark.parametrize("depth", [20, 40, 80])
def test_unions_inside_unions_are_read_in_steps_that_a_message_has(depth: int) -> None:
    """Each level is asked twice at most, not twice for each level above it."""
    kind: Any = record("L", a="int")
    value: Any = {"a": 1}
    for level in range(depth // 2):
        kind = record(f"R{level}", a="int", u=["null", kind, record(f"S{level}", b="string")])
        value = {"u": value}
    found, problem = read([kind, record("Other", z="string")], json.dumps(value))
    assert problem is None
    assert found is not None
