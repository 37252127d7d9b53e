"""Messages to rows: metadata columns, decoded payload columns, and what had to be rescued."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

import numpy as np
import pyarrow as pa

from reader import decode
from reader.config import PulsarConfig, ReadConfig
from reader.model import Partition, SchemaInfo, StoredTimes, Topic
from reader.model.columns import METADATA_NAMES
from reader.model.row_kinds import KIND_COLUMN, RowKind
from reader.payload import OutputBudget, PayloadDecoder
from reader.plan import Predicate, Snapshot, publish_range
from reader.sources.base import PublishRange

_RESCUE = (KIND_COLUMN, "__rescued", "__error")
_ALONE = decode.NoContext()


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How messages become rows; picklable.

    ``fields``: all payload columns of the snapshot; ``schemas``: all versions of the topic's
    schema; ``columns``: what is wanted, in order, with its exact types. ``expanded_bytes``:
    see ``PulsarConfig``. ``assumed_version``: the
    schema version of messages that name none. ``created``: by partition index, when its managed
    ledger was created, µs. ``clock_difference``: of producers' clocks from the brokers', µs.
    ``publish_range``: least and greatest publish time that is wanted (µs, inclusive, None: open),
    by which entries are left out early; whoever wants exactly these rows filters them as well.
    """

    fields: pa.Schema
    schemas: tuple[SchemaInfo, ...]
    columns: pa.Schema
    expanded_bytes: int = decode.FREE_INFLATED
    assumed_version: int | None = None
    created: Mapping[int, int] = dataclasses.field(default_factory=dict)
    clock_difference: int = 0
    publish_range: PublishRange = (None, None)

    @classmethod
    def of(
        cls,
        settings: ReadConfig,
        snapshot: Snapshot,
        columns: pa.Schema,
        predicates: Sequence[Predicate] = (),
    ) -> Self:
        """Return the format of a snapshot's rows, of which those are wanted that may match."""
        form = cls(
            snapshot.fields,
            snapshot.schemas,
            columns,
            created=snapshot.created,
            publish_range=publish_range(predicates),
        )
        return form.set_up(settings.pulsar, snapshot.topic)

    def set_up(self, settings: PulsarConfig, topic: Topic) -> Self:
        """Return the format with what the settings say of a topic's messages."""
        forms = settings.json_forms(topic.local_name)
        return dataclasses.replace(
            self,
            schemas=tuple(dataclasses.replace(schema, **forms) for schema in self.schemas),
            expanded_bytes=settings.expanded_bytes,
            assumed_version=settings.assume_schema_version.get(topic.local_name),
            clock_difference=settings.clock_difference // timedelta(microseconds=1),
        )

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        """The wanted metadata columns that a decoder gives."""
        ours = (*_RESCUE, "__topic")
        return tuple(n for n in self.columns.names if n in METADATA_NAMES and n not in ours)

    @property
    def payload_columns(self) -> tuple[str, ...]:
        """The wanted payload columns."""
        return tuple(n for n in self.columns.names if n not in METADATA_NAMES)

    @property
    def needs_payload(self) -> bool:
        """Whether payloads have to be looked at: for their columns, or for what is wrong."""
        return bool(self.payload_columns) or any(n in _RESCUE for n in self.columns.names)


