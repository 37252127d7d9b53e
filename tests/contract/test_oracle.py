"""Messages and schemas of common kinds against the Java client."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from testbed.oracle import Json
from tests.contract.against_java import Contract
from tests.contract.test_sources import Row

FAR = 4_102_444_800_000  # 2100-01-01, in ms

# --- keys, nulls, times ---

KEYS: list[Json] = [
    {"value": b"no key"},
    {"value": b"null key", "key": None},
    {"value": b"empty key", "key": ""},
    {"value": b"key", "key": "k"},
    {"value": b"key", "key": "schlüssel \U0001f680"},
    {"value": b"bytes", "key_bytes": b"\x00\xff"},
    {"value": b"empty bytes", "key_bytes": b""},
    {"value": b"ordering", "ordering_key": b"o"},
    {"value": b"both", "key": "k", "ordering_key": b"o"},
    {"value": None},
    {"value": None, "key": "k"},
    {"value": None, "key": ""},
    {"value": b""},
    {"value": b"", "key": "k"},
    {"value": b"properties", "properties": {"a": "", "": "b", "ü": "ö"}},
    {"value": b"times", "event_time": 1},
    {"value": b"times", "event_time": 1_700_000_000_123},
    {"value": b"sequence", "sequence_id": 1000},
    {"value": b"sequence", "sequence_id": 2000},
]


@pytest.mark.parametrize(
    ("batch", "compression"),
    [
        *((0, kind) for kind in ("NONE", "LZ4", "ZSTD")),
        *((2, kind) for kind in ("ZLIB", "SNAPPY")),
        (100, "NONE"),
        *(pytest.param(0, kind, marks=pytest.mark.long) for kind in ("ZLIB", "SNAPPY")),
        *(pytest.param(2, kind, marks=pytest.mark.long) for kind in ("NONE", "LZ4", "ZSTD")),
        pytest.param(1, "LZ4", marks=pytest.mark.long),
    ],
)
def test_keys_and_nulls(contract: Contract, topic_name: str, batch: int, compression: str) -> None:
    contract.oracle.write(topic_name, KEYS, batch=batch, compression=compression, producer="größe")
    assert len(contract.holds(topic_name)) == len(KEYS)


@pytest.mark.parametrize("batch", [0, 2])
def test_ordering_keys_that_are_no_text(contract: Contract, topic_name: str, batch: int) -> None:
    keys = [b"\xff\x00", b"", b"o", b"\x80"]
    messages = [{"value": b"x", "ordering_key": key} for key in keys]
    contract.oracle.write(topic_name, messages, batch=batch)
    assert len(contract.holds(topic_name)) == len(keys)


def test_deliver_at(contract: Contract, topic_name: str) -> None:
    messages = [{"value": b"x", "deliver_at": at} for at in (1, 1_700_000_000_123, FAR)]
    contract.oracle.write(topic_name, [*messages, {"value": b"now"}])
    assert len(contract.holds(topic_name)) == 4


def test_partitions(contract: Contract, topic_name: str) -> None:
    contract.admin.create_topic(topic_name, 3)
    for batch in (0, 4):
        messages = [{"value": str(n).encode(), "key": f"k{n}"} for n in range(40)]
        contract.oracle.write(topic_name, messages, batch=batch)
    assert len(contract.holds(topic_name)) == 80


# --- primitive schemas ---


def _identity(value: Any) -> Any:
    return value


def _milliseconds(value: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=value)


def _time_nanos(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, *seconds = map(int, clock.split(":"))
    whole = hours * 3600 + minutes * 60 + sum(seconds)
    return whole * 10**9 + int(fraction.ljust(9, "0"))


def _nanos(text: str) -> int:
    day, _, clock = text.removesuffix("Z").partition("T")
    days = (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days
    return days * 86_400 * 10**9 + _time_nanos(clock)


PRIMITIVES: list[tuple[str, list[Any], Callable[[Any], Any]]] = [
    ("STRING", ["", "a", "Grüße \U0001f680", "line\nbreak", "x" * 10_000], _identity),
    ("BOOLEAN", [True, False], _identity),
    ("INT8", [0, 1, -1, 127, -128], _identity),
    ("INT16", [0, -1, 2**15 - 1, -(2**15)], _identity),
    ("INT32", [0, -1, 2**31 - 1, -(2**31)], _identity),
    ("INT64", [0, -1, 2**63 - 1, -(2**63)], _identity),
    ("FLOAT", [0.0, -0.0, 1.5, 0.1, "NaN", "Infinity", "-Infinity"], float),
    ("DOUBLE", [0.0, -0.0, 1.5, 0.1, 5e-324, 1e308, "NaN", "Infinity", "-Infinity"], float),
    ("DATE", [0, 86_400_000, 1_700_000_000_123, -1], _milliseconds),
    ("TIMESTAMP", [0, 1_700_000_000_123, -1], _milliseconds),
    ("TIME", [0, 1, 86_399_999], lambda value: value * 1000),
    (
        "INSTANT",
        [
            "1970-01-01T00:00:00Z",
            "2023-11-14T22:13:20.123456789Z",
            "1969-12-31T23:59:59.999999999Z",
        ],
        _nanos,
    ),
    ("LOCAL_DATE", ["1970-01-01", "2024-02-29", "1582-10-04"], dt.date.fromisoformat),
    ("LOCAL_TIME", ["00:00", "23:59:59.999999999", "10:11:12"], _time_nanos),
    (
        "LOCAL_DATE_TIME",
        ["1970-01-01T00:00", "2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999"],
        _nanos,
    ),
]


# Those that are like another one: tests/contract/written has each, too.
ALIKE = ("INT16", "INT32", "FLOAT", "TIME", "DATE", "LOCAL_DATE")


@pytest.mark.parametrize("batch", [100], ids=["batched"])
@pytest.mark.parametrize(
    ("kind", "values", "ours"),
    [
        pytest.param(*one, id=one[0], marks=pytest.mark.long if one[0] in ALIKE else ())
        for one in PRIMITIVES
    ],
)
def test_primitives(
    contract: Contract,
    topic_name: str,
    kind: str,
    values: list[Any],
    ours: Callable[[Any], Any],
    batch: int,
) -> None:
    def payload(java: Json, _: Row) -> Row:
        assert "value_error" not in java
        return {"value": None if java["null"] else ours(java["value"])}

    messages = [{"value": value} for value in [*values, None]]
    contract.oracle.write(topic_name, messages, {"type": kind}, batch=batch)
    assert len(contract.holds(topic_name, payload, offloaded_twice=False)) == len(messages)


# --- records ---


def record(*fields: Json) -> Json:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


def optional(name: str, kind: Any) -> Json:
    return {"name": name, "type": ["null", kind], "default": None}


FIRST = record({"name": "id", "type": "long"}, optional("name", "string"))
SECOND = record(*FIRST["fields"], optional("price", "double"))
THIRD = record(
    {"name": "id", "type": "long"},
    optional("price", "double"),
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    optional(
        "address",
        {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]},
    ),
)


def fields(java: Json, ours: Row) -> Row:
    """Columns of the record; a field that the writer's schema does not have is NULL."""
    assert "value_error" not in java
    value: Row = java["value"] or {}
    assert value.keys() <= ours.keys()
    return {name: value.get(name) for name in ours}


