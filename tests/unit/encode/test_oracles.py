"""The bytes, as others read them: fastavro and json. Memory beyond them stays as it is."""

import io
import json
import random
import string
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from reader.encode.payload.row_writer import blocks
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Block, Spans
from tests.unit.encode.writing import again, as_json, avro, column, payloads
from tests.unit.payload.test_types import decimal, logical, named

NESTED = named({"a": ["null", "int"], "l": {"type": "array", "items": ["null", "string"]}}, "S")
STRUCT = pa.struct([("a", pa.int64()), ("l", pa.list_(pa.string()))])


def read_avro(schema: str, payload: bytes) -> Any:
    source = io.BytesIO(payload)
    found = fastavro.schemaless_reader(source, fastavro.parse_schema(json.loads(schema)), None)
    assert source.read() == b""
    return found


@pytest.mark.parametrize(
    ("kind", "arrow", "values"),
    [
        ("long", pa.int64(), [0, -1, 63, 64, -65, 1 << 62, -(1 << 63)]),
        ("double", pa.float64(), [0.1, -0.0, 1e300, 2.0]),
        ("string", pa.string(), ["", "a\"\\\n\t\r\b\f\0\x1f\x7f/", "ä€😀" * 20, "x" * 200]),
        (["null", "boolean"], pa.bool_(), [True, None, False]),
        ({"type": "map", "values": NESTED}, pa.map_(pa.string(), STRUCT),
         [{"k": {"a": 1, "l": ["x", None]}, "": {"a": None, "l": []}}, {}]),
        ({"type": "array", "items": {"type": "array", "items": "long"}},
         pa.list_(pa.list_(pa.int64())), [[[1], [], [2, 3]], []]),
        (["null", NESTED], STRUCT, [None, {"a": None, "l": ["y"]}]),
    ],
)  # fmt: skip
def test_plain_values(kind: Any, arrow: pa.DataType, values: list[Any]) -> None:
    pairs = [list(v.items()) if isinstance(v, dict) and pa.types.is_map(arrow) else v
             for v in values]  # fmt: skip
    batch = column(pairs, arrow)
    given = avro(kind)
    assert [read_avro(str(given[1]), one or b"") for one in payloads(given, batch)] == [
        {"f0": value} for value in values
    ]
    found = [json.loads(one or b"") for one in payloads(as_json(given), batch)]
    assert [repr(one) for one in found] == [repr(_without_null({"f0": v})) for v in values]


def _without_null(value: Any) -> Any:
    """Of records, whose names are short here; a map's values are kept."""
    if isinstance(value, dict):
        record = value.keys() <= {"f0", "a", "l"}
        return {key: _without_null(item) for key, item in value.items()
                if not record or item is not None}  # fmt: skip
    return [_without_null(item) for item in value] if isinstance(value, list) else value


def test_decimals_have_no_byte_too_many() -> None:
    digits = [0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, -32768, 10**17, -(10**17),
              10**38 - 1, 1 - 10**38, 1 << 120]  # fmt: skip
    values = [Decimal(f"{one}E-3") for one in digits]
    batch = pa.record_batch([decimals(digits, 3)], names=["f0"])
    given = avro(decimal(38, 3))
    for one, payload in zip(digits, payloads(given, batch), strict=True):
        assert payload is not None
        # As Java's BigInteger: no byte for the sign alone.
        size = (one + (one < 0)).bit_length() // 8 + 1
        assert payload[1:] == one.to_bytes(size, "big", signed=True)
    texts = [json.loads(one or b"", parse_float=Decimal) for one in payloads(as_json(given), batch)]
    assert [one["f0"] for one in texts] == values
    assert all(b"E" not in (one or b"") for one in payloads(as_json(given), batch))


def decimals(unscaled: list[int], scale: int) -> pa.Array:
    raw = b"".join(one.to_bytes(16, "little", signed=True) for one in unscaled)
    kind = pa.decimal128(38, scale)
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(raw)])


def test_numbers_of_times_are_floored() -> None:
    kind = logical("long", "timestamp-millis")
    micros = [-1, 0, 999, 1000, -1000, -1001]
    batch = pa.record_batch([pa.array(micros).cast(pa.timestamp("us", "UTC"))], names=["f0"])
    assert payloads(as_json(avro(kind)), batch, json_times="numbers") == [
        f'{{"f0":{value // 1000}}}'.encode() for value in micros
    ]


