"""Any schemas with any values: what is read is written again, and others read it as it was."""

import json
import re
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.encode.payload import PayloadEncoder, new_schema
from reader.payload import payload_fields
from tests.support.examples import examples
from tests.unit.encode.test_oracles import read_avro
from tests.unit.encode.writing import encode, info
from tests.unit.payload.cases import (
    INT64,
    TEXT,
    WRITABLE,
    Given,
    Kind,
    Value,
    avro_bytes,
    decode,
    decoder,
    json_bytes,
    key_value,
    rows,
    shown,
    topics,
)
from tests.unit.payload.protobuf_cases import message_class, native
from tests.unit.payload.test_fuzz import messages, protobuf_files

BOUNDED = settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def sliced(data: st.DataObject, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows, as a slice of more: before and after them others."""
    more = data.draw(st.integers(0, len(batch)))
    longer = pa.Table.from_batches([batch.slice(more), batch, batch.slice(0, more)])
    whole = longer.combine_chunks().to_batches()[0] if len(longer) else batch
    return whole.slice(len(batch) - more, len(batch))


def written(given_: Given, batch: pa.RecordBatch) -> list[bytes | None]:
    found = encode(given_, batch).values
    return [found[i] for i in range(len(batch))]


def plain(schema: str) -> str:
    """Without times: Python has none for some of their numbers."""
    return re.sub(r'"logicalType": "(?!decimal)[a-z-]+"', '"x": 0', schema)


def as_batch(found: Any) -> pa.RecordBatch:
    return pa.record_batch(list(found.arrays.values()), names=list(found.arrays))


@BOUNDED
@given(topics(WRITABLE), st.data())
def test_avro(topic: tuple[Kind, list[Value]], data: st.DataObject) -> None:
    kind, values = topic
    schema = json.dumps(kind.schema)
    found = decode(decoder(("AVRO", schema)), [avro_bytes(kind.schema, v.avro) for v in values])
    assert not found.problems
    payloads = written(("AVRO", schema), sliced(data, as_batch(found)))
    again = decode(decoder(("AVRO", schema)), payloads)
    assert not again.problems
    assert repr(rows(again)) == repr(rows(found)) == repr([value.column for value in values])
    for payload, value in zip(payloads, values, strict=True):
        first = read_avro(plain(schema), avro_bytes(kind.schema, value.avro))
        assert read_avro(plain(schema), payload or b"") == first


@BOUNDED
@given(topics(WRITABLE), st.data())
def test_json(topic: tuple[Kind, list[Value]], data: st.DataObject) -> None:
    kind, values = topic
    schema = json.dumps(kind.schema)
    found = decode(decoder(("JSON", schema)), [json_bytes(value.json) for value in values])
    assert not found.problems
    payloads = written(("JSON", schema), sliced(data, as_batch(found)))
    for payload in payloads:
        json.loads(payload or b"")
    again = decode(decoder(("JSON", schema)), payloads)
    assert not again.problems
    assert repr(rows(again)) == repr(rows(found))


@BOUNDED
@given(topics(WRITABLE), topics(WRITABLE), st.sampled_from(["INLINE", "SEPARATED"]), st.data())
def test_key_value(
    one: tuple[Kind, list[Value]], other: tuple[Kind, list[Value]], encoding: str,
    data: st.DataObject,
) -> None:  # fmt: skip
    halves = [(json.dumps(kind.schema), values) for kind, values in (one, other)]
    (key, keys), (value, values) = halves
    given_ = key_value(("AVRO", key), ("JSON", value), encoding)
    columns = payload_fields([info(given_)])
    count = min(len(keys), len(values))
    parts = []
    for name, some in (("key", keys), ("value", values)):
        single = one[0] if name == "key" else other[0]
        made = decoder(("AVRO", json.dumps(single.schema)))
        found = decode(made, [avro_bytes(single.schema, v.avro) for v in some[:count]])
        mask = pa.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
        parts.append(pa.StructArray.from_arrays(
            list(found.arrays.values()), fields=list(columns.field(name).type), mask=mask
        ))  # fmt: skip
    batch = pa.record_batch(parts, names=["key", "value"])
    some_ = encode(given_, sliced(data, batch))
    bytes_of = [some_.values[i] for i in range(count)]
    keys_of = None if some_.keys is None else [some_.keys[i] for i in range(count)]
    again = decode(decoder(given_), bytes_of, 0, keys_of)
    assert not again.problems
    assert repr(shown(again.arrays["key"])) == repr(shown(batch.column(0)))
    assert repr(shown(again.arrays["value"])) == repr(shown(batch.column(1)))


@st.composite
def protobuf_topics(draw: st.DrawFn) -> tuple[descriptor_pb2.FileDescriptorProto, list[bytes]]:
    file = draw(protobuf_files())
    some = messages(message_class(file).DESCRIPTOR)
    return file, draw(st.lists(some, min_size=1, max_size=6))


@BOUNDED
@given(protobuf_topics(), st.data())
def test_protobuf(
    topic: tuple[descriptor_pb2.FileDescriptorProto, list[bytes]], data: st.DataObject
) -> None:
    file, payloads = topic
    schema, made = native(file), message_class(file)
    found = decode(decoder(schema), payloads)
    good = [i for i in range(len(payloads)) if i not in found.problems]
    if not found.arrays or not good:
        return
    batch = as_batch(found).take(pa.array(good))
    some = written(schema, sliced(data, batch))
    again = decode(decoder(schema), some)
    assert not again.problems
    assert repr(rows(again)) == repr([rows(found)[i] for i in good])
    for i, payload in zip(good, some, strict=True):
        first, second = made(), made()
        first.ParseFromString(payloads[i])
        second.ParseFromString(payload or b"")
        assert first.SerializePartialToString(deterministic=True) == (
            second.SerializePartialToString(deterministic=True)
        )


SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), INT64),
    (pa.int16(), st.integers(-(1 << 15), (1 << 15) - 1)),
    (pa.float64(), st.floats()),
    (pa.float32(), st.floats(width=32)),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.binary(), st.binary(max_size=9)),
    (pa.large_binary(), st.binary(max_size=9)),
    (pa.decimal128(9, 4), st.decimals(-99999, 99999, places=4, allow_nan=False)),
]


@st.composite
def arrow_columns(draw: st.DrawFn, depth: int = 3) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """Types as Spark gives them, with values."""
    choice = draw(st.integers(0, 3 if depth else 0))
    if choice == 0:
        kind, values = draw(st.sampled_from(SCALARS))
        return kind, st.none() | values
    if choice == 1:
        kind, values = draw(arrow_columns(depth=depth - 1))
        large = draw(st.booleans())
        return pa.large_list(kind) if large else pa.list_(kind), st.none() | st.lists(
            values, max_size=4
        )
    if choice == 2:
        kind, values = draw(arrow_columns(depth=depth - 1))
        pairs = st.dictionaries(TEXT, values, max_size=4).map(lambda found: list(found.items()))
        return pa.map_(pa.string(), kind), st.none() | pairs
    members = draw(st.lists(arrow_columns(depth=depth - 1), min_size=1, max_size=4))
    struct = pa.struct([(f"m{i}", kind) for i, (kind, _) in enumerate(members)])
    return struct, st.none() | st.fixed_dictionaries(
        {f"m{i}": values for i, (_, values) in enumerate(members)}
    )


@BOUNDED
@given(st.lists(arrow_columns(), min_size=1, max_size=4), st.sampled_from(["AVRO", "JSON"]),
       st.data())  # fmt: skip
def test_a_new_schema_takes_the_rows_that_it_is_made_of(
    columns: list[tuple[pa.DataType, st.SearchStrategy[Any]]], kind: str, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 5))
    arrays = [
        pa.array(data.draw(st.lists(values, min_size=count, max_size=count)), arrow)
        for arrow, values in columns
    ]
    batch = pa.record_batch(arrays, names=[f"f{i}" for i in range(len(arrays))])
    made = new_schema(batch.schema, kind)
    given_: Given = (made.type, made.definition)
    payloads = written(given_, sliced(data, batch))
    again = decode(decoder(given_), payloads)
    assert not again.problems
    for array, name in zip(arrays, batch.schema.names, strict=True):
        assert repr(again.arrays[name].to_pylist()) == repr(array.to_pylist())
    # By a schema as wide as the columns that are read, too.
    wide = PayloadEncoder(info(given_), as_batch(again).schema).encode(as_batch(again))
    assert [wide.values[i] for i in range(count)] == payloads
