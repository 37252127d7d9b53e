"""JSON payloads to Arrow arrays: plain ones by a compiled loop, all others in Python."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_bytes
from reader.payload.avro_schema import Schema, overlay
from reader.payload.column_types import Struct
from reader.payload.json.kernel import DEFERRED, FRAME, MAX_DEPTH, run_json
from reader.payload.json.program import compile_json
from reader.payload.json.values import JsonReader, shown
from reader.payload.shared_kernels import DONE, GROW_GROUP, GROW_KEYS
from reader.payload.slots import SlotMemory, Slots, assemble, column_outputs

__all__ = ["JsonDecoder"]

Int64s = npt.NDArray[np.int64]
# The kernel has checked that it is base64.
_CONVERTERS = (bytes, base64.b64decode)


class JsonDecoder:
    """All JSON versions of one member; ``layout`` is fitted to ``fields`` already.

    A message may use the fields of every version: one that its own version does not declare is
    read as the first version that declares it.
    """

    def __init__(
        self,
        schemas: Iterable[tuple[int, Schema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
    ) -> None:
        self._fields = [field for field in fields if field.name in wanted]
        schemas = list(schemas)
        union = schemas[0][1].root
        for _, schema in schemas[1:]:
            union = overlay(union, schema.root)
        roots = [(version, overlay(schema.root, union)) for version, schema in schemas]
        self._readers = {v: JsonReader(v, root, layout, member_name) for v, root in roots}
        self._slots = Slots()
        self._columns = column_outputs(self._slots, fields, layout, wanted)
        self._program = compile_json(roots, layout, self._columns, member_name)

    def decode(
        self, spans: ByteSpans, versions: Int64s
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """Wanted columns, one value a span, and the problem rows.

        Every present row's version must be one that the decoder was made with.
        """
        arrays, problems, deferred = self.decode_compiled(spans, versions)
        if len(deferred):
            slow, found = self.decode_in_python(spans, versions, deferred)
            problems |= found
            where = np.arange(len(versions))
            where[deferred] = len(versions) + np.arange(len(deferred))
            for name, array in arrays.items():
                arrays[name] = pa.concat_arrays([array, slow[name]]).take(pa.array(where))
        return arrays, problems

    def decode_in_python(
        self, spans: ByteSpans, versions: Int64s, rows: Int64s
    ) -> tuple[dict[str, pa.Array], dict[int, str]]:
        """The reference: only ``rows``, one array element each, and problems by row."""
        columns: dict[str, list[Any]] = {f.name: [None] * len(rows) for f in self._fields}
        problems: dict[int, str] = {}
        for i, row in enumerate(rows.tolist()):
            payload = spans.data[spans.starts[row] : spans.ends[row]].tobytes()
            values, problem = self._readers[int(versions[row])].read(payload)
            if problem is not None:
                problems[row] = problem
            for name, value in (values or {}).items():
                if name in columns:
                    columns[name][i] = value
        return {f.name: pa.array(columns[f.name], f.type) for f in self._fields}, problems

    def decode_compiled(
        self, spans: ByteSpans, versions: Int64s
    ) -> tuple[dict[str, pa.Array], dict[int, str], Int64s]:
        """(arrays, problems, rows that are deferred): in those rows arrays may hold anything."""
        program, count = self._program, len(versions)
        entries = np.full(count, -1, np.int64)
        for version, entry in program.entries.items():
            entries[spans.present & (versions == version)] = entry
        memory = SlotMemory(self._slots, count)
        status, unknown = np.zeros(count, np.int64), np.full((count, 3), -1, np.int64)
        keys, key_table = np.zeros((256, 2), np.int64), np.zeros(1024, np.int64)
        counters = np.zeros(2, np.int64)
        # Its pages are touched only where there are escapes.
        side = empty_bytes(int((spans.ends - spans.starts).sum()) + 1)
        groups = len(memory.capacity)
        work = (
            np.zeros(groups, np.int64), np.zeros(groups, np.int64),
            np.zeros((MAX_DEPTH, FRAME), np.int64), np.zeros(len(program.members), np.int64),
            np.zeros(9, np.int64),
        )  # fmt: skip
        row, outcome, what = 0, -1, -1
        while outcome != DONE:
            if outcome == GROW_GROUP:
                memory.grow(what)
            elif outcome == GROW_KEYS:
                keys = np.zeros((2 * len(keys), 2), np.int64)
                key_table = np.zeros(2 * len(key_table), np.int64)
            row, outcome, what = run_json(
                spans.data, spans.starts, spans.ends, entries, row, program.nodes,
                program.members, program.names, memory.arrays, *work, keys, key_table, side,
                counters, status, unknown,
            )  # fmt: skip
        arrays = assemble(self._columns, memory, count, spans.data, side, _CONVERTERS)
        problems = {}
        for at in np.flatnonzero((unknown[:, 0] >= 0) & (status == DONE)).tolist():
            node, start, end = unknown[at].tolist()
            path, name = program.paths[node], spans.data[start:end].tobytes().decode()
            problems[at] = f"unknown field {shown(f'{path}.{name}' if path else name)}"
        return arrays, problems, np.flatnonzero(status == DEFERRED)
