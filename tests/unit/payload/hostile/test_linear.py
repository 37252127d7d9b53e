"""No payload costs more than linear time: eight times the bytes, about eight times the time."""

import time
import timeit
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from reader.kernels.byte_spans import ByteSpans
from reader.payload import PayloadDecoder
from tests.unit.payload.cases import Given, decoder, key_value
from tests.unit.payload.hostile.amplified import zigzag
from tests.unit.payload.protobuf_cases import native, proto_file, sized

# 8 would be linear, 64 quadratic.
TIMES, MOST = 8, 28
Make = Callable[[int], bytes]


def seconds(call: Callable[[], object]) -> float:
    """Return processor time, without Python's collector (as ``timeit`` measures), which goes
    through everything that other tests left in the process.
    """
    return timeit.Timer(call, timer=time.process_time).timeit(number=1)


def least_seconds(call: Callable[[], object]) -> float:
    """Return the shortest of several runs: a busy machine makes a run longer, never shorter."""
    return min(seconds(call) for _ in range(4))


def is_below(many: Callable[[], object], limit: float) -> bool:
    """Return whether a run of several takes below so many seconds, and 5 ms."""
    return any(seconds(many) < limit + 0.005 for _ in range(6))


def decodes(made: PayloadDecoder, payload: bytes) -> Callable[[], object]:
    spans = ByteSpans.of(pa.array([payload], pa.large_binary()))
    return lambda: made.decode(spans, np.zeros(1, np.int64))


def is_linear(made: PayloadDecoder, make: Make, size: int, most: int = MOST) -> None:
    """``make(n)`` is a payload of about n bytes."""
    decodes(made, make(100))()
    limit = most * least_seconds(decodes(made, make(size)))
    assert is_below(decodes(made, make(TIMES * size)), limit)


