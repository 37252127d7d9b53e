"""How tests encode rows: with rows before and after, and what every result must be."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.encode.payload import PayloadEncoder
from reader.encode.payload.encoder import EncodedPayload
from reader.errors import ConfigurationError
from reader.model import SchemaInfo
from reader.payload import payload_fields
from tests.unit.payload.cases import Given, decode, decoder, rows, versions


def info(given: Given) -> SchemaInfo:
    return versions(given)[0]


def encode(given: Given, batch: pa.RecordBatch, json_times: str = "") -> EncodedPayload:
    schema = replace(info(given), json_times=json_times)
    found = PayloadEncoder(schema, batch.schema).encode(batch)
    for spans in (found.values, found.keys):
        if spans is not None:
            assert len(spans) == len(batch)
            assert (spans.starts <= spans.ends).all()
            assert len(batch) == 0 or spans.ends.max() <= len(spans.data)
    return found


def payloads(given: Given, batch: pa.RecordBatch, json_times: str = "") -> list[bytes | None]:
    found = encode(given, batch, json_times).values
    return [found[i] for i in range(len(batch))]


def column(values: Sequence[Any], kind: pa.DataType, name: str = "f0") -> pa.RecordBatch:
    """A batch of one column, a slice of a longer one: its offsets do not start at 0 by chance."""
    array = pa.array([*values[-1:], *values, *values[:1]], kind).slice(1, len(values))
    return pa.record_batch([array], names=[name])


def table(given: Given, written: Sequence[dict[str, Any]]) -> pa.RecordBatch:
    """Rows of the schema's own columns."""
    fields = payload_fields([info(given)])
    some = [*written[-1:], *written, *written[:1]]
    return pa.RecordBatch.from_pylist(some, fields).slice(1, len(written))


def again(given: Given, batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows, written and read."""
    found = encode(given, batch)
    made = decoder(given)
    keys = None if found.keys is None else [found.keys[i] for i in range(len(batch))]
    back = decode(made, [found.values[i] for i in range(len(batch))], 0, keys)
    assert not back.problems
    return rows(back)


def refused(given: Given, batch: pa.RecordBatch) -> ConfigurationError:
    """The error of a value; the columns themselves are not the problem."""
    made = PayloadEncoder(info(given), batch.schema)
    with pytest.raises(ConfigurationError) as found:
        made.encode(batch)
    return found.value


def refused_columns(given: Given, columns: pa.Schema) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as found:
        PayloadEncoder(info(given), columns)
    return found.value


def avro(kind: Any, *more: Any, **attributes: Any) -> Given:
    """A record of f0, f1, …; attributes are of f0."""
    fields = [{"name": f"f{i}", "type": one} for i, one in enumerate((kind, *more))]
    fields[0].update(attributes)
    return "AVRO", json.dumps({"type": "record", "name": "R", "fields": fields})


def as_json(given: Given) -> Given:
    return "JSON", given[1]
