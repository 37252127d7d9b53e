"""Avro payloads to Arrow arrays, by the program of their own schema version."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.payload.avro.kernel import ERRORS, FRAME, MAX_DEPTH, run_avro
from reader.payload.avro.program import compile_avro
from reader.payload.avro_schema import Record, Schema
from reader.payload.column_types import Struct
from reader.payload.shared_kernels import DONE, GROW_GROUP
from reader.payload.slots import SlotMemory, Slots, assemble, column_outputs

__all__ = ["AvroDecoder"]


class AvroDecoder:
    """All Avro versions of one member; ``layout`` is fitted to ``fields`` already."""

    def __init__(
        self,
        schemas: Iterable[tuple[int, Schema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
    ) -> None:
        if member_name is not None:
            # A record of one field is written as that field alone.
            schemas = [
                (v, Schema(Record("", ((member_name, s.root),)), s.records)) for v, s in schemas
            ]
        self._slots = Slots()
        self._columns = column_outputs(self._slots, fields, layout, wanted)
        self._program = compile_avro(schemas, layout, self._columns)

    def decode(
        self, spans: ByteSpans, versions: npt.NDArray[np.int64]
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """Wanted columns, one value a span, and the problem rows.

        Every present row's version must be one that the decoder was made with.
        """
        program, rows = self._program, len(spans.starts)
        entries = np.full(rows, -1, np.int64)
        for version, entry in program.entries.items():
            entries[spans.present & (versions == version)] = entry
        memory = SlotMemory(self._slots, rows)
        status, detail = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        keys, key_table = np.zeros((256, 2), np.int64), np.zeros(1024, np.int64)
        groups = len(memory.capacity)
        work = (
            np.zeros(groups, np.int64), np.zeros(groups, np.int64),
            np.zeros((MAX_DEPTH, FRAME), np.int64), np.zeros(1, np.int64),
        )  # fmt: skip
        row, outcome, what = 0, GROW_GROUP, -1
        while outcome != DONE:
            if outcome == GROW_GROUP and what >= 0:
                memory.grow(what)
            elif what >= 0:
                keys = np.zeros((2 * len(keys), 2), np.int64)
                key_table = np.zeros(2 * len(key_table), np.int64)
            row, outcome, what = run_avro(
                spans.data, spans.starts, spans.ends, entries, row, program.code, program.table,
                memory.arrays, *work, keys, key_table, status, detail,
            )  # fmt: skip
        arrays = assemble(self._columns, memory, rows, spans.data, program.side, program.converters)
        return arrays, self._problems(status, detail)

    def _problems(
        self, status: npt.NDArray[np.int64], detail: npt.NDArray[np.int64]
    ) -> dict[int, str]:
        problems = {}
        for row in np.flatnonzero(status).tolist():
            code = int(status[row])
            if code > 0:
                problems[row] = self._program.messages[code]
            else:
                where = self._program.paths[detail[row]]
                problems[row] = f"malformed Avro at {where}: {ERRORS[code]}"
        return problems
