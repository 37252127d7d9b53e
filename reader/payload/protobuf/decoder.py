"""Protobuf payloads to Arrow arrays, message by message."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from reader.kernels.array_types import Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.payload.budget import UNBOUNDED, Decoded, OutputBudget
from reader.payload.column_types import Struct
from reader.payload.protobuf.schema import ProtobufSchema
from reader.payload.protobuf.values import ProtobufReader
from reader.payload.python_rows import read_rows


class ProtobufDecoder:
    """All Protobuf versions of one member; ``layout`` is fitted to ``fields`` already."""

    def __init__(
        self,
        schemas: Sequence[tuple[int, ProtobufSchema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
        budget: OutputBudget = UNBOUNDED,
    ) -> None:
        self._fields = [field for field in fields if field.name in wanted]
        self._readers = {
            v: ProtobufReader(v, schema, layout, wanted, member_name, budget)
            for v, schema in schemas
        }

    def decode(self, spans: ByteSpans, versions: Int64s, room: int) -> Decoded:
        """As many of the first rows as fit ``room``: wanted columns, one value a span.

        Every present row's version must be one that the decoder was made with.
        """

        def read(row: int) -> tuple[Mapping[str, Any] | None, str | None, int]:
            if not spans.present[row]:
                return None, None, 0
            payload = spans.data[spans.starts[row] : spans.ends[row]].tobytes()
            return self._readers[int(versions[row])].read(payload)

        return read_rows(self._fields, len(versions), read, room)
