"""What thousands of versions of a schema cost: only those that are new, or occur."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from reader.model import SchemaInfo
from reader.payload import payload_fields, registry
from reader.payload.avro_schema import Schema, parse_schema
from reader.payload.column_types import TEXT, Member, Struct
from reader.payload.registry import MOST_PARSED, ParsedDefinitions
from reader.payload.remembered.union import MAX_COLUMNS, ColumnUnion, count_columns
from reader.plan import payload_columns
from tests.unit.sources.test_chunks_linear import steps_of


def definition(version: int, fields: int = 3, kind: str = "JSON") -> SchemaInfo:
    """A version with a field of its own, and some that all versions have."""
    names = [f"only{version}", *(f"field{number}" for number in range(1, fields))]
    record = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": name, "type": ["null", "string"]} for name in names],
    }
    return SchemaInfo(version, kind, json.dumps(record), timestamp=version)


class Table:
    """The columns and versions that a table remembers."""

    def __init__(self, schemas: list[SchemaInfo]) -> None:
        self.schemas = tuple(schemas)
        self.payload_schema = payload_fields(schemas)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The definitions that are parsed, in a process that has parsed none before."""
    found: list[str] = []

    def counted(text: str, json_bytes: str = "") -> Schema:
        found.append(text)
        return parse_schema(text, json_bytes)

    monkeypatch.setattr(registry, "parse_schema", counted)
    monkeypatch.setattr(registry, "DEFINITIONS", ParsedDefinitions())
    yield found


@pytest.mark.parametrize("count", [50, 100, 200])
def test_a_plan_parses_new_versions_only(
    count: int, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = [definition(version) for version in range(count)]
    table: Any = Table(schemas)
    parsed.clear()
    monkeypatch.setattr(registry, "DEFINITIONS", ParsedDefinitions())  # another process
    assert payload_columns(table, schemas).equals(table.payload_schema, check_metadata=True)
    assert parsed == []
    new = definition(count)
    grown = payload_columns(table, [*schemas, new])
    assert parsed == [new.definition]
    assert grown.names == [*table.payload_schema.names, f"only{count}"]
    assert grown.equals(payload_fields([*schemas, new]), check_metadata=True)


def test_a_number_that_was_registered_anew_is_new(parsed: list[str]) -> None:
    table: Any = Table([definition(0), definition(1)])
    parsed.clear()
    other = SchemaInfo(1, "JSON", definition(7).definition)
    assert payload_columns(table, [definition(0), other]).names[-1] == "only7"
    assert parsed == [other.definition]


def test_columns_without_any_new_version_stay_as_they_are() -> None:
    table: Any = Table([SchemaInfo(0, "BYTES", ""), definition(1)])
    assert payload_columns(table, table.schemas).equals(table.payload_schema, check_metadata=True)
    assert payload_columns(table, []).equals(table.payload_schema)
    assert isinstance(table.payload_schema, pa.Schema)


@pytest.mark.parametrize("count", [50, 100, 200])
def test_a_process_parses_a_definition_once(count: int, parsed: list[str]) -> None:
    schemas = [definition(version) for version in range(count)]
    for _ in range(3):
        registry.registry_of(schemas)
    assert len(parsed) == count


@pytest.mark.parametrize("fields", [2, 8, 40])
def test_what_is_kept_does_not_grow_with_the_versions(fields: int) -> None:
    definitions = ParsedDefinitions(most=500)
    for version in range(2 * 500 // fields):
        info = definition(version, fields)
        assert definitions.get(info) is definitions.get(info)
        assert definitions.kept <= 500


def test_a_small_text_with_many_columns_counts_by_its_columns() -> None:
    """A record that is used twice at each level: its text doubles the columns by a line."""
    inner: Any = "string"
    for level in range(10):
        fields = [
            {"name": name, "type": inner if name == "a" else f"R{level - 1}"} for name in "ab"
        ]
        if not level:
            fields = [{"name": "a", "type": "string"}]
        inner = {"type": "record", "name": f"R{level}", "fields": fields}
    info = SchemaInfo(0, "AVRO", json.dumps(inner))
    definitions = ParsedDefinitions()
    definitions.get(info)
    assert definitions.kept > 1_000 > len(info.definition) // 64
    assert definitions.kept < MOST_PARSED


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_new_versions_cost_a_plan_their_own_fields(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has 20 fields of its own, so there are more columns with each version: four times the
    versions cost four times the steps, and not sixteen times.
    """

    def steps(versions: int) -> int:
        monkeypatch.setattr(registry, "DEFINITIONS", ParsedDefinitions())
        schemas = []
        for version in range(versions):
            fields = [{"name": f"v{version}f{i}", "type": ["null", "long"]} for i in range(20)]
            record = {"type": "record", "name": "Order", "fields": fields}
            schemas.append(SchemaInfo(version, kind, json.dumps(record)))
        return steps_of(lambda: payload_fields(schemas))

    few = steps(10)
    assert few > 10 * 20
    assert steps(40) < 5 * few


@pytest.mark.parametrize("versions", [5, 10, 20, 40])
def test_the_columns_of_a_topic_do_not_grow_with_its_versions(versions: int) -> None:
    """Each version has 60 fields of its own; there is room for 200 columns."""
    union = ColumnUnion(Struct(()), most=200)
    for version in range(versions):
        names = (f"v{version}f{number}" for number in range(60))
        union.add(Struct(tuple(Member(name, name, TEXT) for name in names)))
    assert count_columns(union.layout()) <= 200 + 1
    assert MAX_COLUMNS == 20_000, "docs/security.md states it"
