"""RowFormat: how messages become rows; a value, which needs no kernels."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Self

import pyarrow as pa

from reader.config import PulsarConfig, ReadConfig
from reader.model import SchemaInfo, Topic
from reader.model.columns import METADATA_NAMES
from reader.model.row_kinds import KIND_COLUMN
from reader.plan import Predicate, Snapshot, publish_range

PublishRange = tuple[int | None, int | None]
"""Least and greatest publish time (µs since the epoch, both inclusive, None: open)."""

_RESCUE = (KIND_COLUMN, "__rescued", "__error")
_EXPANDED_BYTES: int = PulsarConfig.model_fields["expanded_bytes"].default


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
    expanded_bytes: int = _EXPANDED_BYTES
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
