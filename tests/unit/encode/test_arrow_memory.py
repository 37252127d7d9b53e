"""Arrays as they come: slices at any bit, foreign buffers at any address, validity or none."""

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reader.encode.payload import new_schema
from tests.unit.encode.writing import payloads
from tests.unit.payload.cases import Given

STRUCT = pa.struct([("x", pa.int32()), ("t", pa.string())])
COLUMNS = pa.schema(
    [
        ("i", pa.int64()),
        ("b", pa.bool_()),
        ("f", pa.float32()),
        ("s", pa.string()),
        ("ls", pa.large_string()),
        ("raw", pa.binary()),
        ("d", pa.decimal128(20, 3)),
        ("st", STRUCT),
        ("l", pa.list_(pa.int16())),
        ("ll", pa.large_list(STRUCT)),
        ("m", pa.map_(pa.string(), pa.list_(pa.bool_()))),
        ("some", pa.int64()),
    ]
)
COUNT = 700


def rows_of(seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return value if rng.randrange(4) else None

    def struct() -> Any:
        return maybe({"x": maybe(rng.randrange(100)), "t": maybe("t" * rng.randrange(40))})

    return [
        {
            "i": maybe(rng.randrange(-(1 << 63), 1 << 63)),
            "b": maybe(rng.random() < 0.5),
            "f": maybe(float(rng.randrange(1000)) / 8),
            "s": maybe("ä" * rng.randrange(20)),
            "ls": maybe('"' * rng.randrange(5)),
            "raw": maybe(rng.randbytes(rng.randrange(9))),
            "d": maybe(Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-3)),
            "st": struct(),
            "l": maybe([maybe(rng.randrange(9)) for _ in range(rng.randrange(5))]),
            "ll": maybe([struct() for _ in range(rng.randrange(4))]),
            "m": maybe([(str(i), maybe([maybe(True)])) for i in range(rng.randrange(4))]),
            "some": i,
        }
        for i in range(COUNT)
    ]


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows_of(3), COLUMNS)


def given_of(kind: str) -> Given:
    made = new_schema(COLUMNS, kind)
    return made.type, made.definition


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_slices(kind: str, batch: pa.RecordBatch) -> None:
    given = given_of(kind)
    whole = payloads(given, batch)
    assert len(set(whole)) == COUNT
    for start in (1, 7, 8, 9, 63, 64, 65, 511, 699):
        for size in (1, 8, 70):
            part = batch.slice(start, size)
            assert payloads(given, part) == whole[start : start + size]
            # A slice of a slice, whose children are slices as well.
            assert payloads(given, part.slice(1, 3)) == whole[start + 1 : start + size][:3]
    order = list(range(COUNT))
    random.Random(1).shuffle(order)
    assert payloads(given, batch.take(pa.array(order))) == [whole[i] for i in order]
    assert payloads(given, batch.slice(5, 0)) == []


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
@pytest.mark.parametrize("shift", range(8))
def test_memory_at_any_address(kind: str, shift: int, batch: pa.RecordBatch) -> None:
    """As it comes from a stream whose messages are not aligned."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, COLUMNS) as stream:
        stream.write_batch(batch.slice(13, 200))
    raw = b"x" * shift + sink.getvalue().to_pybytes()
    moved = pa.py_buffer(raw).slice(shift)
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.Any)
    read = pa.ipc.open_stream(moved, options=options).read_next_batch()
    assert payloads(given_of(kind), read) == payloads(given_of(kind), batch)[13:213]


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_a_bitmap_without_a_null(kind: str, batch: pa.RecordBatch) -> None:
    full = batch.filter(pc.is_valid(batch.column("i")))
    assert full.column("i").null_count == 0
    without = pa.record_batch(
        [pa.array(full.column("i").to_pylist(), pa.int64()), *full.columns[1:]], schema=COLUMNS
    )
    assert payloads(given_of(kind), full) == payloads(given_of(kind), without)
