"""A schema that anyone registered: bounded in time and size, and at worst its messages' problem."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reader.payload import payload_fields
from tests.unit.payload.cases import Given, decode, decoder, key_value, rows, versions
from tests.unit.payload.hostile.test_linear import MOST, TIMES, seconds
from tests.unit.payload.protobuf_cases import native, proto_file


def record(fields: list[Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def many_fields(count: int) -> Any:
    return record([{"name": f"f{i}", "type": ["null", "long"]} for i in range(count)])


def same_but_for_case(count: int) -> Any:
    names = ["".join(c.upper() if i >> n & 1 else c for n, c in enumerate("abcdefghijklmno"))
             for i in range(count)]  # fmt: skip
    return record([{"name": name, "type": "int"} for name in names])


def many_branches(count: int) -> Any:
    branches = [record([], f"B{i}") for i in range(count)]
    return record([{"name": "u", "type": ["null", *branches]}])


def many_symbols(count: int) -> Any:
    symbols = [f"S{i}" for i in range(count)]
    return record([{"name": "e", "type": {"type": "enum", "name": "E", "symbols": symbols}}])


def long_name_over_many(count: int) -> Any:
    """Each field's path began with the long name."""
    inner = record([{"name": f"f{i}", "type": "int"} for i in range(count)], "I")
    return record([{"name": "n" * 100 * count, "type": inner}])


def calls(count: int) -> Any:
    """Records within one another, each of which is used in itself."""
    found: Any = "int"
    for i in range(min(count, 15)):
        found = record([{"name": "a", "type": found}, {"name": "b", "type": ["null", f"N{i}"]},
                        *({"name": f"c{j}", "type": "int"} for j in range(count // 15))],
                       f"N{i}")  # fmt: skip
    return record([{"name": "n", "type": found}])


MAKERS = [many_fields, same_but_for_case, many_branches, many_symbols, long_name_over_many, calls]


@pytest.mark.long
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_large_schemas_take_linear_time(kind: str, make: Callable[[int], Any]) -> None:
    few, many = json.dumps(make(1000)), json.dumps(make(1000 * TIMES))
    decoder((kind, make(10)))
    fast = seconds(lambda: decoder((kind, few)))
    assert seconds(lambda: decoder((kind, many))) < MOST * fast + 0.01


@pytest.mark.long
def test_large_protobuf_schemas_take_linear_time() -> None:
    def make(count: int) -> Given:
        # More messages than one would be too many columns.
        return native(proto_file({"message M": [f"int32 f{i} = {i + 1}" for i in range(count)]}))

    few, many = make(1000), make(8000)
    fast = seconds(lambda: decoder(few))
    assert seconds(lambda: decoder(many)) < MOST * fast + 0.01


HOSTILE = [
    '{"type":"array","items":' * 40_000,
    '{"type":"array","items":' * 500 + '"int"' + "}" * 500,
    "[" * 100_000,
    '{"type":"fixed","name":"F","size":1e999}',
    '{"type":"fixed","name":"F","size":-1}',
    json.dumps({"type": "fixed", "name": "F", "size": 10**30}),
    json.dumps({"type": "fixed", "name": "F", "size": 1 << 40}),
    json.dumps(record([{"name": "f", "type": "R"}])),
    json.dumps(record([{"name": "f", "type": {"type": "array", "items": "R"}}])),
    json.dumps({"type": "bytes", "logicalType": "decimal", "precision": 10**30, "scale": 10**29}),
    json.dumps({"type": "enum", "name": "E", "symbols": []}),
    json.dumps({"type": "enum", "name": "E", "symbols": 5}),
    json.dumps(record([{"name": "f", "type": "int"}], "N" * 1_000_000)),
    "9" * 5000, "NaN", "null", "[]", "{}", '""', '{"type":[]}', '{"type":null}',
]  # fmt: skip


@pytest.mark.parametrize("kind", ["AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE"])
def test_no_schema_text_is_an_error(kind: str) -> None:
    for text in HOSTILE:
        both: list[Given] = [(kind, text), (kind, "{}", {"__PARSING_INFO__": text})]
        for given in both:
            infos = versions(given)
            payload_fields(infos)
            found = decode(decoder(given), [b"{}", b"\2", b""])
            assert all(len(reason) < 2000 for reason in found.problems.values())


def test_a_hostile_half_of_a_key_value() -> None:
    for text in HOSTILE:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            continue
        given = key_value(("STRING", ""), ("AVRO", text))
        assert len(decode(decoder(given), [b"\0\0\0\0\0\0\0\0"]).problems) <= 1


def test_a_reason_is_not_as_long_as_the_names_in_it() -> None:
    """A schema's long name was in the error of each of its messages."""
    made = decoder(("AVRO", record([{"name": "n" * 500_000, "type": "string"}])))
    found = decode(made, [b"\xff"] * 1000)
    assert sum(map(len, found.problems.values())) < 1_000_000


def test_records_nested_deeper_than_the_stack() -> None:
    """The text of a recursive record was written by functions that call themselves."""
    level: Any = ["null", "R"]
    for i in range(20):
        level = record([{"name": "x", "type": level}], f"L{i}")
    made = decoder(("AVRO", record([{"name": "r", "type": level}])))
    (row,) = rows(decode(made, [b"\2" * 100 + b"\0"]))
    assert str(row).count("{") > 2000
