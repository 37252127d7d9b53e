"""Protobuf payloads to Arrow arrays, message by message."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.errors import UnsupportedError
from reader.kernels.byte_spans import ByteSpans
from reader.payload.column_types import Struct
from reader.payload.protobuf.schema import ProtobufSchema
from reader.payload.protobuf.values import ProtobufReader

__all__ = ["ProtobufDecoder"]

# So many payload bytes are decoded to Python's values at a time.
SLICE_BYTES = 4 << 20


class ProtobufDecoder:
    """All Protobuf versions of one member; ``layout`` is fitted to ``fields`` already."""

    def __init__(
        self,
        schemas: Sequence[tuple[int, ProtobufSchema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
    ) -> None:
        self._fields = [field for field in fields if field.name in wanted]
        self._readers = {
            v: ProtobufReader(v, schema, layout, wanted, member_name) for v, schema in schemas
        }

    def decode(
        self, spans: ByteSpans, versions: npt.NDArray[np.int64]
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """Wanted columns, one value a span, and the problem rows.

        Every present row's version must be one that the decoder was made with.
        """
        problems: dict[int, str] = {}
        parts: list[list[pa.Array]] = [[] for _ in self._fields]
        for first, stop in _slices(spans):
            columns: dict[str, list[Any]] = {f.name: [None] * (stop - first) for f in self._fields}
            for row in range(first, stop):
                if not spans.present[row]:
                    continue
                payload = spans.data[spans.starts[row] : spans.ends[row]].tobytes()
                values, problem = self._readers[int(versions[row])].read(payload)
                if problem is not None:
                    problems[row] = problem
                for name, value in values.items():
                    columns[name][row - first] = value
            for part, field in zip(parts, self._fields, strict=True):
                part.append(pa.array(columns[field.name], field.type))
        try:
            arrays = {
                field.name: pa.concat_arrays(part) if part else pa.array([], field.type)
                for field, part in zip(self._fields, parts, strict=True)
            }
        except pa.ArrowInvalid as error:
            raise UnsupportedError(
                "a column of one batch would be larger than 2 GiB",
                hint="decode fewer messages a batch",
            ) from error
        return arrays, problems


def _slices(spans: ByteSpans) -> Iterator[tuple[int, int]]:
    """(first, stop) of rows with about `SLICE_BYTES` of payload; one row at least."""
    ends = np.cumsum(spans.ends - spans.starts + 16)
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + SLICE_BYTES, side="right")))
        yield first, stop
        first = stop
