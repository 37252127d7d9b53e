"""The columns of a write are those that the topic is read with: their order, names and defaults."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.model import Partition, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.payload.decoder import PayloadDecoder
from reader.plan import payload_columns
from reader.sink import RowWriter, SinkOptions, Target, resolve_target
from spark_ext.planner.sinks import PAYLOAD, SINK, Sinks
from tests.unit.encode.messages.encoding import decoded
from tests.unit.sink.test_row_writer import Kept

TOPIC = Topic("public", "default", "orders")
TEXT = ["null", "string"]


def record(fields: dict[str, Any], name: str = "R", **defaults: Any) -> dict[str, Any]:
    listed: list[dict[str, Any]] = [{"name": key, "type": kind} for key, kind in fields.items()]
    for field in listed:
        if field["name"] in defaults:
            field["default"] = defaults[field["name"]]
    return {"type": "record", "name": name, "fields": listed}


def texts(*names: str) -> dict[str, Any]:
    return record(dict.fromkeys(names, TEXT))


class World:
    """A topic with these versions of its schema, and a table with these payload columns."""

    has_storage = True

    def __init__(self, *schemas: dict[str, Any], table: pa.Schema | None = None) -> None:
        self.versions = tuple(
            SchemaInfo(number, "AVRO", json.dumps(schema)) for number, schema in enumerate(schemas)
        )
        self.table: Any = (
            None if table is None else SimpleNamespace(payload_schema=table, schemas=())
        )
        self.settings = ReadConfig.load({})
        self.admin = self
        self.clients: Any = self

    def partitions(self, topic: Topic) -> list[Partition]:
        return [Partition(topic, -1)]

    def schemas(self, topic: Topic) -> Sequence[SchemaInfo]:
        return self.versions

    def max_message_size(self, topic: Topic) -> None:
        return None

    def newest_table(self, topic: Topic) -> Any:
        return self.table

    @contextmanager
    def publisher(self) -> Iterator[Any]:
        shown = SimpleNamespace(schema=self.versions[-1], message=b"", version=b"\0" * 8)
        yield SimpleNamespace(schema=lambda of: shown, most_bytes=lambda of: 5 << 20)

    @property
    def target(self) -> Target:
        return resolve_target(self.clients, TOPIC)

    @property
    def read(self) -> pa.Schema:
        return payload_columns(self.table, self.versions)

    def again(self, columns: dict[str, Any]) -> dict[str, Any]:
        """One row, written by these columns and read again."""
        batch = pa.record_batch(
            [pa.array([value], self.target.columns.field(name).type)
             for name, value in columns.items()], list(columns),
        )  # fmt: skip
        written = self.target.encoder(batch.schema).encode(batch)
        found = PayloadDecoder(self.versions, self.read).decode(
            written.values, np.array([self.versions[-1].version])
        )
        assert not found.problems
        return {name: array[0].as_py() for name, array in found.arrays.items()}


@pytest.mark.parametrize("suffix", [PAYLOAD, SINK])
def test_columns_by_position_are_those_of_describe(suffix: str) -> None:
    world = World(texts("id", "city"), texts("id", "country", "city"))
    found = Sinks(lambda config: world.clients).describe(None, "public/default", "orders" + suffix)
    assert found.schema.startswith("`id` STRING, `city` STRING, `country` STRING")
    assert found.payload == 3
    assert sorted([*found.omitted, *found.ignored]) == sorted(METADATA.names)
    assert "__key" in found.omitted
    row = {"id": "42", "city": "Paris", "country": "FR"}
    assert world.target.columns.names == world.read.names == list(row)
    assert world.again(row) == row


def test_members_of_structs_are_in_the_order_of_the_table() -> None:
    def nested(*names: str) -> dict[str, Any]:
        inner = record(dict.fromkeys(names, TEXT), "S")
        return record(
            {"s": inner, "l": {"type": "array", "items": "S"}, "m": {"type": "map", "values": "S"}}
        )

    world = World(nested("id", "city"), nested("id", "country", "city"))
    assert world.target.columns.equals(world.read)
    inner = {"id": "1", "city": "Rome", "country": "IT"}
    row = {"s": inner, "l": [inner], "m": [("k", inner)]}
    assert world.again(row) == row
    removed = World(nested("id", "old", "city"), nested("id", "city"))
    assert [field.name for field in removed.target.columns.field("s").type] == ["id", "city"]


def test_the_order_is_the_tables() -> None:
    table = pa.schema([("city", pa.string()), ("id", pa.string())])
    world = World(texts("id", "city", "country"), table=table)
    assert world.target.columns.names == world.read.names == ["city", "id", "country"]


def test_a_column_has_the_type_of_the_newest_schema() -> None:
    """Rows are read with NULL and an error there, but nobody could write any otherwise."""
    world = World(record({"a": "int", "b": "int"}), record({"b": "string", "a": "long"}))
    assert world.target.columns.equals(pa.schema([("a", pa.int64()), ("b", pa.string())]))


def test_names_are_those_of_the_table() -> None:
    world = World(record({"A": TEXT, "i": "int"}), record({"a": TEXT, "\u0131": "int"}))
    assert world.read.names == ["A", "i", "a_2", "\u0131_2"]
    assert world.target.columns.names == world.read.names
    assert world.again({"a_2": "x", "\u0131_2": 5}) == {
        "A": None,
        "i": None,
        "a_2": "x",
        "\u0131_2": 5,
    }


def test_a_field_whose_name_the_table_has_for_something_else() -> None:
    """One message without a schema was offloaded: the table's column value is its bytes."""
    world = World(record({"value": TEXT}), table=payload_fields([]))
    assert world.target.columns.names == world.read.names == ["value", "value_2"]
    assert world.target.removed == {"value"}
    assert world.again({"value_2": "x"}) == {"value": None, "value_2": "x"}


