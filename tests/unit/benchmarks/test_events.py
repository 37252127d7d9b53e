"""The benchmarks' rows: the same from the same seed, and the same in both encodings."""

import io
import json

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from benchmarks.data.encode import as_avro, as_json
from benchmarks.data.events import EVENT, READING, Kind, entropy

KINDS = pytest.mark.parametrize("kind", [EVENT, READING], ids=["event", "reading"])


def table(kind: Kind, rows: int, seed: int = 7) -> pa.Table:
    return pa.Table.from_batches(kind.batches(rows, seed))


@KINDS
def test_the_same_seed_makes_the_same_rows(kind: Kind) -> None:
    rows = table(kind, 300)
    assert rows == table(kind, 300)
    assert rows != table(kind, 300, seed=8)
    assert rows["id"].to_pylist() == list(range(300))
    assert rows.schema.names == [field["name"] for field in kind.schema["fields"]]


@KINDS
def test_fewer_rows_are_the_beginning_of_more(kind: Kind) -> None:
    assert table(kind, 25_000).slice(0, 300) == table(kind, 300)


@KINDS
def test_both_encodings_hold_the_rows(kind: Kind) -> None:
    [rows] = kind.batches(500, 7)
    expected = rows.to_pylist()
    assert [json.loads(one) for one in as_json(rows).to_pylist()] == expected
    parsed = fastavro.parse_schema(kind.schema)
    avro = as_avro(rows, kind.schema).to_pylist()
    assert [fastavro.schemaless_reader(io.BytesIO(one), parsed, None) for one in avro] == expected


def test_avro_integers_of_every_length() -> None:
    numbers = [0, -1, 63, 64, -64, -65, 2**31, -(2**31), 2**63 - 1, -(2**63)]
    schema = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}
    parsed = fastavro.parse_schema(schema)
    rows = pa.record_batch({"n": pa.array(numbers)})
    read = [
        fastavro.schemaless_reader(io.BytesIO(one), parsed, None)
        for one in as_avro(rows, schema).to_pylist()
    ]
    assert read == [{"n": number} for number in numbers]


@pytest.mark.parametrize(("kind", "least", "most"), [(EVENT, 430, 470), (READING, 105, 125)])
def test_payloads_are_as_long_as_the_benchmarks_say(kind: Kind, least: int, most: int) -> None:
    [rows] = kind.batches(1_000, 7)
    sizes = [len(one) for one in as_json(rows).to_pylist()]
    assert least < float(np.mean(sizes)) < most


def test_entropy_in_bits() -> None:
    columns = {"same": [1] * 64, "coin": [0, 1] * 32, "id": list(range(64))}
    assert entropy(pa.record_batch(columns)) == pytest.approx({"same": 0, "coin": 1, "id": 6})
