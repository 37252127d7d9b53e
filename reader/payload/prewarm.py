"""Compiles the payload kernels, or loads them from disk, before the first query needs them."""

import numpy as np
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload.decoder import PayloadDecoder
from reader.payload.registry import payload_fields

_RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}'


def prewarm() -> None:
    """Decode one record of each kind that has a kernel."""
    for kind, payload in (("AVRO", b"\x02"), ("JSON", b'{"a": 1}')):
        schemas = (SchemaInfo(0, kind, _RECORD),)
        decoder = PayloadDecoder(schemas, payload_fields(schemas))
        payloads = ByteSpans.of(pa.array([payload], pa.large_binary()))
        decoded = decoder.decode(payloads, np.zeros(1, dtype=np.int64))
        if decoded.arrays["a"].to_pylist() != [1]:
            raise AssertionError(f"prewarm: {kind} gave {decoded}")