def test_a_column_whose_field_is_removed_is_null() -> None:
    world = World(texts("id", "old", "city"), texts("id", "city"))
    target = world.target
    assert target.columns.names == world.read.names == ["id", "old", "city"]
    assert target.omitted() == ["old"]
    assert world.again({"id": "1", "city": "Rome"}) == {"id": "1", "old": None, "city": "Rome"}

    def write(old: list[str | None]) -> Kept:
        kept = Kept()
        with Clients(ReadConfig.load({})) as clients:
            writer = RowWriter(clients, SinkOptions(), target, kept, None, 0)
            rows = {"id": ["1", "2"], "OLD": pa.array(old, pa.string()), "city": ["a", "b"]}
            writer.write(pa.record_batch(rows))
            writer.finish()
        return kept

    assert len(write([None, None]).entries) == 1
    with pytest.raises(
        ConfigurationError, match="a row has a value in column OLD, and the"
    ) as caught:
        write([None, "x"])
    assert caught.value.context["row"] == 1
    with pytest.raises(ConfigurationError, match="have no payload column") as caught:
        target.encoder(pa.schema([("old", pa.string())]))
    assert "columns: id, city;" in str(caught.value.hint)


def test_a_default_is_that_of_its_own_field() -> None:
    fields: dict[str, Any] = dict.fromkeys(["A", "a", "a_2", "B", "b"], "string")
    fields |= {key: {"type": "array", "items": "string"} for key in ["t", "T"]}
    world = World(record(fields, a_2="of a_2", b="of b", T=[]))
    target = world.target
    assert target.columns.names == ["A", "a_2", "a_2_2", "B", "b_2", "t", "T_2"]
    assert target.defaults() == {"a_2_2": "of a_2", "b_2": "of b"}
    assert target.omitted() == ["T_2"]


def test_the_settings_of_a_topic_are_those_of_its_writer() -> None:
    world = World(texts("id"))
    topic = TOPIC.local_name
    pulsar = {"json_bytes": {topic: "text"}, "json_times": {topic: "numbers"}}
    world.settings = ReadConfig.load({"pulsar": pulsar})
    schema = world.target.schema
    assert schema is not None
    assert (schema.json_bytes, schema.json_times) == ("text", "numbers")


def test_a_default_that_sql_fills_in() -> None:
    """A plain value, of the field's type, whichever branch of the union is null."""
    fields: dict[str, Any] = {
        "null_first": ["null", "int"],
        "null_last": ["int", "null"],
        "none": ["null", "int"],
        "large": "int",
        "list": ["null", {"type": "array", "items": "int"}],
        "whole": {"type": "array", "items": "int"},
    }
    defaults: dict[str, Any] = {"null_first": 5, "null_last": 6, "none": None, "large": 1 << 40,
                "list": [1], "whole": [1]}  # fmt: skip
    target = World(record(fields, **defaults)).target
    assert target.defaults() == {"null_first": 5, "null_last": 6}
    assert target.omitted() == ["large", "whole"]


def test_the_key_of_a_topic_that_had_a_field_of_its_name() -> None:
    """A SEPARATED KeyValue after a record with fields ``key`` and ``value``."""
    world = World(texts("key", "value"))
    properties = {"kv.encoding.type": "SEPARATED", "key.schema.type": "STRING",
                  "value.schema.type": "STRING"}  # fmt: skip
    pair = SchemaInfo(1, "KEY_VALUE", '{"key": "", "value": ""}', properties)
    world.versions = (*world.versions, pair)
    target = world.target
    assert target.columns.names == ["key", "value", "key_2", "value_2"]
    assert target.removed == {"key", "value"}
    kept = Kept()
    with Clients(ReadConfig.load({})) as clients:
        writer = RowWriter(clients, SinkOptions(), target, kept, None, 0)
        rows = {"key_2": ["k", "l"], "value_2": pa.array(["v", None]), "__tombstone": [False, True]}
        writer.write(pa.record_batch(rows))
        writer.finish()
    found = [row for index in kept.entries for row in decoded(kept.entries[index])]
    assert [(row["__key"], row["payload"]) for row in found] == [("aw==", b"v"), ("bA==", None)]
