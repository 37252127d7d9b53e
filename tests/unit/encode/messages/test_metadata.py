"""The metadata columns that can be written: types, values, NULL, slices, times."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.encode import MessageColumns, check_message_columns, message_columns
from reader.encode.message_metadata import NOT_DELAYED, WRITABLE
from reader.errors import ConfigurationError
from reader.model.columns import METADATA, TIMESTAMP

PAIRS = pa.map_(pa.string(), pa.string())


def columns(name: str, values: Any, kind: pa.DataType | None = None) -> MessageColumns:
    """Of one column, which is a slice of a longer one."""
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    return several({name: array})


def several(arrays: dict[str, pa.Array]) -> MessageColumns:
    batch = pa.record_batch(arrays)
    check_message_columns(batch.schema)
    return message_columns(batch)


def texts(found: MessageColumns) -> list[bytes | None]:
    return [found.keys[row] for row in range(len(found.keys))]


def refused(arrays: dict[str, pa.Array]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        several(arrays)
    return caught.value


# -- types -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("__topic", pa.string()),
        ("__topic", pa.large_string()),
        ("__key", pa.string()),
        ("__key", pa.large_string()),
        ("__key", pa.binary()),
        ("__key", pa.large_binary()),
        ("__keyBase64", pa.bool_()),
        ("__orderingKey", pa.binary()),
        ("__orderingKey", pa.large_binary()),
        ("__messageProperties", PAIRS),
        ("__messageProperties", pa.map_(pa.large_string(), pa.large_string())),
        ("__eventTime", TIMESTAMP),
        ("__eventTime", pa.timestamp("ns", "Europe/Berlin")),
        ("__deliverAt", pa.timestamp("s", "+01:00")),
        ("__tombstone", pa.bool_()),
        ("value", pa.int8()),
        *((name, pa.null()) for name in WRITABLE),
        # What the broker and the producer say is ignored, whatever it is.
        *((name, pa.int8()) for name in METADATA.names if name not in (*WRITABLE, "__topic")),
    ],
)
def test_types_that_can_be_written(name: str, kind: pa.DataType) -> None:
    check_message_columns(pa.schema([(name, kind)]))
    assert len(columns(name, pa.nulls(3, kind)).tombstones) == 3
    assert len(columns(name, pa.nulls(0, kind)).tombstones) == 0


@pytest.mark.parametrize(
    ("name", "kind", "takes"),
    [
        ("__topic", pa.binary(), "a string"),
        ("__key", pa.int64(), "a string, or binary"),
        ("__keyBase64", pa.string(), "a boolean"),
        ("__orderingKey", pa.string(), "binary"),
        ("__messageProperties", pa.string(), "a map<string,string>"),
        ("__messageProperties", pa.map_(pa.string(), pa.int64()), "a map<string,string>"),
        ("__eventTime", pa.timestamp("us"), "a timestamp"),
        ("__eventTime", pa.int64(), "a timestamp"),
        ("__deliverAt", pa.date32(), "a timestamp"),
        ("__tombstone", pa.int32(), "a boolean"),
    ],
)
def test_types_that_cannot(name: str, kind: pa.DataType, takes: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_message_columns(pa.schema([("value", pa.string()), (name, kind)]))
    assert caught.value.message == f"column {name} cannot be written as {kind}"
    assert caught.value.hint == f"it takes {takes}"
    assert caught.value.context == {"column": name}


@pytest.mark.parametrize("name", ["__keys", "__", "__messageId"])
def test_names_that_are_none_of_ours_are_the_payloads(name: str) -> None:
    check_message_columns(pa.schema([(name, pa.int8())]))


def test_names_are_those_of_any_case() -> None:
    """As Spark takes them."""
    pairs = pa.array([[("a", "1")]], PAIRS)
    found = several({"__KEY": pa.array(["k"]), "__MessageProperties": pairs,
                     "__TOMBSTONE": pa.array([True])})  # fmt: skip
    assert texts(found) == [b"k"]
    assert found.properties(0) == [(b"a", b"1")]
    assert found.tombstones.tolist() == [True]
    with pytest.raises(ConfigurationError) as caught:
        check_message_columns(pa.schema([("__KEY", pa.int64())]))
    assert caught.value.message == "column __key cannot be written as int64"
    with pytest.raises(ConfigurationError) as caught:
        check_message_columns(pa.schema([("__key", pa.string()), ("__Key", pa.string())]))
    assert caught.value.message == (
        "column __Key is there twice: names do not differ by case alone"
    )


def test_without_any_column() -> None:
    found = several({"value": pa.array([1, 2])})
    assert texts(found) == [None, None]
    assert not found.base64.any()
    assert not found.tombstones.any()
    assert found.events.tolist() == [0, 0]
    assert found.deliver.tolist() == [NOT_DELAYED] * 2
    assert found.properties(0) == found.properties(1) == []


# -- keys ------------------------------------------------------------------------------------------


def test_keys_that_are_text() -> None:
    found = columns("__key", ["a", None, "", "é🔑"])
    assert texts(found) == [b"a", None, b"", "é🔑".encode()]
    assert not found.base64.any()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_keys_that_are_bytes_are_sent_as_base64(kind: pa.DataType) -> None:
    found = columns("__key", [b"\x00\xff", None, b"", b"abc"], kind)
    assert texts(found) == [b"AP8=", None, b"", b"YWJj"]
    assert found.base64.tolist() == [True, False, True, True]


def test_text_that_is_base64_already() -> None:
    keys = pa.array(["AP8=", "plain text", "", None, "YWJj"])
    flags = pa.array([True, False, True, None, None])
    found = several({"__key": keys, "__keyBase64": flags})
    assert texts(found) == [b"AP8=", b"plain text", b"", None, b"YWJj"]
    assert found.base64.tolist() == [True, False, True, False, False]


@pytest.mark.parametrize("key", ["AP8", "A===", "AP 8", "AP8=\n", "AP-_", "é===", "AP8=AP8="])
def test_text_that_says_it_is_base64_and_is_not(key: str) -> None:
    error = refused({"__key": pa.array(["AAAA", key]), "__keyBase64": pa.array([True, True])})
    assert error.context == {"row": 1, "column": "__key"}
    assert error.message == "column __key of a row is not base64, as __keyBase64 says"


def test_bytes_are_base64_whatever_the_flag_says() -> None:
    found = several({"__key": pa.array([b"abc"]), "__keyBase64": pa.array([False])})
    assert (texts(found), found.base64.tolist()) == ([b"YWJj"], [True])


def not_utf8(*values: bytes | None) -> pa.Array:
    """A column of strings, as Spark may have it."""
    raw = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def test_text_that_is_not_utf8() -> None:
    error = refused({"__key": not_utf8(b"a", b"\xff", b"\xc3").slice(1)})
    assert error.context == {"row": 0, "column": "__key"}
    assert error.message == "column __key of a row is not UTF-8 (bytes are a key as binary)"
    error = refused({"__key": not_utf8(b"AAAA", b"\xff"), "__keyBase64": pa.array([True, True])})
    assert error.context == {"row": 1, "column": "__key"}
    for name, text in ((b"\xff", b"1"), (b"a", b"\xc3")):
        pairs = pa.MapArray.from_arrays(
            pa.array([0, 1, 1, 3], pa.int32()), not_utf8(b"x", b"y", name), not_utf8(b"", b"", text)
        )
        error = refused({"__messageProperties": pairs})
        assert error.context == {"row": 2, "column": "__messageProperties"}
        assert error.message == (
            "column __messageProperties of a row has a property that is not UTF-8"
        )


def test_what_is_not_sent_need_not_be_utf8() -> None:
    key = pa.array([b"\xff", b"a"], pa.binary())
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), *key.buffers()[1:]])
    assert texts(several({"__key": hidden})) == [None, b"a"]


# -- properties ------------------------------------------------------------------------------------

GIVEN: Sequence[Any] = [
    [("z", "9")],
    [("a", "1"), ("b", "2")],
    None,
    [],
    [("", "")],
    [("y", "8"), ("é", "🔑")],
]
WANTED = [[(n.encode(), t.encode()) for n, t in row or []] for row in GIVEN]


@pytest.mark.parametrize(("begin", "count"), [(0, 6), (1, 4), (2, 1), (3, 3), (5, 1), (4, 0)])
@pytest.mark.parametrize("kind", [PAIRS, pa.map_(pa.large_string(), pa.large_string())])
def test_properties_of_a_slice(begin: int, count: int, kind: pa.DataType) -> None:
    found = columns("__messageProperties", pa.array(GIVEN, kind).slice(begin, count))
    assert [found.properties(row) for row in range(count)] == WANTED[begin : begin + count]


def test_a_map_that_is_null_has_no_pairs_whatever_its_offsets_say() -> None:
    whole = pa.array([[("a", "1")], [("b", "2"), ("c", "3")], [("d", "4")]], PAIRS)
    hidden = pa.Array.from_buffers(
        whole.type,
        3,
        [pa.py_buffer(b"\x05"), whole.buffers()[1]],
        children=[
            pa.StructArray.from_arrays(
                [whole.keys, whole.items],
                fields=[pa.field("key", pa.string(), False), pa.field("value", pa.string())],
            )
        ],
    )
    found = columns("__messageProperties", hidden)
    assert [found.properties(row) for row in range(3)] == [[(b"a", b"1")], [], [(b"d", b"4")]]


def test_a_property_that_is_null() -> None:
    given = pa.array([None, [], [("a", "1")], [("b", "2"), ("c", None)]], PAIRS)
    error = refused({"__messageProperties": given.slice(1)})
    assert error.context == {"row": 2, "column": "__messageProperties"}
    assert error.message == "column __messageProperties of a row has a property that is NULL"


def test_a_property_that_is_null_outside_of_a_slice() -> None:
    given = pa.array([[("a", None)], [("b", "2")], [("c", None)]], PAIRS)
    assert columns("__messageProperties", given.slice(1, 1)).properties(0) == [(b"b", b"2")]


# -- times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "value", "millis"),
    [
        ("s", 1_700_000_000, 1_700_000_000_000),
        ("ms", 1_700_000_000_123, 1_700_000_000_123),
        ("us", 1_700_000_000_123_999, 1_700_000_000_123),
        ("ns", 1_700_000_000_123_999_999, 1_700_000_000_123),
        ("us", 1_000, 1),
        ("ns", (1 << 63) - 1, ((1 << 63) - 1) // 1_000_000),
        ("us", (1 << 63) - 1, ((1 << 63) - 1) // 1_000),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "+05:30"])
def test_times_of_each_unit_and_zone(unit: Any, value: int, millis: int, zone: str) -> None:
    array = pa.array([5, None, value], pa.timestamp(unit, zone)).slice(1)
    found = columns("__eventTime", array)
    assert found.events.tolist() == [0, millis]
    assert columns("__deliverAt", array).deliver.tolist() == [NOT_DELAYED, millis]


def test_a_zone_does_not_move_a_time() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5))
    at = datetime.datetime(2024, 1, 1, 5, tzinfo=zone)
    found = columns("__eventTime", [at], pa.timestamp("us", "+05:00"))
    assert found.events.tolist() == [1_704_067_200_000]


@pytest.mark.parametrize("name", ["__eventTime", "__deliverAt"])
@pytest.mark.parametrize("value", [0, 1, 999, -1, -1_000, -1_700_000_000_000_000])
def test_times_before_1970(name: str, value: int) -> None:
    """0 is how a message says that it has none; the protocol's are unsigned."""
    error = refused({name: pa.array([None, 5_000, value], TIMESTAMP)})
    assert error.context == {"row": 2, "column": name}
    assert "is not after 1970-01-01" in error.message


def test_flags() -> None:
    found = columns("__tombstone", [True, None, False])
    assert found.tombstones.tolist() == [True, False, False]
    assert found.tombstones.dtype == np.bool_
