"""Columns are assigned once: what a table has keeps its field, whatever comes later."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from reader.payload import payload_fields
from reader.payload.registry import registry_of
from reader.payload.remembered.origins import layout_of_fields, same_origins
from reader.payload.remembered.union import ColumnUnion
from reader.table.definition import TableDefinition
from tests.unit.payload import cases
from tests.unit.payload.test_evolution import record

SENSOR = record({"room": "string", "value": "double"})
BYTES = record({"room": "string", "value": "bytes"})


def _later(given: cases.Given, known: pa.Schema, payload: bytes) -> tuple[list[str], Any, Any]:
    """The columns after ``known``, and the row and problems of a message of the given schema."""
    fields = payload_fields(cases.versions(given), known)
    found = cases.decode(cases.decoder(given, fields=fields), [payload])
    return fields.names, cases.rows(found)[0], found.problems


@pytest.mark.parametrize(
    ("given", "payload", "row"),
    [
        (("AVRO", SENSOR), cases.avro_bytes(SENSOR, {"room": "a", "value": 21.5}),
         {"value": None, "room": "a", "value_2": 21.5}),
        (("AVRO", BYTES), cases.avro_bytes(BYTES, {"room": "a", "value": b"x"}),
         {"value": None, "room": "a", "value_2": b"x"}),
        (("JSON", SENSOR), cases.json_bytes({"room": "a", "value": 2.5}),
         {"value": None, "room": "a", "value_2": 2.5}),
    ],
)  # fmt: skip
def test_a_field_after_messages_without_a_schema(
    given: cases.Given, payload: bytes, row: Any
) -> None:
    names, found, problems = _later(given, payload_fields([]), payload)
    assert names == list(row)
    assert (found, problems) == (row, {})


def test_the_halves_of_a_key_value_after_messages_without_a_schema() -> None:
    given = cases.key_value(("STRING", ""), ("AVRO", SENSOR), "INLINE")
    value = cases.avro_bytes(SENSOR, {"room": "a", "value": 21.5})
    payload = (1).to_bytes(4, "big") + b"k" + len(value).to_bytes(4, "big") + value
    names, row, problems = _later(given, payload_fields([]), payload)
    assert names == ["value", "key", "value_2"]
    assert row == {"value": None, "key": "k", "value_2": {"room": "a", "value": 21.5}}
    assert not problems


def test_text_after_messages_without_a_schema() -> None:
    names, row, problems = _later(("STRING", ""), payload_fields([]), b"x")
    assert names == ["value", "value_2"]
    assert (row, problems) == ({"value": None, "value_2": "x"}, {})


def test_a_field_that_comes_back_in_another_case() -> None:
    old, new = record({"Name": "string"}), record({"name": "string", "id": "long"})
    known = payload_fields(cases.versions(("AVRO", old)))
    names, row, problems = _later(
        ("AVRO", new), known, cases.avro_bytes(new, {"name": "x", "id": 1})
    )
    assert names == ["Name", "name_2", "id"]
    assert (row, problems) == ({"Name": None, "name_2": "x", "id": 1}, {})


def test_a_field_of_another_meaning_does_not_share_its_column() -> None:
    """The registry forgot that the bigint was a number, the column has not."""
    micros = {"type": "long", "logicalType": "time-micros"}
    new = record({"at": micros, "n": "long"})
    known = payload_fields(cases.versions(("AVRO", record({"at": "long"}))))
    _, row, problems = _later(("AVRO", new), known, cases.avro_bytes(new, {"at": 5, "n": 6}))
    assert row == {"at": None, "n": 6}
    assert problems == {
        0: "field 'at' is another kind of int64 in schema version 0 than in its column"
    }


MICROS = {"type": "long", "logicalType": "time-micros"}
EVOLVED: list[list[cases.Given]] = [
    [("BYTES", "")],
    [("AVRO", record({"value": "string", "A": "int", "a": "int", "__key": "int"}))],
    [cases.key_value(("AVRO", record({"k": MICROS}, "K")), ("STRING", ""), "SEPARATED")],
    [
        (
            "AVRO",
            record(
                {
                    "l": {"type": "array", "items": MICROS},
                    "m": {"type": "map", "values": record({"x y": "int", "x_y": MICROS}, "M")},
                    "u": ["null", "string", record({"Z": "int", "z": "int"}, "U")],
                }
            ),
        )
    ],
    [
        (
            "JSON",
            record(
                {
                    "m": {"type": "map", "values": record({"x;y": "int", "x y": "int"}, "M")},
                    "u": ["null", "string", record({"z": "int", "ZZ": "int"}, "U"), "boolean"],
                    "key": "string",
                }
            ),
        )
    ],
]


def test_a_table_knows_as_much_as_the_registry(tmp_path: Path) -> None:
    """After each version: the same columns, of the same fields, as from all versions at once."""
    given: list[cases.Given] = []
    table: DeltaTable | None = None
    for (version,) in EVOLVED:
        given.append(version)
        whole = registry_of(cases.versions(*given))
        if table is None:
            fields = payload_fields(cases.versions(*given))
            table = DeltaTable.create(str(tmp_path), Schema.from_arrow(fields))
        else:
            known = TableDefinition.of(table).schema
            fields = payload_fields(cases.versions(version), known)
            table.alter.add_columns(list(Schema.from_arrow(fields).fields))
        there = TableDefinition.of(DeltaTable(str(tmp_path))).schema
        assert there.equals(fields, check_metadata=True)
        assert layout_of_fields(there) == whole.layout
        assert all(map(same_origins, there, fields))
        assert payload_fields(cases.versions(*given), there).equals(there, check_metadata=True)


def test_a_column_of_an_external_writer_is_no_field_of_ours() -> None:
    """Its type is none that values are written as: its rows are NULL with the reason."""
    known = pa.schema([("n", pa.int32()), ("s", pa.struct([("x", pa.int16())]))])
    new = record({"n": "int", "s": record({"x": "int", "y": "int"}, "S")})
    fields = payload_fields(cases.versions(("AVRO", new)), known)
    assert fields.field("n").type == pa.int32()
    found = cases.decode(
        cases.decoder(("AVRO", new), fields=fields),
        [cases.avro_bytes(new, {"n": 1, "s": {"x": 2, "y": 3}})],
    )
    assert cases.rows(found) == [{"n": None, "s": {"x": None, "y": 3}}]
    assert found.problems == {
        0: "field 'n' of schema version 0 does not fit its column of type int32"
    }


def test_columns_are_bounded() -> None:
    """Fields beyond the limit have no column, and those that fit have the same in each order."""
    union = ColumnUnion(layout_of_fields([]), most=4)
    for fields in ({"a": "int"}, {"s": record({"x": "int", "y": "int"}, "S"), "b": "int"},
                   {"a": "int", "c": "int", "d": "int"}):  # fmt: skip
        union.add(registry_of(cases.versions(("AVRO", record(fields)))).layout)
    assert [member.column for member in union.layout().members] == ["a", "s"]