class RowBuilder:
    """Builds batches of one partition in one format."""

    def __init__(self, partition: Partition, rows: RowFormat) -> None:
        self._partition = partition
        self._topic = partition.topic.full_name
        self._rows = rows
        self._constants: dict[str, pa.Array] = {}
        self._decoder = (
            PayloadDecoder(
                rows.schemas,
                rows.fields,
                wanted=rows.payload_columns,
                assumed_version=rows.assumed_version,
                budget=OutputBudget.for_payloads(rows.expanded_bytes),
            )
            if rows.needs_payload
            else None
        )

    def entry_decoder(
        self,
        context: decode.PartitionContext = _ALONE,
        *,
        decryption: decode.Decryption | None,
        rescue_incomplete: bool = False,
    ) -> decode.EntryDecoder:
        """What makes of entries the messages that ``build`` needs. Arguments as it has them."""
        decoder = decode.EntryDecoder(
            self._partition,
            columns=self._rows.metadata_columns,
            payload=self._rows.needs_payload,
            keys=self.needs_keys,
            publish_range=self._rows.publish_range,
            decryption=decryption,
            expanded_bytes=self._rows.expanded_bytes,
            row_bytes=len(self._topic.encode()) if "__topic" in self._rows.columns.names else 0,
        )
        decoder.begin(context, rescue_incomplete=rescue_incomplete)
        return decoder

    @property
    def needs_keys(self) -> bool:
        """Whether ``build`` takes columns from the messages' keys."""
        return self._decoder is not None and self._decoder.needs_keys

    def build(
        self, messages: decode.Messages, opened_at: Mapping[int, int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield a row for each message, with the format's columns, in batches of bounded size.

        ``opened_at``: when ledgers were opened, in µs. Nothing is raised for what messages hold.
        """
        stored = self._stored(messages, opened_at or {})
        first = 0
        while first < len(messages):
            batch = self._batch(messages, first, stored)
            yield batch
            first += batch.num_rows

    def _stored(
        self, messages: decode.Messages, opened_at: Mapping[int, int]
    ) -> StoredTimes | None:
        """Return when the messages were stored; None: not known of any."""
        if messages.stored is None:
            return None
        # By both: a broker's clock may have been set back since the creation.
        created = self._rows.created.get(self._partition.index)
        stored = messages.stored.within(self._rows.clock_difference)
        return stored.not_before(created, opened_at)

    def _batch(
        self, messages: decode.Messages, first: int, stored: StoredTimes | None
    ) -> pa.RecordBatch:
        """Rows from ``first`` on, as many as the payload decoder's budget has room for."""
        count = len(messages) - first
        found: dict[str, pa.Array] = {}
        raw: dict[int, bytes] = {}
        reasons: dict[int, str] = {}
        kinds: dict[int, RowKind] = {}
        problems: Mapping[int, str] = {}
        payload = None if messages.payload is None else messages.payload.after(first)
        if self._decoder is not None and payload is not None:
            keys = None
            if self._decoder.needs_keys and messages.keys is not None:
                keys = messages.keys.slice(first)
            decoded = self._decoder.decode(
                payload,
                messages.schema_versions[first:],
                keys,
                None if stored is None else stored.part(first, len(messages)),
            )
            count, problems = decoded.count, decoded.problems
            kinds = dict.fromkeys(decoded.unread, RowKind.UNDECODABLE)
            found.update(decoded.arrays)
        for name, array in messages.columns.items():
            found[name] = array.slice(first, count)
        if messages.rescued:
            for row in range(count):
                if (rescued := messages.rescued.get(first + row)) is not None:
                    raw[row], reasons[row] = rescued.raw, rescued.reason
                    if rescued.kind is not RowKind.MESSAGE:
                        kinds[row] = rescued.kind
        if payload is not None:
            unread = [row for row in problems if row not in raw] if raw else list(problems)
            raw.update(zip(unread, payload.values(unread), strict=True))
            reasons = {**problems, **reasons}
        columns = []
        for field in self._rows.columns:
            if field.name == "__topic":
                column = self._constant(field.name, pa.scalar(self._topic, pa.string()), count)
            elif field.name == KIND_COLUMN:
                column = self._kinds(kinds, count)
            elif field.name == "__rescued":
                column = self._sparse(field.name, raw, count, pa.binary())
            elif field.name == "__error":
                column = self._sparse(field.name, reasons, count, pa.string())
            else:
                column = found[field.name]
            columns.append(column if column.type == field.type else column.cast(field.type))
        if not columns:
            return bare_rows(count)
        return pa.RecordBatch.from_arrays(columns, schema=self._rows.columns)

    def _constant(self, name: str, value: pa.Scalar, count: int) -> pa.Array:
        """The same value in each row: a part of what an earlier batch had."""
        if name not in self._constants or len(self._constants[name]) < count:
            self._constants[name] = pa.repeat(value, count)
        return self._constants[name].slice(0, count)

    def _kinds(self, kinds: Mapping[int, RowKind], count: int) -> pa.Array:
        if not kinds:
            return self._constant(KIND_COLUMN, pa.scalar(RowKind.MESSAGE.value), count)
        names = list(RowKind)
        numbers = np.full(count, names.index(RowKind.MESSAGE), np.int8)
        for row, kind in kinds.items():
            numbers[row] = names.index(kind)
        return pa.array([one.value for one in names], pa.string()).take(pa.array(numbers))

    def _sparse(
        self, name: str, values: dict[int, bytes] | dict[int, str], count: int, kind: pa.DataType
    ) -> pa.Array:
        if not values:
            return self._constant(name, pa.scalar(None, kind), count)
        rows = sorted(values)
        indices = np.full(count, -1, dtype=np.int64)
        indices[rows] = np.arange(len(rows))
        taken = pa.array(indices, mask=indices < 0)
        return pa.array([values[row] for row in rows], kind).take(taken)


def conform(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """The rows with exactly ``columns``: those that the batch lacks are NULL."""
    if not columns.names:
        return bare_rows(batch.num_rows)
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def bare_rows(count: int) -> pa.RecordBatch:
    """Rows without a column: what ``count(*)`` asks for."""
    nothing = pa.Array.from_buffers(pa.struct([]), count, [None])
    return pa.RecordBatch.from_struct_array(nothing)
