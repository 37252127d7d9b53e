"""Avro payloads to Arrow arrays, by the program of their own schema version."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.array_types import Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.payload.avro.kernel import ERRORS, FRAME, MAX_DEPTH, run_avro
from reader.payload.avro.program import compile_avro
from reader.payload.avro_schema import Record, Schema
from reader.payload.budget import UNBOUNDED, Decoded, OutputBudget, json_text_bytes
from reader.payload.column_types import Struct
from reader.payload.shared_kernels import Payloads
from reader.payload.slots import SlotMemory, Slots, assemble, column_outputs


class AvroDecoder:
    """All Avro versions of one member; ``layout`` is fitted to ``fields`` already."""

    def __init__(
        self,
        schemas: Iterable[tuple[int, Schema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
        budget: OutputBudget = UNBOUNDED,
    ) -> None:
        self._budget = budget
        # Of the last rows, by group: how many there may be.
        self._items: npt.NDArray[np.float64] | None = None
        if member_name is not None:
            # A record of one field is written as that field alone.
            schemas = [
                (v, Schema(Record("", ((member_name, s.root),)), s.records)) for v, s in schemas
            ]
        self._slots = Slots()
        columns = column_outputs(self._slots, fields, layout, wanted)
        self._columns = {name: out for name, out in columns.items() if name in wanted}
        self._program = compile_avro(schemas, layout, columns)

    def decode(self, spans: ByteSpans, versions: Int64s, room: int) -> Decoded:
        """As many of the first rows as fit ``room``: wanted columns, one value a span.

        Every present row's version must be one that the decoder was made with.
        """
        program = self._program
        if self._items is None and (few := self._slots.sample(len(versions))):
            self.decode(spans.slice(few), versions[:few], room // 16)
        rows, refused = self._fitting(spans, versions, room)
        spans, versions = spans.slice(rows), versions[:rows]
        entries = np.full(rows, -1, np.int64)
        for version, entry in program.entries.items():
            entries[spans.present & (versions == version)] = entry
        entries[refused] = -1
        memory = SlotMemory(self._slots, rows, room, self._items)
        payloads = Payloads.of(
            spans, entries, len(memory.capacity), (MAX_DEPTH, FRAME), self._budget.limits(room)
        )
        status, detail, found = payloads.status, np.zeros(rows, np.int64), np.zeros(2, np.int64)

        def run(payloads: Payloads, first: int) -> Any:
            arrays = program.code, program.table, memory.arrays
            return run_avro(payloads, first, *arrays, found, detail)

        row = memory.fill(payloads, run)
        self._items = 1.25 * memory.cursor / max(row, 1)
        arrays = assemble(self._columns, memory, row, spans.data, program.side, program.converters)
        problems = self._problems(status[:row], detail[:row])
        why = f"more than {self._budget.message} bytes of text"
        unread = {*np.flatnonzero(status[:row] < 0).tolist(), *(i for i in refused if i < row)}
        return Decoded(row, arrays, problems | {i: why for i in refused if i < row}, unread)

    def _fitting(self, spans: ByteSpans, versions: Int64s, room: int) -> tuple[int, list[int]]:
        """(rows whose text fits ``room``, and one at least; which of them have too much of it).

        The kernel counts what text has besides strings: these grow as they are written as JSON,
        in Python, and are counted as if all of a payload was text.
        """
        if not self._program.texts:
            return len(versions), []
        most, refused = self._budget.message, []
        textual = spans.present & np.isin(versions, list(self._program.texts))
        sizes = np.where(textual, 6 * (spans.ends - spans.starts), 0)
        for row in np.flatnonzero(4 * sizes > most).tolist():
            data = spans.data[spans.starts[row] : spans.ends[row]]
            sizes[row] = len(data) if len(data) > most else json_text_bytes([data])
            if sizes[row] > most:
                sizes[row] = 0
                refused.append(row)
        fitting = int(np.searchsorted(np.cumsum(sizes), room, side="right"))
        rows = min(max(fitting, 1), len(versions))
        return rows, [row for row in refused if row < rows]

    def _problems(self, status: Int64s, detail: Int64s) -> dict[int, str]:
        problems = {}
        for row in np.flatnonzero(status).tolist():
            code = int(status[row])
            if code > 0:
                problems[row] = self._program.messages[code]
            else:
                where = self._program.paths[detail[row]]
                problems[row] = f"malformed Avro at {where}: {ERRORS[code]}"
        return problems
