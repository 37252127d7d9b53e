"""Few bytes that would become many: by name, a schema and payloads of it.

As a program it decodes the payloads of the names that are its arguments, and prints of each by how
many bytes the process's peak of memory has risen since the first.
"""

import json
import os
import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.payload import PayloadDecoder
from testbed.usage import peak_bytes
from tests.unit.payload.cases import Given, decoder
from tests.unit.payload.protobuf_cases import native, proto_file, sized

Case = tuple[Given, list[bytes]]


def zigzag(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def _record(*types: object) -> dict[str, object]:
    fields = [{"name": f"f{i}", "type": kind} for i, kind in enumerate(types)]
    return {"type": "record", "name": "R", "fields": fields}


def _wide(count: int, kind: object = ("null", "long")) -> dict[str, object]:
    return {"type": "record", "name": "W",
            "fields": [{"name": f"w{i}", "type": kind} for i in range(count)]}  # fmt: skip


def _array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def _nulls() -> Case:
    """65,536 items of no byte, in four bytes; and in blocks of half of what a message may be."""
    few = zigzag(1600) * 2 + b"\0"
    return ("AVRO", _record(_array("null"))), [zigzag(65536) + b"\0", few] * 2500


def _nested_nulls() -> Case:
    """Items of no byte are most of what is let through for each byte."""
    item = _record(_array("null"))
    one = zigzag(150) + b"\0"
    return ("AVRO", _record(_array(item))), [zigzag(5000) + one * 5000 + b"\0"] * 60


def _wide_items() -> Case:
    """An item of a byte is 201 values."""
    item = _wide(200, "null")
    item["fields"] = [{"name": "b", "type": "boolean"}, *item["fields"]]  # type: ignore[misc]
    return ("AVRO", _record(_array(item))), [zigzag(n) + b"\1" * n + b"\0" for n in (9, 999)] * 200


def _symbols() -> Case:
    enum = {"type": "enum", "name": "E", "symbols": ["S" * 4000]}
    return ("AVRO", _record(_array(enum))), [zigzag(30_000) + b"\0" * 30_001] * 10


def _zeros() -> Case:
    """A decimal of a byte is 4,000 digits."""
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 4000, "scale": 3999}
    return ("AVRO", _record(_array(wide))), [zigzag(20_000) + b"\2\1" * 20_000 + b"\0"] * 10


def _empty_objects() -> Case:
    """90 kB of [{},{},…] over 500 optional fields."""
    items = b'{"f0":[' + b",".join([b"{}"] * 30_000) + b"]}"
    few = b'{"f0":[' + b",".join([b'{"w1":1}'] * 500) + b"]}"
    return ("JSON", _record(_array(_wide(500)))), [items, few] * 8


def _sparse_rows() -> Case:
    return ("JSON", _wide(600)), [b'{"w1":1}'] * 130_000


def _deferred() -> Case:
    """What only Python reads: its values take more than columns do."""
    union = ["null", "long", _array("long")]
    number = b'{"f0":[' + b"1," * 400_000 + b"1]}"
    empty = b'{"f0":' + b"[" * 100 + b"],[" * 900_000 + b"]" * 100 + b"}"
    return ("JSON", _record(union)), [number, empty]


def _empty_messages() -> Case:
    file = proto_file({"message W": [f"int64 w{i} = {i + 1}" for i in range(500)],
                       "message M": ["repeated W l = 1"]})  # fmt: skip
    return native(file), [b"\x0a\0" * 200_000, b"\x0a\2\x08\1" * 900, b"\x0a\0" * 9] * 8


def _wide_within_itself() -> Case:
    """The messages within a message become text."""
    file = proto_file({"message M": ["repeated M l = 1", *(f"double w{i} = {i + 2}"
                                                           for i in range(2000))]})  # fmt: skip
    return native(file), [sized(1, b"\x0a\0" * n) for n in (100_000, 9)]


def _packed() -> Case:
    size = 1_500_000
    packed = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    return native(proto_file({"message M": ["repeated int64 l = 1"]})), [packed + b"\1" * size] * 4


CASES: dict[str, Callable[[], Case]] = {
    make.__name__[1:]: make
    for make in (
        _nulls, _nested_nulls, _wide_items, _symbols, _zeros, _empty_objects, _sparse_rows,
        _deferred, _empty_messages, _wide_within_itself, _packed,
    )
}  # fmt: skip


def decode_all(made: PayloadDecoder, payloads: list[bytes]) -> tuple[int, int, int]:
    """(calls, bytes of columns, problems)."""
    spans = ByteSpans.of(pa.array(payloads, pa.large_binary()))
    at = calls = size = problems = 0
    while at < len(payloads):
        rest = spans.take(np.arange(at, len(payloads)))
        found = made.decode(rest, np.zeros(len(rest), np.int64))
        assert found.count > 0
        assert {len(array) for array in found.arrays.values()} == {found.count}
        size += sum(array.nbytes for array in found.arrays.values())
        problems += len(found.problems)
        at, calls = at + found.count, calls + 1
    return calls, size, problems


def main(names: list[str]) -> None:
    before = 0
    for name in names:
        schema, payloads = CASES[name]()
        made = decoder(schema)
        decode_all(made, [payload[:100] for payload in payloads[:2]])
        before = before or peak_bytes(os.getpid())
        calls, size, problems = decode_all(made, payloads)
        peak = peak_bytes(os.getpid()) - before
        print(json.dumps({"name": name, "payload": sum(map(len, payloads)), "columns": size,
                          "peak": peak, "calls": calls, "problems": problems,
                          "messages": len(payloads)}))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
