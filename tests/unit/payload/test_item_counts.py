"""How many items lists have is known before the rows of a batch are read."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.kernels.byte_spans import ByteSpans
from reader.payload.avro import decoder as avro_decoder
from reader.payload.json import decoder as json_decoder
from tests.unit.payload.cases import decoder
from tests.unit.payload.hostile.amplified import zigzag


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_the_first_batch_is_not_read_twice(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel without room for the items reads the rest of the rows, to count, and then again."""
    module: Any = avro_decoder if kind == "AVRO" else json_decoder
    name = f"run_{kind.lower()}"
    run, read = getattr(module, name), []

    def counted(*arguments: Any) -> Any:
        payloads, first = arguments[:2]
        read.append(len(payloads.starts) - first)
        return run(*arguments)

    monkeypatch.setattr(module, name, counted)
    items = {"type": "array", "items": "long"}
    fields = [{"name": "a", "type": items}]
    made = decoder((kind, {"type": "record", "name": "R", "fields": fields}))
    rows, some = 20_000, list(range(20))
    payload = zigzag(20) + b"".join(map(zigzag, some)) + b"\0"
    if kind == "JSON":
        payload = b'{"a":%s}' % str(some).encode()
    spans = ByteSpans.of(pa.array([payload] * rows, pa.large_binary()))
    found = made.decode(spans, np.zeros(rows, np.int64))
    assert (found.count, found.problems) == (rows, {})
    assert found.arrays["a"].to_pylist() == [some] * rows
    assert sum(read) < 1.1 * rows
