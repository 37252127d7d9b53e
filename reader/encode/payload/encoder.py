"""Payload columns to payload bytes, by one version of a topic's schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.matching import members_of, missing_column
from reader.encode.payload.arrow_columns.unions import null_index
from reader.encode.payload.avro_parts import AvroParts
from reader.encode.payload.json_parts import JsonParts
from reader.encode.payload.primitive_values import add_primitive
from reader.encode.payload.protobuf_parts import ProtobufParts
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Block, Spans
from reader.errors import UnsupportedError
from reader.kernels.array_types import Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload.avro_schema import Node, Schema, Union
from reader.payload.column_types import KEY, Layout, Struct, arrow_type
from reader.payload.protobuf.schema import ProtobufSchema
from reader.payload.registry import BYTES_VERSION, PayloadSchema, registry_of

# The length of a half of an INLINE KeyValue that is null.
_NULL = b"\xff" * 4
_WARM = (
    '{"type": "record", "name": "R", "fields": ['
    '{"name": "m", "type": {"type": "map", "values": "long"}}, '
    '{"name": "t", "type": {"type": "long", "logicalType": "time-micros"}}]}'
)


@dataclass(frozen=True, slots=True)
class EncodedPayload:
    """``values``: one a row; not present is a message without a value.

    ``keys``: of a SEPARATED KeyValue the keys of the messages, None of any other schema.
    """

    values: ByteSpans
    keys: ByteSpans | None = None


class PayloadEncoder:
    """Encodes payload columns by one version of a topic's schema.

    ``columns``: those that the rows have, named as `payload_fields` of the schema names them, or as
    ``layout`` does (`TargetColumns`), without regard to case. A field without a column is null, or
    its default where the schema has one (`has_default`). Without a schema, or with
    BYTES, the one column is ``value``: binary, or a string as its UTF-8.

    Raises ConfigurationError for a column that is not in the schema, or is of a type that its field
    cannot store, and for a field that needs a column and has none; UnsupportedError for a schema
    that nothing can be written by.
    """

    def __init__(
        self, schema: SchemaInfo | None, columns: pa.Schema, layout: Struct | None = None
    ) -> None:
        registry = registry_of([] if schema is None else [schema])
        version = registry.versions[0] if registry.versions else BYTES_VERSION
        self._layout = registry.layout if layout is None else layout
        # Java's clients read a number under an Instant as seconds.
        self._numbers = schema is not None and schema.json_times == "numbers"
        self._value, self._key, self._separated = version.value, version.key, version.separated
        for one in version.schemas:
            if one.kind == "unsupported":
                raise UnsupportedError(
                    f"messages of the topic's schema cannot be written: {one.reason}",
                    hint="write to a topic with another schema",
                )
            if one.type == "PROTOBUF":
                raise UnsupportedError(
                    "messages of a PROTOBUF schema cannot be written: it does not describe what "
                    "its messages contain",
                    hint="give the topic a PROTOBUF_NATIVE schema",
                )
        # All types and names are checked by the very code that writes: here without rows.
        none = [pa.array([], field.type) for field in columns]
        self.encode(pa.record_batch(none, schema=columns))

    @property
    def key_column(self) -> str | None:
        """The column of the messages' keys, if these are out of the payload."""
        if not self._separated:
            return None
        return next(one.column for one in self._layout.members if one.name == KEY)

    def encode(self, batch: pa.RecordBatch, numbers: Int64s | None = None) -> EncodedPayload:
        """The payload, and the key, of each row. ``numbers``: what errors call the rows; None: from
        0 on.

        Raises ConfigurationError for the first value that cannot be stored, by column and row
        (``context``: ``column`` is its path, ``row`` its number); then nothing is written. Raises
        it as the constructor does where the columns are others than it has seen.
        """
        named = int if numbers is None else lambda row: int(numbers[row])
        rows = Elements(_rows(batch), "", row_of=named)
        if self._key is None and self._value.member_name is None:
            return EncodedPayload(self._record(rows))
        found = members_of(rows, self._layout, None)
        if self._key is None:
            if not found:
                raise missing_column(self._layout.members[0].column, self._value.type)
            return EncodedPayload(self._member(self._value, found, rows))
        keys = self._member(self._key, found, rows)
        values = self._member(self._value, found, rows)
        if self._separated:
            return EncodedPayload(values, keys)
        both = Block(len(rows), None)
        for one in (keys, values):
            spans = Spans(one.data, one.starts, one.ends)
            both.add(k.SIZED32, spans, valid=one.present.view(np.uint8), absent=_NULL)
        return EncodedPayload(both.byte_spans(None))

    def _record(self, rows: Elements) -> ByteSpans:
        """Payloads whose fields are columns."""
        block = Block(len(rows), None, members=self._value.kind == "json")
        parts, root = self._parts(self._value)
        parts.record(block, root, self._layout, rows)
        return block.byte_spans(None)

    def _member(
        self, schema: PayloadSchema, found: Mapping[str, Elements], rows: Elements
    ) -> ByteSpans:
        """Payloads, or halves of them, that are one column; NULL is not present."""
        assert schema.member_name is not None
        member = self._layout.member(schema.member_name)
        assert member is not None
        count = len(rows)
        none = Elements(pa.nulls(count), member.column, row_of=rows.row_of)
        elements = found.get(member.name, none)
        elements = elements.typed(arrow_type(member.layout))
        present = elements.valid()
        if schema.kind == "primitive":
            block = Block(count, present)
            add_primitive(block, schema.type, elements.where(present))
            return block.byte_spans(present)
        parts, root = self._parts(schema)
        if isinstance(root, Union) and null_index(root) is not None:
            present = None  # it has a null of its own
        block = Block(count, present)
        parts.root(block, root, member.layout, elements.where(present))
        return block.byte_spans(present)

    def _parts(self, schema: PayloadSchema) -> tuple[_Parts, Node | Descriptor]:
        """Return the writer of the format, and the schema's root."""
        if isinstance(schema.schema, ProtobufSchema):
            return ProtobufParts(), schema.schema.descriptor
        assert isinstance(schema.schema, Schema)
        records, root = schema.schema.records, schema.schema.root
        if schema.kind == "avro":
            return AvroParts(records), root
        return JsonParts(records, numbers=self._numbers), root


def prewarm() -> None:
    """Compile the kernels, or load them from disk, before the first write needs them."""
    maps = pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64()))
    batch = pa.record_batch([maps, pa.array([0], pa.int64())], names=["m", "t"])
    expected = {
        "AVRO": b"\x04\x02a\x02\x02b\x04\x00\x00",
        "JSON": b'{"m":{"a":1,"b":2},"t":"00:00:00.000000"}',
    }
    for kind, payload in expected.items():
        encoder = PayloadEncoder(SchemaInfo(0, kind, _WARM), batch.schema)
        if encoder.encode(batch).values[0] != payload:
            raise AssertionError(f"prewarm: not {payload!r}")


class _Parts(Protocol):
    """What writes one format; ``node`` is a type of its schemas."""

    def record(self, block: Block, node: Any, layout: Struct, elements: Elements) -> None: ...

    def root(self, block: Block, node: Any, layout: Layout, elements: Elements) -> None: ...


def _rows(batch: pa.RecordBatch) -> pa.StructArray:
    fields = pa.struct(list(batch.schema))
    return pa.Array.from_buffers(fields, len(batch), [None], 0, 0, batch.columns)
