"""The metadata columns of rows, all filled by one kernel; those of one value are made once."""

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode import tables
from reader.decode.arrays import Rows, other_metadata, properties
from reader.decode.encryption.encryption_context import context_array
from reader.decode.passes import column_memory
from reader.kernels.array_types import Int64s
from reader.kernels.memory import empty_bytes
from reader.model.columns import METADATA

_SCHEMA = (column_memory.ENTRY, tables.E_SCHEMA, -1)
_PLAN = {
    "__ledgerId": (column_memory.LEDGER_ID, 0, 0),
    "__entryId": (column_memory.ENTRY_ID, 0, 0),
    "__batchIndex": (column_memory.BATCH, 0, 0),
    "__key": (column_memory.ROW_TEXT, tables.R_KEY_LENGTH, 0),
    "__keyBase64": (column_memory.BASE64_BITS, 0, 0),
    "__orderingKey": (column_memory.ROW_TEXT, tables.R_ORDERING_LENGTH, 0),
    "__messageProperties": (column_memory.ROW_TEXT, tables.R_PROPERTIES, 0),
    "__publishTime": (column_memory.ENTRY, tables.E_PUBLISH, tables.NO_TIME),
    "__eventTime": (column_memory.ROW, tables.R_EVENT, tables.NO_TIME),
    "__brokerPublishTime": (column_memory.ENTRY, tables.E_BROKER, tables.NO_TIME),
    "__deliverAt": (column_memory.ENTRY, tables.E_DELIVER, tables.NO_TIME),
    "__index": (column_memory.INDEX, 0, 0),
    "__producerName": (column_memory.ENTRY_TEXT, tables.E_PRODUCER_LENGTH, 0),
    "__replicatedFrom": (column_memory.ENTRY_TEXT, tables.E_REPLICATED_LENGTH, 0),
    "__sequenceId": (column_memory.SEQUENCE, tables.R_SEQUENCE, 0),
    "__schemaVersion": _SCHEMA,
    "__tombstone": (column_memory.TOMBSTONE_BITS, 0, 0),
    "__firstChunkLedgerId": (column_memory.ENTRY, tables.E_BEGIN_LEDGER, -1),
    "__firstChunkEntryId": (column_memory.ENTRY, tables.E_BEGIN_ENTRY, -1),
}
_COLUMNS = (*_PLAN, "__partition", "__encryptionContext", "__otherMetadata")


class Repeated:
    """Columns that have one value in all rows: the beginning of an array that is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, pa.Array]] = {}

    def array(self, name: str, kind: pa.DataType, value: object, count: int) -> pa.Array:
        """``count`` times ``value``, as column ``name`` of type ``kind``; of maps only ``()``."""
        known = self._kept.get(name)
        if known is None or known[0] != value or len(known[1]) < count:
            known = self._kept[name] = (value, _repeat(kind, value, _room(count)))
        return known[1].slice(0, count)


def _room(count: int) -> int:
    return 1 << max(count - 1, 63).bit_length()


def _repeat(kind: pa.DataType, value: object, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, kind)
    if pa.types.is_map(kind):  # pa.repeat takes 2 µs for each
        assert value == ()
        offsets = pa.py_buffer(np.zeros(count + 1, np.int32))
        entries = pa.array([], pa.struct([kind.key_field, kind.item_field]))
        return pa.Array.from_buffers(kind, count, [None, offsets], 0, children=[entries])
    return pa.repeat(pa.scalar(value, kind), count)


class MetadataColumns:
    """Makes the columns ``names`` of rows."""

    def __init__(self, names: Collection[str]) -> None:
        self._types = {
            field.name: field.type
            for field in METADATA
            if field.name in names and field.name in _COLUMNS
        }
        self._repeated = Repeated()
        lines = {name: _PLAN[name] for name in self._types if name in _PLAN}
        self._line = {name: c for c, name in enumerate(lines)}
        # The last line is for the rows' schema versions, wanted as a column or not.
        self._plan = np.array([*lines.values(), _SCHEMA], np.int64)
        self._texts = [
            c
            for c, (name, line) in enumerate(lines.items())
            if line[0] in (column_memory.ENTRY_TEXT, column_memory.ROW_TEXT)
            and name != "__messageProperties"
        ]

    def of(self, rows: Rows, *, encrypted: bool) -> tuple[dict[str, pa.Array], Int64s, bool]:
        """(the columns, each row's schema version or -1, whether any row is rescued).

        ``encrypted``: whether any entry may be.
        """
        count, lines = len(rows), len(self._plan)
        stride = (count + 8) // 8 * 8
        values = 8 * lines * stride
        memory = pa.allocate_buffer(values + values // 64)
        octets = np.frombuffer(memory, np.uint8)
        words, halves = octets[:values].view(np.int64), octets[:values].view(np.int32)
        flags, found = np.empty(count + 8, np.uint8), np.empty((lines, 2), np.int64)
        rescued = column_memory.fill_columns(
            rows.entries, rows.ledger_ids, rows.entry_ids, rows.rows, count, self._plan, stride,
            words, halves, octets, flags, found,
        )  # fmt: skip
        nulls, sizes = found.T.tolist()
        texts = self._text_buffers(rows, stride, halves, sizes)

        def array(name: str, kind: pa.DataType) -> pa.Array:
            if name == "__partition":
                return self._repeated.array(name, kind, rows.partition, count)
            if name == "__encryptionContext":
                if encrypted:
                    return context_array(rows)
                return self._repeated.array(name, kind, None, count)
            if name == "__otherMetadata":
                if (
                    rows.entries[tables.E_FLAGS] & (tables.HAS_OTHER | tables.HAS_OTHER_INSIDE)
                ).any():
                    return other_metadata(rows)
                return self._repeated.array(name, kind, None, count)
            c = self._line[name]
            if nulls[c] == count:
                return self._repeated.array(name, kind, None, count)
            if name == "__messageProperties":
                if sizes[c] or nulls[c]:
                    return properties(rows)
                return self._repeated.array(name, kind, (), count)
            bitmap = memory.slice(values + c * stride // 8, stride // 8) if nulls[c] else None
            buffers = [bitmap, memory.slice(8 * c * stride, 8 * stride)]
            if c in texts:
                buffers.append(texts[c])
            return pa.Array.from_buffers(kind, count, buffers, nulls[c])

        arrays = {name: array(name, kind) for name, kind in self._types.items()}
        versions = words[(lines - 1) * stride :][:count]
        return arrays, versions, bool(rescued)

    def _text_buffers(
        self, rows: Rows, stride: int, halves: npt.NDArray[np.int32], sizes: Sequence[int]
    ) -> dict[int, pa.Buffer]:
        """The texts, by line."""
        starts = np.full(len(self._plan), -1, np.int64)
        end = 0
        for c in self._texts:
            if sizes[c]:
                starts[c] = end
                end += sizes[c]
        data = empty_bytes(end + 16)
        if end:
            column_memory.copy_texts(
                rows.arena, rows.inflated, rows.entries, rows.rows, len(rows), self._plan, stride,
                halves, starts, data,
            )  # fmt: skip
        whole = pa.py_buffer(data)
        return {c: whole.slice(max(int(starts[c]), 0), sizes[c]) for c in self._texts}
