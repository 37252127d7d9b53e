"""Messages to rows: metadata columns, decoded payload columns, and what had to be rescued."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from reader import decode
from reader.model import Partition, StoredTimes
from reader.model.row_kinds import KIND_COLUMN, RowKind
from reader.payload import OutputBudget, PayloadDecoder
from reader.sources.row_format import RowFormat, bare_rows

_ALONE = decode.NoContext()


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