def test_doubles_are_read_back_as_they_were() -> None:
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 1 << 63, 20_000, dtype=np.uint64) << np.uint64(1) >> np.uint64(1)
    values = np.concatenate([bits.view(np.float64), rng.random(5_000), np.arange(2000) * 1e13])
    values = values[np.isfinite(values)]
    given = as_json(avro("double"))
    found = payloads(given, pa.record_batch([pa.array(values)], names=["f0"]))
    back = [json.loads(one or b"")["f0"] for one in found]
    assert all(type(one) is float for one in back)
    assert np.array_equal(np.array(back).view(np.uint64), values.view(np.uint64))


def test_text_of_any_length_and_place() -> None:
    rng = random.Random(7)
    plain = string.ascii_letters + "äß€"
    texts = []
    for length in range(140):
        one = rng.choices(plain, k=length)
        for _ in range(rng.randrange(4) if length else 0):
            one[rng.randrange(length)] = rng.choice('"\\\n\x01\x1f\x00')
        texts.append("".join(one))
    for array in (pa.array(texts), pa.array(texts, pa.large_string())):
        found = payloads(as_json(avro("string")), pa.record_batch([array], names=["f0"]))
        assert found == [
            b'{"f0":%s}' % _jackson(text).encode() for text in texts
        ]  # fmt: skip


def _jackson(text: str) -> str:
    """Python's escapes have small letters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("\\u001f", "\\u001F")


@pytest.mark.parametrize("live", [None, [1, 0, 1]])
def test_nothing_is_written_beyond_the_bound(live: list[int] | None) -> None:
    """Of each kind of part, at the end of its memory."""
    rows = 3
    data = np.frombuffer(b'\x01"\\abcdefghijklmnopqrstuvwxyz' * 4, np.uint8)
    spans = Spans(data, np.array([0, 1, 3]), np.array([3, 100, 40]))
    most = np.array([-(1 << 63), (1 << 63) - 1, 0])
    for kind in range(k.ITEMS_TEXT + 1):
        for members in (False, True):
            mask = None if live is None else np.array(live, np.uint8)
            block = Block(rows, mask, members=members, suffix=b"::")
            values: Any = spans
            if kind in (k.ZIGZAG, k.VARINT, k.INTEGER_TEXT):
                values = most
            elif kind == k.RAW:
                values = np.arange(51, dtype=np.uint8).reshape(3, 17)
            elif kind == k.BOOLEAN_TEXT:
                values = np.array([1, 0, 0], np.uint8)
            valid = np.array([1, 1, 1], np.uint8)
            block.add(k.CONSTANT, prefix=b"", absent=b"no", valid=valid)
            block.add(kind, values, prefix=b"p" * 40, absent=b"a" * 41, brackets=b"[]",
                      counts=most if kind == k.COUNTED else None)  # fmt: skip
            bound = block.bound
            memory = np.full(bound + 64, 0xA5, np.uint8)
            with patch.object(blocks, "empty_bytes", lambda size, memory=memory: memory):
                used = len(block.write().data)
            assert 0 < used <= bound
            assert (memory[bound:] == 0xA5).all(), kind
            assert bytes(memory[:used]) == bytes(block.write().data)


def test_branches_that_differ_by_name_alone() -> None:
    enums = [{"type": "enum", "name": name, "symbols": ["A", "B"]} for name in ("E", "F")]
    members = pa.struct([("member0", pa.string()), ("member1", pa.string())])
    values = [{"member1": "B"}, {"member0": "A"}, {"member0": None}]
    found = payloads(avro([enums[0], "null", enums[1]]), column(values, members))
    assert found == [b"\x04\x02", b"\x00\x00", b"\x02"]


def test_decimals_of_kafka_connect_are_base64_in_json() -> None:
    connect = decimal(9, 2) | {"connect.name": "org.apache.kafka.connect.data.Decimal"}
    values = [Decimal("1.25"), Decimal("-327.68"), None]
    batch = column(values, pa.decimal128(9, 2))
    given = as_json(avro(["null", connect]))
    assert payloads(given, batch) == [b'{"f0":"fQ=="}', b'{"f0":"gAA="}', b"{}"]
    assert again(given, batch) == [{"f0": value} for value in values]


def test_null_items_and_values_of_json_are_null() -> None:
    lists = {"type": "array", "items": ["null", "string"]}
    maps = {"type": "map", "values": ["null", "int", "string"]}
    batch = pa.RecordBatch.from_pylist(
        [{"f0": [None, "a", None], "f1": [("x", None), ("y", {"member0": 1})]}, {}],
        pa.schema([("f0", pa.list_(pa.string())),
                   ("f1", pa.map_(pa.string(), pa.struct([("member0", pa.int64())])))]),
    )  # fmt: skip
    given = as_json(avro(["null", lists], ["null", maps]))
    assert payloads(given, batch) == [b'{"f0":[null,"a",null],"f1":{"x":null,"y":1}}', b"{}"]
