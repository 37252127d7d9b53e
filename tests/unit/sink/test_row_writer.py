"""Rows to entries of their topics and partitions, through the real encoders."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.config import ReadConfig
from reader.encode import EncodedEntry
from reader.errors import ConfigurationError
from reader.model import Partition, SchemaInfo, Topic
from reader.model.columns import TIMESTAMP
from reader.sink import RowWriter, SinkOptions, Target
from tests.unit.encode.messages.encoding import decoded

TOPIC = Topic("t", "n", "x")
KEY_VALUE = SchemaInfo(
    0,
    "KEY_VALUE",
    '{"key":"","value":""}',
    {"key.schema.type": "STRING", "value.schema.type": "STRING", "kv.encoding.type": "SEPARATED"},
)
RECORD = SchemaInfo(
    0,
    "JSON",
    json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "a", "type": ["null", "int"], "default": None},
                {"name": "b", "type": ["null", "string"], "default": None},
            ],
        }
    ),
)


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"], pa.binary()).buffers())


class Kept:
    """A sink that keeps entries, by partition."""

    def __init__(self) -> None:
        self.entries: dict[Partition, list[EncodedEntry]] = {}

    def put(self, target: Target, partition: Partition, entry: EncodedEntry) -> None:
        assert partition.topic == target.topic
        self.entries.setdefault(partition, []).append(entry)

    def rows(self, index: int = -1) -> list[dict[str, Any]]:
        return decoded(self.entries[Partition(TOPIC, index)])


def target(partitions: int = 0, schema: SchemaInfo | None = None) -> Target:
    return Target(TOPIC, partitions, schema, None, b"", 5 << 20)


def written(
    batches: Sequence[pa.RecordBatch], to: Target | None = None, turn: int = 0, **options: str
) -> Kept:
    kept = Kept()
    with Clients(ReadConfig.load({})) as clients:
        asked = SinkOptions.of(options)
        writer = RowWriter(clients, asked, to or target(), kept, None, turn)
        for one in batches:
            writer.write(one)
        writer.finish()
        assert writer.rows == sum(one.num_rows for one in batches)
    return kept


def refused(batch: pa.RecordBatch, to: Target | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        written([batch], to)
    return caught.value


def values(*given: bytes | None, **more: Any) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(given, pa.binary())} | more)


# -- tombstones ------------------------------------------------------------------------------------


def test_what_was_read_can_be_written_as_it_is() -> None:
    """Of a row that is read ``__tombstone`` is true where its value is empty as well."""
    dead = pa.array([False, True, True, None])
    kept = written([values(b"x", None, b"", b"y", __tombstone=dead)])
    found = kept.rows()
    assert [row["payload"] for row in found] == [b"x", None, b"", b"y"]


def test_a_value_and_a_tombstone() -> None:
    error = refused(values(b"a", None, b"b", __tombstone=pa.array([False, True, True])))
    assert error.message == "a row has a value, and its __tombstone is true"
    assert error.context == {"row": 2}


def test_no_payload_at_all() -> None:
    error = refused(values(b"a", None))
    assert error.message == "a row has no payload: all of it is NULL"
    assert error.context == {"row": 1}
    assert error.hint == "for a null value its __tombstone is true"


def test_tombstones_of_records() -> None:
    batch = pa.record_batch(
        {
            "a": pa.array([1, None, None, 4], pa.int32()),
            "b": pa.array(["x", None, None, None]),
            "__tombstone": pa.array([False, True, False, False]),
        }
    )
    found = [row["payload"] for row in written([batch], target(schema=RECORD)).rows()]
    assert found[1] is None
    assert [json.loads(found[row]) for row in (0, 2, 3)] == [{"a": 1, "b": "x"}, {}, {"a": 4}]
    error = refused(batch.set_column(2, "__tombstone", pa.array([True] * 4)), target(schema=RECORD))
    assert error.context == {"row": 0}


def test_keys_apart_from_values() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array(["k1", "k2", "k3"]),
            "value": pa.array(["a", None, ""]),
            "__tombstone": pa.array([False, True, True]),
        }
    )
    found = written([batch], target(schema=KEY_VALUE)).rows()
    assert [row["payload"] for row in found] == [b"a", None, b""]
    assert [row["__key"] for row in found] == ["azE=", "azI=", "azM="]
    assert all(row["__keyBase64"] for row in found)


def separated(keys: Sequence[Any], **columns: Any) -> pa.RecordBatch:
    return pa.record_batch({**columns, "__key": pa.array(keys)})


@pytest.mark.parametrize(
    "rows",
    [
        separated([None, "azE="], value=pa.array(["a", "b"])),
        separated([None, b"k1"], key=pa.nulls(2, pa.string()), value=pa.array(["a", "b"])),
        separated([None, "azE="], KEY=pa.array(["k", None]), value=pa.array(["a", "b"])),
        separated([None, "azE="], value=pa.array(["a", None]),
                  __tombstone=pa.array([False, True])),
    ],
)  # fmt: skip
def test_a_key_beside_the_column_of_the_schema(rows: pa.RecordBatch) -> None:
    """What is read of such a topic has both; ``__key`` alone would be lost."""
    error = refused(rows, target(schema=KEY_VALUE))
    assert error.message == "a row has a __key, and its message gets the column key, which is NULL"
    assert error.context == {"row": 1, "column": "__key"}
    assert error.hint == "the topic is a SEPARATED KeyValue: give the column key its value"


def test_a_key_beside_itself() -> None:
    both = separated(["azE=", None], key=pa.array(["k1", None]), value=pa.array(["a", "b"]))
    found = written([both], target(schema=KEY_VALUE)).rows()
    assert [row["__key"] for row in found] == ["azE=", None]


def test_a_null_that_is_a_key() -> None:
    """Of a schema that has a null: it is what was read, and what is written."""
    halves = {"key": ["null", "string"], "value": ""}
    kinds = {"key.schema.type": "AVRO", "value.schema.type": "STRING"}
    schema = SchemaInfo(
        0, "KEY_VALUE", json.dumps(halves), {**kinds, "kv.encoding.type": "SEPARATED"}
    )
    rows = separated(["AA==", "AgJr"], key=pa.array([None, "k"]), value=pa.array(["a", "b"]))
    found = written([rows], target(schema=schema)).rows()
    assert [row["__key"] for row in found] == ["AA==", "AgJr"]
    other = separated(["AgJr"], key=pa.array([None], pa.string()), value=pa.array(["a"]))
    assert refused(other, target(schema=schema)).context == {"row": 0, "column": "__key"}


# -- errors say which row --------------------------------------------------------------------------


def test_the_row_of_an_error_behind_tombstones() -> None:
    batch = pa.record_batch(
        {
            "a": pa.array([None, 1, None, 1 << 40]),
            "__tombstone": pa.array([True, False, True, False]),
        }
    )
    error = refused(batch, target(schema=RECORD))
    assert error.message.startswith("column 'a', row 3 of the batch: 1099511627776 is out of ")
    assert error.context == {"row": 3, "column": "a"}


def test_the_row_of_an_error_among_rows_of_several_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "reader.sink.rows_to_entries.resolve_target",
        lambda _, topic: replace(target(schema=RECORD), topic=topic),
    )
    names = pa.array(["t/n/x", "t/n/y", "t/n/x", "t/n/y"])
    for columns in (
        {"a": pa.array([1, 2, 3, 1 << 40])},
        {"a": pa.array([1, 2, 3, 4]), "__tombstone": pa.array([False, False, False, True])},
        {"a": pa.array([1, 2, 3, 4]), "__eventTime": pa.array([1000, 1000, 1000, 0], TIMESTAMP)},
    ):
        with Clients(ReadConfig.load({})) as clients:
            writer = RowWriter(clients, SinkOptions(), None, Kept(), None, 0)
            with pytest.raises(ConfigurationError) as caught:
                writer.write(pa.record_batch({**columns, "__TOPIC": names}))
        assert caught.value.context["row"] == 3


# -- where rows go ---------------------------------------------------------------------------------


def test_keys_choose_partitions_and_keep_their_order() -> None:
    keys = [f"k{number % 20}" for number in range(400)]
    batches = [
        values(
            *(b"%d" % number for number in range(begin, begin + 100)),
            __key=pa.array(keys[begin : begin + 100]),
        )
        for begin in range(0, 400, 100)
    ]
    kept = written(batches, target(5), batchingMaxMessages="7")
    seen: dict[str, set[int]] = {}
    for index in range(5):
        rows = kept.rows(index)
        numbers = [int(row["payload"]) for row in rows]
        assert numbers == sorted(numbers)
        for row in rows:
            assert row["__key"] == keys[int(row["payload"])]
            seen.setdefault(row["__key"], set()).add(index)
    assert sorted(seen) == sorted(set(keys))
    assert all(len(found) == 1 for found in seen.values())


@pytest.mark.parametrize("turn", [0, 1, 7])
def test_rows_without_a_key_go_in_turns_of_a_batch(turn: int) -> None:
    batch = values(*(b"%d" % number for number in range(35)))
    kept = written([batch], target(3), turn, batchingMaxMessages="10")
    found = {
        one.index: [int(row["payload"]) for row in kept.rows(one.index)] for one in kept.entries
    }
    for part in range(4):
        index = (turn + part) % 3
        assert set(range(10 * part, min(10 * part + 10, 35))) <= set(found[index])
    assert sum(map(len, found.values())) == 35


def test_a_topic_without_partitions_and_one_of_one() -> None:
    batch = values(b"1", b"2", __key=pa.array(["a", None]))
    assert list(written([batch], target(0)).entries) == [Partition(TOPIC, -1)]
    assert list(written([batch], target(1)).entries) == [Partition(TOPIC, 0)]


def test_batches_go_on_over_batches_of_rows() -> None:
    kept = written([values(b"1"), values(), values(b"2", b"3")])
    assert [one.messages for one in kept.entries[Partition(TOPIC, -1)]] == [3]


def test_rows_without_a_topic() -> None:
    for batch, text in (
        (values(b"1"), "rows have no topic to go to"),
        (values(b"1", __topic=pa.array([None], pa.string())), "its __topic is NULL"),
        (values(b"1", __topic=pa.array(["a/b"])), "is not a topic name"),
        (values(b"1", __topic=NOT_UTF8), "its __topic is not UTF-8"),
    ):
        with Clients(ReadConfig.load({})) as clients:
            writer = RowWriter(clients, SinkOptions(), None, Kept(), None, 0)
            with pytest.raises(ConfigurationError, match=text):
                writer.write(batch)


def test_rows_do_not_get_lost_between_partitions() -> None:
    keys = pa.array([None if number % 3 else f"k{number}" for number in range(1000)])
    batch = values(*(b"%d" % number for number in range(1000)), __key=keys)
    kept = written([batch], target(4), batchingMaxMessages="9", batchingMaxBytes="500")
    found = Counter(row["payload"] for index in range(4) for row in kept.rows(index))
    assert found == {b"%d" % number: 1 for number in range(1000)}
