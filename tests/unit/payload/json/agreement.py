"""Schemas for tests of JSON, and the check that both ways of decoding agree."""

from typing import Any

import numpy as np
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.payload import payload_fields
from reader.payload.avro_schema import Schema
from reader.payload.json.decoder import JsonDecoder
from reader.payload.registry import registry_of
from tests.support.schemas import avro_record
from tests.unit.payload.cases import shown, versions


def record(*fields: Any) -> dict[str, Any]:
    """A record whose fields f0, f1, … are of these types."""
    return avro_record("R", {f"f{i}": field for i, field in enumerate(fields)})


def agrees(schema: Any, payloads: list[bytes], *, deferred: bool | None = None) -> None:
    """The compiled path gives what Python gives; ``deferred``: whether it leaves them to Python."""
    infos = versions(("JSON", schema))
    fields, registry = payload_fields(infos), registry_of(infos)
    read = registry.versions[0].value.schema
    assert isinstance(read, Schema)
    made = JsonDecoder([(0, read)], fields, registry.layout, fields.names)
    spans = ByteSpans.of(pa.array(payloads, pa.large_binary()))
    numbers = np.zeros(len(payloads), np.int64)
    fast = made.decode(spans, numbers)
    slow = made.decode_in_python(spans, numbers, np.arange(len(payloads)))
    assert fast.problems == slow.problems
    for name in fields.names:
        fast.arrays[name].validate(full=True)
        assert repr(shown(fast.arrays[name])) == repr(shown(slow.arrays[name])), name
    if deferred is not None:
        _, rest, _ = made.decode_compiled(spans, numbers)
        assert len(rest) == (len(payloads) if deferred else 0)