JSON: Given = ("JSON", {"type": "record", "name": "R", "fields": [
    {"name": "s", "type": ["null", "string"]},
    {"name": "d", "type": ["null", "double"]},
    {"name": "e", "type": ["null", {"type": "bytes", "logicalType": "decimal",
                                    "precision": 10, "scale": 2}]},
    {"name": "u", "type": ["null", "long", {"type": "array", "items": ["long", "string"]},
                           {"type": "map", "values": "string"}]},
    {"name": "l", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
    {"name": "m", "type": ["null", {"type": "map", "values": "long"}]},
    {"name": "r", "type": ["null", "R"]},
]})  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"[" * 257 + b'"' + b'\\"' * (n // 2),  # 32 kB took 8.5 s
        lambda n: b"[" * 257 + b'"' + b"\\" * n,
        lambda n: b"[" * 257 + b'"' * n,
        lambda n: b"[" * n,
        lambda n: b'{"s":' * (n // 5),
        lambda n: b'{"s":"' + b"\\" * n,
        lambda n: b'{"s":"' + b"\\u" * (n // 2) + b'"}',
        lambda n: b'{"s":"' + b"\\ud83d" * (n // 6) + b'"}',
        lambda n: b'{"s":"' + b"\xc3\xa4" * (n // 2) + b'"}',
        lambda n: b'{"s":"' + b"\xc3" * n + b'"}',
        lambda n: b'{"d":' + b"1" * n + b"}",
        lambda n: b'{"d":0.' + b"3" * n + b"e" + b"9" * n + b"}",
        lambda n: b'{"e":' + b"1" * n + b"e-" + b"9" * n + b"}",
        lambda n: b'{"e":1e' + b"0" * n + b"}",
        lambda n: b'{"u":[' + b"1," * (n // 2) + b"{}]}",
        lambda n: b'{"u":{' + b",".join(b'"%d":""' % i for i in range(n // 10)) + b',"x":1}}',
        lambda n: b'{"l":[' + b"1," * (n // 2) + b'"x"]}',
        lambda n: b'{"r":{"s":[' + b"1," * (n // 2) + b"1]}}",
        lambda n: b'{"s":"x"' + b',"s":"x"' * (n // 8) + b"}",
        lambda n: b'{"s":"x"' + b',"t":"x"' * (n // 8) + b"}",
        lambda n: b'{"\\u0073":"x"' + b',"s":"x"' * (n // 8) + b"}",
        lambda n: b"{" + b",".join(b'"k%d":0' % i for i in range(n // 10)) + b"}",
        lambda n: b'{"m":{' + b",".join(b'"k%d":0' % i for i in range(n // 10)) + b"}}",
        lambda n: b" " * n,
        lambda n: b'{"s":1' + b"\n" * n + b"x",
        lambda n: b'{"u":' + b"[" * 200 + b"1," * (n // 2),
    ],
)
def test_json(make: Make) -> None:
    is_linear(decoder(JSON), make, 16_000)


AVRO: Given = ("AVRO", {"type": "record", "name": "R", "fields": [
    {"name": "n", "type": {"type": "array", "items": "null"}},
    {"name": "m", "type": {"type": "map", "values": "null"}},
    {"name": "l", "type": {"type": "array", "items": {"type": "array", "items": "null"}}},
    {"name": "s", "type": "string"},
    {"name": "r", "type": ["null", "R"]},
]})  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda n: zigzag(1) * n + b"\0" * 6,
        lambda n: zigzag(-1) + b"\0" + (zigzag(-1) + b"\0") * (n // 2) + b"\0" * 6,
        lambda n: zigzag(100) * (n // 2) + b"\0" * 6,
        lambda n: b"\0" + zigzag(n // 6) + b"".join(b"\x0a%05d" % i for i in range(n // 6)) + b"\0",
        lambda n: b"\0" + zigzag(n) + b"\0" * n,
        lambda n: b"\0\0" + zigzag(n) + b"\0" * n + b"\0" * 3,
        lambda n: b"\0\0" + (zigzag(1) + zigzag(1) * 9 + b"\0") * (n // 11) + b"\0" * 3,
        lambda n: b"\0\0\0" + zigzag(n) + b"\xc3\xa4" * (n // 2) + b"\0",
        lambda n: b"\0\0\0\0\2" + zigzag(1) * n + b"\0" * 6,
        lambda n: b"\0\0\0\0\2" * (n // 5),
        lambda n: b"\0\0\0\0\2\0\0\0" + zigzag(n) + b"\1" * n + b"\0",
        lambda n: b"\x80" * n,
    ],
)  # fmt: skip
def test_avro(make: Make) -> None:
    is_linear(decoder(AVRO), make, 16_000)


PROTOBUF = native(
    proto_file(
        {"message M": ["repeated M a = 1", "M o = 2", "map<uint64, M> m = 3",
                       "repeated int64 i = 4", "string s = 5", "map<string, int32> t = 6"],
         "message W": [*(f"repeated M w{i} = {i + 1}" for i in range(90))]},
        syntax="proto2",
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda n: b"\x0a\0" * (n // 2),
        lambda n: b"\x12\0" * (n // 2),
        lambda n: b"\x0b" * n,
        lambda n: b"\x0b\x0c" * (n // 2),
        lambda n: b"\xa3\x06" * (n // 2),
        lambda n: b"\xa3\x06\xa4\x06" * (n // 4),
        lambda n: b"\xa0\x06\1" * (n // 3),
        lambda n: sized(4, b"\1" * n),
        lambda n: b"\x20\1" * (n // 2),
        lambda n: sized(5, b"\xff" * n),
        lambda n: sized(5, b"a" * n) + b"\x2a\0",
        lambda n: b"".join(sized(6, sized(1, b"%07d" % i)) for i in range(n // 12)),
        lambda n: b"".join(sized(3, b"\x08" + zigzag(i << 24)) for i in range(n // 12)),
        lambda n: b"\x80" * n,
    ],
)  # fmt: skip
def test_protobuf(make: Make) -> None:
    is_linear(decoder(PROTOBUF), make, 16_000)


def test_key_values() -> None:
    made = decoder(key_value(("STRING", ""), JSON))
    is_linear(made, lambda n: b"\0\0\0\1a" + n.to_bytes(4, "big") + b"[" * n, 16_000)
    is_linear(made, lambda n: n.to_bytes(4, "big") + b"\xff" * n + b"\xff" * 4, 16_000)


@cache
def colliding(count: int) -> list[bytes]:
    """Keys with one place in a table of FNV-1a, whatever its size is up to four times as many."""
    bits = np.uint64(4 * count - 1)
    last = np.arange(10_000, dtype=np.uint64)
    digits = [
        last // np.uint64(10**power) % np.uint64(10) + np.uint64(0x30) for power in (3, 2, 1, 0)
    ]
    found: list[bytes] = []
    for first in range(10_000):
        mark = 14695981039346656037
        for digit in b"%04d" % first:
            mark = (mark ^ digit) * 1099511628211 % (1 << 64)
        marks = np.full(len(last), mark, np.uint64)
        for digit_of in digits:
            marks = (marks ^ digit_of) * np.uint64(1099511628211)
        same = (marks ^ (marks >> np.uint64(29))) & bits == 0
        found += [b"%04d%04d" % (first, i) for i in np.flatnonzero(same).tolist()]
        if len(found) >= count:
            break
    return found[:count]


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_keys_that_are_made_to_collide(kind: str) -> None:
    """Anyone can compute keys with one hash, and each would be compared with each."""
    keys = colliding(2048)
    maps = {"type": "array", "items": {"type": "map", "values": "int"}}
    made = decoder((kind, {"type": "record", "name": "R", "fields": [{"name": "m", "type": maps}]}))

    def make(n: int) -> bytes:
        some = keys[: min(n, len(keys))]
        if kind == "JSON":
            one = b"{" + b",".join(b'"%s":1' % key for key in some) + b"}"
            return b'{"m":[' + b",".join([one] * 20) + b"]}"
        one = zigzag(len(some)) + b"".join(b"\x10" + key + b"\2" for key in some) + b"\0"
        return zigzag(20) + one * 20 + b"\0"

    assert not made.decode(ByteSpans.of(pa.array([make(9)], pa.large_binary())),
                           np.zeros(1, np.int64)).problems  # fmt: skip
    # Five times as long; 40 times, if each is compared with each.
    is_linear(made, make, len(keys) // TIMES, most=16)


def test_many_members_that_a_message_does_not_name() -> None:
    """Each key was compared with each member of its object."""

    def made(members: int) -> PayloadDecoder:
        fields = [{"name": f"member{i:05}", "type": ["null", "int"]} for i in range(members)]
        return decoder(("JSON", {"type": "record", "name": "R", "fields": fields}))

    def unknown(keys: int) -> bytes:
        return b"{" + b",".join(b'"unknown%05d":1' % i for i in range(keys)) + b"}"

    # A column takes its time in each call, whatever the payload names.
    wide = made(2000)
    few, many = decodes(made(50), unknown(20_000)), decodes(wide, unknown(20_000))
    columns_alone = decodes(wide, unknown(1))
    few(), many(), columns_alone()
    assert is_below(many, least_seconds(columns_alone) + 10 * least_seconds(few))
