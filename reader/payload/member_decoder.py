"""The decoders of one member of a topic's payload: byte strings of any version to its columns.

A record that is a payload has no member of its own: its fields are columns. Everything else is one
member, and so one column: `PAYLOAD` or `BARE`, or `KEY` and `VALUE` of a KeyValue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.kernels.array_types import Bools, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.payload.avro.decoder import AvroDecoder
from reader.payload.avro_schema import Schema
from reader.payload.budget import Decoded, OutputBudget
from reader.payload.column_types import KEY, Layout, Leaf, Struct, accepts, label
from reader.payload.json.decoder import JsonDecoder
from reader.payload.primitive import PRIMITIVES, decode_primitive
from reader.payload.protobuf.decoder import ProtobufDecoder
from reader.payload.registry import BYTES_VERSION, PayloadSchema, SchemaVersion, version_of
from reader.payload.remembered.conversions import exact_array
from reader.payload.remembered.lives import SchemaLives
from reader.payload.remembered.origins import layout_of_fields
from reader.payload.remembered.union import ColumnUnion, count_columns, with_missing
from reader.payload.remembered.versionless import BYTES_NUMBER

MOST_OTHER_FIELDS = 65_536
"""The maximum number of JSON versions of a member, times the fields that they have together.

Each version is compiled with the fields of all others, because its messages may use them: a field
takes some 1.7 kB, so all are some 110 MB. A topic with more versions or fields is read without
them. It depends on the registry alone: a message is read in the same way in any batch.
"""
_ALL = 1 << 62


class _Decoder(Protocol):
    def decode(self, spans: ByteSpans, versions: Int64s, room: int) -> Decoded: ...


@dataclass(frozen=True, slots=True)
class DecoderRows:
    """The ``rows`` of a batch that one decoder reads, ascending; spans and versions of each."""

    decoder: _Decoder
    rows: Int64s
    spans: ByteSpans
    versions: Int64s

    def decode(self, count: int, room: int) -> Decoded:
        """As many of the first ``count`` as fit ``room`` bytes of columns, and one at least."""
        return self.decoder.decode(self.spans.slice(count), self.versions[:count], room)


_DECODERS: Mapping[str, Callable[..., _Decoder]] = {
    "avro": AvroDecoder,
    "json": JsonDecoder,
    "protobuf": ProtobufDecoder,
}


class MemberDecoders:
    """The decoders of a topic, made for the definitions that occur.

    ``keys`` and ``values`` decode every definition that was required.
    """

    def __init__(
        self, lives: SchemaLives, fields: pa.Schema, wanted: Collection[str], budget: OutputBudget
    ) -> None:
        self._lives = lives
        self._fields = fields
        self._layout = layout_of_fields(fields)
        self._wanted = frozenset(wanted)
        self._budget = budget
        self._versions: dict[int, SchemaVersion] = {}
        self._json: dict[str | None, tuple[list[Schema], Struct]] = {}
        self.keys: list[MemberDecoder] = []
        self.values: list[MemberDecoder] = []

    def require(self, numbers: Iterable[int]) -> None:
        """Make the decoders of definitions that have none. Those of one call are one program."""
        new: dict[str | None, list[tuple[int, PayloadSchema]]] = {}
        for number in numbers:
            if number in self._versions:
                continue
            bare = number == BYTES_NUMBER
            version = BYTES_VERSION if bare else version_of(self._lives.info(number))
            self._versions[number] = version
            for schema in version.schemas:
                new.setdefault(schema.member_name, []).append((number, schema))
        for name, schemas in new.items():
            decoders = self.keys if name == KEY else self.values
            decoders.append(self._decoder(name, schemas))

    def version(self, number: int) -> SchemaVersion:
        """Return the schema of a definition that was required."""
        return self._versions[number]

    def _decoder(
        self, name: str | None, schemas: Sequence[tuple[int, PayloadSchema]]
    ) -> MemberDecoder:
        layout: Layout = self._layout
        for _, schema in schemas:
            layout = with_missing(layout, schema.layout)
        every = None
        if any(schema.kind == "json" for _, schema in schemas):
            every = self._all_json(name)
            layout = with_missing(layout, every[1])
        assert isinstance(layout, Struct)
        return MemberDecoder(name, schemas, self._fields, layout, self._wanted, self._budget, every)

    def _all_json(self, member_name: str | None) -> tuple[list[Schema], Struct]:
        """Return all JSON schemas of a member, and the columns that they have together.

        If these are more than MOST_OTHER_FIELDS, return none: each version is read by itself.
        """
        if member_name not in self._json:
            found = [
                schema
                for info in self._lives.all()
                if info.type in ("JSON", "KEY_VALUE")
                for schema in version_of(info).schemas
                if schema.kind == "json" and schema.member_name == member_name
            ]
            # Fields beyond the columns of a topic, too: messages may use them.
            union = ColumnUnion(Struct(()), most=_ALL)
            for schema in found:
                union.add(schema.layout)
            schemas, layout = (
                [s.schema for s in found if isinstance(s.schema, Schema)],
                union.layout(),
            )
            if len(schemas) * count_columns(layout) > MOST_OTHER_FIELDS:
                schemas, layout = [], Struct(())
            self._json[member_name] = schemas, layout
        return self._json[member_name]


class MemberDecoder:
    """Decodes the member ``member_name`` (None: a record's fields), each row by its definition.

    ``schemas``: by the number of their definition. ``every_json``: all JSON schemas of the
    member, with the fields of all of them: a message may use any. Without a schema in it, a
    message may use those of its own version.
    """

    def __init__(
        self,
        member_name: str | None,
        schemas: Sequence[tuple[int, PayloadSchema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        budget: OutputBudget,
        every_json: tuple[Sequence[Schema], Struct] | None = None,
    ) -> None:
        layouts = [schema.layout for _, schema in schemas]
        if every_json is not None:
            layouts.append(every_json[1])
        mine = {member.name for one in layouts for member in one.members}
        columns = {m.column for m in layout.members if m.name in mine} & set(wanted)
        self._decoders: list[tuple[Int64s, _Decoder]] = []
        for kind, make in _DECODERS.items():
            some = [(v, s.schema) for v, s in schemas if s.kind == kind]
            if some:
                more = {"every": every_json[0]} if kind == "json" and every_json else {}
                decoder = make(some, fields, layout, columns, member_name, budget, **more)
                self._decoders.append((_versions(v for v, _ in some), decoder))
        for version, schema in schemas:
            if schema.kind == "primitive":
                self._decoders.append((_versions([version]), _Primitive(schema, layout)))
            elif schema.kind == "unsupported":
                self._decoders.append((_versions([version]), _Unsupported(schema.reason)))

    def rows_of(self, rows: Int64s, spans: ByteSpans, versions: Int64s) -> Iterator[DecoderRows]:
        """By decoder, those that are present and of one of this member's versions."""
        for known, decoder in self._decoders:
            some = np.flatnonzero(spans.present & _any_of(known, versions))
            if len(some) == len(spans):
                yield DecoderRows(decoder, rows, spans, versions)
            elif len(some):
                yield DecoderRows(decoder, rows[some], spans.take(some), versions[some])


def _any_of(known: Int64s, versions: Int64s) -> Bools:
    # Most batches are of one version, and a comparison is ten times faster than a search.
    if len(versions) and (versions == versions[0]).all():
        return np.full(len(versions), versions[0] in known)
    return np.isin(versions, known)


def _versions(numbers: Iterable[int]) -> Int64s:
    return np.array(list(numbers), np.int64)


class _Primitive:
    """One version of a primitive schema."""

    def __init__(self, schema: PayloadSchema, layout: Struct) -> None:
        (member,) = schema.layout.members
        self._column = layout.member(member.name)
        self._label, self._type = label(member.name), schema.type

    def decode(self, spans: ByteSpans, versions: Int64s, room: int) -> Decoded:
        """All of them: no value is larger than its bytes and the room of a row."""
        count = len(versions)
        array, problems = decode_primitive(self._type, spans)
        leaf, column = PRIMITIVES[self._type].leaf, self._column
        if column is not None and column.layout == leaf:
            return Decoded(count, {column.column: array}, dict(problems), set(problems))
        why = f"{self._label} is {leaf.type}, its column is another type"
        found = None
        if column is not None and accepts(column.layout, leaf):
            assert isinstance(column.layout, Leaf)
            why = f"{self._label} is out of the range of its column"
            found = exact_array(array, column.layout)
        present = array.is_valid() if found is None else pc.and_(array.is_valid(), found.is_null())
        lost = np.flatnonzero(present.to_numpy(zero_copy_only=False)).tolist()
        arrays = {} if column is None or found is None else {column.column: found}
        problems = {**dict.fromkeys(lost, why), **problems}
        return Decoded(count, arrays, problems, set(problems))


class _Unsupported:
    """One version whose schema is not supported."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def decode(self, spans: ByteSpans, versions: Int64s, room: int) -> Decoded:
        rows = range(len(versions))
        return Decoded(len(versions), {}, dict.fromkeys(rows, self._reason), set(rows))