KINDS_AND_BATCHES = pytest.mark.parametrize(
    ("kind", "batch"),
    [
        ("AVRO", 3),
        ("JSON", 0),
        pytest.param("AVRO", 0, marks=pytest.mark.long),
        pytest.param("JSON", 3, marks=pytest.mark.long),
    ],
)


def tagged(kind: str, name: str, value: Any) -> Any:
    """Avro's JSON encoding of a union's member."""
    return {name: value} if kind == "AVRO" and value is not None else value


@KINDS_AND_BATCHES
def test_schema_versions(contract: Contract, topic_name: str, kind: str, batch: int) -> None:
    oracle = contract.oracle
    address = "shop.Address"

    def values(version: int, numbers: Iterable[int]) -> list[Json]:
        found = []
        for n in numbers:
            value: Json = {"id": n}
            if version < 3:
                value["name"] = tagged(kind, "string", [None, "", f"n{n} ü"][n % 3])
            if version > 1:
                value["price"] = tagged(kind, "double", [None, 0.5, -1e300][n % 3])
            if version > 2:
                value["tags"] = ["a"] * (n % 3)
                value["address"] = tagged(kind, address, [None, {"street": "x"}][n % 2])
            found.append({"value": value, "key": f"k{n}"})
        return [*found, {"value": None, "key": "k"}]

    schemas = [{"type": kind, "definition": one} for one in (FIRST, SECOND, THIRD)]
    for version, schema in enumerate(schemas, 1):
        oracle.write(topic_name, values(version, range(7)), schema, batch=batch)
        if version == 2:
            contract.admin.seal(topic_name)
    # Old writers are still there, and one producer writes all versions.
    oracle.write(topic_name, values(1, range(7, 9)), schemas[0], batch=batch)
    mixed = [
        {**values(n % 3 + 1, [n])[0], "schema": schemas[n % 3]} for n in (0, 1, 2, 3, 3, 4, 5, 5)
    ]
    oracle.write(topic_name, mixed, schemas[2], batch=batch)
    java = contract.holds(topic_name, fields)
    assert {row["schema_version"] for row in java.values()} == {0, 1, 2}


@KINDS_AND_BATCHES
def test_auto_produce(contract: Contract, topic_name: str, kind: str, batch: int) -> None:
    """Bytes that were encoded before, beside a producer with the schema."""
    oracle = contract.oracle
    schema = {"type": kind, "definition": FIRST}
    values = [{"id": n, "name": tagged(kind, "string", f"n{n}")} for n in range(4)]
    oracle.write(topic_name, [{"value": value} for value in values], schema, batch=batch)
    encoded = [base64.b64decode(row["data"]) for row in oracle.read(topic_name)]
    automatic = {"type": "AUTO_PRODUCE"}
    oracle.write(topic_name, [{"value": one} for one in encoded], automatic, batch=batch)
    java = contract.holds(topic_name, fields)
    assert [row["value"]["id"] for row in java.values()] == [*range(4), *range(4)]
