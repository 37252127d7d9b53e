"""JSON messages that use the fields of versions other than their own."""

from __future__ import annotations

import pytest

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
