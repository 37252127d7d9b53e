"""JSON messages that use the fields of versions other than their own."""

import gc
import json
import tracemalloc
from functools import partial
from typing import Any

import pytest

from reader.payload import member_decoder, registry
from reader.payload.remembered.union import ColumnUnion
from tests.unit.payload.cases import decode, decoder, json_bytes, rows
from tests.unit.payload.test_evolution import record

NAMED = record({"a": "long"})
GROWN = record({"a": "long", "b": ["null", "string"]})
NESTED = record({"r": record({"a": "long"}, "In")})
NESTED_GROWN = record({"r": record({"a": "long", "b": ["null", "string"]}, "In")})


@pytest.mark.parametrize("before", [[], [1], [0]])
@pytest.mark.parametrize("beside", [[], [1]])
def test_a_field_of_another_version_alone_and_in_any_batch(
    before: list[int], beside: list[int]
) -> None:
    """``before``: versions of messages that the decoder has read; ``beside``: in the same batch."""
    made = decoder(("JSON", NAMED), ("JSON", GROWN))
    other = json_bytes({"a": 2, "b": "y"})
    for version in before:
        decode(made, [other], version)
    found = decode(made, [json_bytes({"a": 1, "b": "x"}), *[other] * len(beside)], [0, *beside])
    assert rows(found) == [{"a": 1, "b": "x"}, *[{"a": 2, "b": "y"}] * len(beside)]
    assert not found.problems


def test_a_field_of_a_struct_and_one_that_was_removed() -> None:
    found = decode(
        decoder(("JSON", NESTED_GROWN), ("JSON", NESTED)),
        [json_bytes({"r": {"a": 1, "b": "x"}})],
        1,
    )
    assert rows(found) == [{"r": {"a": 1, "b": "x"}}]
    assert not found.problems


def test_a_name_in_another_case_is_of_the_version_itself() -> None:
    """Go writes ID for the field id; no later version may change what the message said."""
    own = record({"id": "long", "r": record({"id": "long"}, "In")})
    grown = record({"ID": ["null", "long"], "r": record({"id": "long", "Id": "long"}, "In")})
    payload = json_bytes({"ID": 5, "r": {"ID": 6}})
    alone = rows(decode(decoder(("JSON", own)), [payload], 0))[0]
    assert alone == {"id": 5, "r": {"id": 6}}
    found = decode(decoder(("JSON", own), ("JSON", grown)), [payload], 0)
    assert not found.problems
    row = rows(found)[0]
    assert row["id"] == 5
    assert row["r"]["id"] == 6
    assert row["ID_2"] is None


def test_two_names_of_one_field_are_rescued() -> None:
    own, grown = record({"id": "long"}), record({"id": "long", "ID": ["null", "long"]})
    found = decode(decoder(("JSON", own), ("JSON", grown)), [json_bytes({"id": 1, "ID": 2})], 0)
    assert rows(found)[0]["id"] == 1
    assert found.problems == {0: "unknown field 'ID'"}


def test_fields_beyond_the_columns_of_a_topic_are_rescued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever another version declares: a message that does not use it is read."""
    for module in (registry, member_decoder):
        monkeypatch.setattr(module, "ColumnUnion", partial(ColumnUnion, most=1))
    made = decoder(("JSON", NAMED), ("JSON", GROWN))
    found = decode(made, [json_bytes({"a": 1}), json_bytes({"a": 1, "b": "x"})], 0)
    assert rows(found) == [{"a": 1}, {"a": 1}]
    assert found.problems == {1: "field 'b' of schema version 0 has no column"}


@pytest.mark.parametrize("beside", [[], [1, 2, 3]])
def test_too_many_versions_are_read_each_by_itself(
    beside: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever other versions occur in a batch."""
    monkeypatch.setattr(member_decoder, "MOST_OTHER_FIELDS", 4)
    made = decoder(*[("JSON", GROWN if version % 2 else NAMED) for version in range(4)])
    payload = json_bytes({"a": 1, "b": "x"})
    found = decode(made, [payload] * (1 + len(beside)), [0, *beside])
    row, *_ = rows(found)
    assert row == {"a": 1, "b": None}
    assert found.problems == {
        number: "unknown field 'b'" for number in range(1 + len(beside)) if number % 2 == 0
    }


def versions_memory(count: int) -> int:
    """Bytes of Python's objects for a decoder of so many versions, all of which occur.

    Each version has four fields of its own.
    """
    kinds: list[Any] = [
        record({f"v{version}f{i}": ["null", "long"] for i in range(4)}) for version in range(count)
    ]
    made = decoder(*[("JSON", json.dumps(kind)) for kind in kinds], wanted=["v0f0"])
    tracemalloc.start()
    decode(made, [json_bytes({"v0f0": 1})] * count, list(range(count)))
    gc.collect()  # else the size depends on when the collector last ran
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return found


def test_memory_does_not_grow_with_versions_times_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the versions have twice the fields, and would take four times the memory."""
    monkeypatch.setattr(member_decoder, "MOST_OTHER_FIELDS", 400)
    versions_memory(4)
    few, many = versions_memory(20), versions_memory(40)
    assert many < 2.5 * few


MILLIS, MICROS, DATE = (
    ["null", {"type": kind, "logicalType": logical}]
    for kind, logical in (
        ("long", "timestamp-millis"),
        ("long", "timestamp-micros"),
        ("int", "date"),
    )
)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [(MILLIS, MICROS, 1_700_000_000_000), (["null", "int"], DATE, 12), ("string", "bytes", "test")],
)
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_a_field_of_which_other_versions_have_two_types_is_unknown(
    one: object, other: object, value: object, order: tuple[int, ...]
) -> None:
    """The versions without the field, with one type and with the other, in each order."""
    types: list[dict[str, object]] = [{}, {"t": one}, {"t": other}]
    inside = [record({"a": "long", **more}, "In") for more in types]
    schemas = [record({"a": "long", **more, "r": r}) for more, r in zip(types, inside, strict=True)]
    made = decoder(*(("JSON", schemas[i]) for i in order))
    payloads = [json_bytes({"a": 1, "t": value}), json_bytes({"a": 1, "r": {"a": 1, "t": value}})]
    found = decode(made, payloads, order.index(0))
    assert found.problems == {0: "unknown field 't'", 1: "unknown field 'r.t'"}


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [("int", ["null", "long"], 5), ("float", "double", 0.5), ("string", ["null", "string"], "x")],
)
def test_a_field_of_which_other_versions_have_two_types_of_one_form(
    one: object, other: object, value: object
) -> None:
    schemas = [record({"a": "long", **more}) for more in ({}, {"t": one}, {"t": other})]
    found = decode(
        decoder(*(("JSON", it) for it in schemas)), [json_bytes({"a": 1, "t": value})], 0
    )
    assert rows(found) == [{"a": 1, "t": value}]
    assert not found.problems


@pytest.mark.parametrize("value", ["text", 1_700_000_000_123, {"any": 1}])
def test_a_java_class_that_a_later_version_knows_takes_any_json(value: object) -> None:
    """What Avro's reflection says of java.lang.Object is a record without fields."""
    unknown = {"type": "record", "name": "Object", "fields": []}
    known = {**unknown, "fields": [{"name": "x", "type": "int"}]}
    schemas = [record({"f": kind}) for kind in (unknown, known)]
    payload = json_bytes({"f": value})
    alone = decode(decoder(("JSON", schemas[0])), [payload])
    found = decode(decoder(*(("JSON", it) for it in schemas)), [payload], 0)
    assert rows(found) == rows(alone)
    assert not found.problems
