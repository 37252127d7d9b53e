"""JSON payloads to Arrow arrays: plain ones by a compiled loop, all others in Python."""

import base64
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_bytes
from reader.payload.avro_schema import Schema, agreed_type, overlay
from reader.payload.budget import UNBOUNDED, Decoded, OutputBudget
from reader.payload.column_types import Struct
from reader.payload.json.forms import CUT_DIGITS
from reader.payload.json.kernel import DEFERRED, DOUBTFUL_BYTES, FRAME, MAX_DEPTH, run_json
from reader.payload.json.program import compile_json
from reader.payload.json.time_forms import CUT
from reader.payload.json.values import DOUBTFUL, JsonReader, shown
from reader.payload.python_rows import read_rows
from reader.payload.remembered.conversions import expanded
from reader.payload.shared_kernels import DONE, Payloads
from reader.payload.slots import SlotMemory, Slots, assemble, column_outputs

Int64s = npt.NDArray[np.int64]
# The kernel has checked that it is base64.
_CONVERTERS = (bytes, base64.b64decode)
_NOTES = {CUT_DIGITS: CUT, DOUBTFUL_BYTES: DOUBTFUL}


class JsonDecoder:
    """All JSON versions of one member; ``layout`` is fitted to ``fields`` already.

    A message may use the fields of every version: one that its own version does not declare is
    read as the versions do that declare it, if they agree. ``every``: all versions; None: these
    are all. Without any, a message may use the fields of its own version alone.
    """

    def __init__(
        self,
        schemas: Iterable[tuple[int, Schema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None = None,
        budget: OutputBudget = UNBOUNDED,
        every: Sequence[Schema] | None = None,
    ) -> None:
        self._budget = budget
        # Of the last rows, by group: how many there may be.
        self._items: npt.NDArray[np.float64] | None = None
        self._fields = [field for field in fields if field.name in wanted]
        schemas = list(schemas)
        every = [schema for _, schema in schemas] if every is None else every
        agreed = agreed_type([schema.root for schema in every]) if every else None
        member = None if member_name is None else layout.member(member_name)
        column = layout if member is None else member.layout
        records = {name: record for schema in every for name, record in schema.records.items()}
        named = {v: ChainMap(dict(schema.records), records) for v, schema in schemas}
        roots = [
            (v, expanded(overlay(schema.root, agreed), column, named[v])) for v, schema in schemas
        ]
        struct = pa.struct(list(fields))
        self._readers = {
            v: JsonReader(v, root, struct, layout, member_name, budget, named[v])
            for v, root in roots
        }
        self._slots = Slots()
        columns = column_outputs(self._slots, fields, layout, wanted)
        self._columns = {name: out for name, out in columns.items() if name in wanted}
        self._program = compile_json(roots, layout, columns, member_name)

    def decode(self, spans: ByteSpans, versions: Int64s, room: int = UNBOUNDED.batch) -> Decoded:
        """As many of the first rows as fit ``room``: wanted columns, one value a span.

        Every present row's version must be one that the decoder was made with.
        """
        fast, deferred, spent = self.decode_compiled(spans, versions, room)
        if not len(deferred):
            return fast
        slow = self.decode_in_python(spans, versions, deferred, room - spent)
        count = fast.count if slow.count == len(deferred) else int(deferred[slow.count])
        deferred = deferred[: slow.count]
        problems = {row: why for row, why in fast.problems.items() if row < count}
        problems |= {int(deferred[i]): why for i, why in slow.problems.items()}
        where = np.arange(count)
        where[deferred] = count + np.arange(len(deferred))
        arrays = {
            name: pa.concat_arrays([array.slice(0, count), slow.arrays[name]]).take(pa.array(where))
            for name, array in fast.arrays.items()
        }
        return Decoded(count, arrays, problems, {int(deferred[i]) for i in slow.unread})

    def decode_in_python(
        self, spans: ByteSpans, versions: Int64s, rows: Int64s, room: int = UNBOUNDED.batch
    ) -> Decoded:
        """The reference: only ``rows``, as far as there is room; problems by index in them."""

        def read(i: int) -> tuple[Mapping[str, Any] | None, str | None, int]:
            row = rows[i]
            payload = spans.data[spans.starts[row] : spans.ends[row]].tobytes()
            return self._readers[int(versions[row])].read(payload)

        return read_rows(self._fields, len(rows), read, room)

    def decode_compiled(
        self, spans: ByteSpans, versions: Int64s, room: int = UNBOUNDED.batch
    ) -> tuple[Decoded, Int64s, int]:
        """(what fits, rows that are deferred, bytes): in those rows arrays may hold anything."""
        program, count = self._program, len(versions)
        if self._items is None and (few := self._slots.sample(count)):
            self.decode_compiled(spans.slice(few), versions[:few], room // 16)
        entries = np.full(count, -1, np.int64)
        for version, entry in program.entries.items():
            entries[spans.present & (versions == version)] = entry
        memory = SlotMemory(self._slots, count, room, self._items)
        payloads = Payloads.of(
            spans, entries, len(memory.capacity), (MAX_DEPTH, FRAME), self._budget.limits(room)
        )
        unknown = np.full((count, 3), -1, np.int64)
        # Its pages are touched only where there are escapes.
        side = empty_bytes(int((spans.ends - spans.starts).sum()) + 1)
        seen, counters, number = (np.zeros(n, np.int64) for n in (len(program.members), 3, 9))

        def run(payloads: Payloads, first: int) -> Any:
            arrays = program.nodes, program.members, program.names, memory.arrays
            return run_json(payloads, first, *arrays, seen, side, counters, number, unknown)

        row = memory.fill(payloads, run)
        self._items = 1.25 * memory.cursor / max(row, 1)
        status, unknown = payloads.status[:row], unknown[:row]
        arrays = assemble(self._columns, memory, row, spans.data, side, _CONVERTERS)
        noted = np.flatnonzero((unknown[:, 0] >= 0) & (status == DONE))
        reasons = self._reasons(spans.data, unknown[noted])
        problems = dict(zip(noted.tolist(), reasons, strict=True))
        deferred = np.flatnonzero(status == DEFERRED)
        return Decoded(row, arrays, problems), deferred, int(payloads.spent[0])

    def _reasons(self, data: npt.NDArray[np.uint8], notes: Int64s) -> Iterator[str]:
        """Yield the problem of each note that `run_json` left: a new text for a new note alone.

        Where each row has the same field too many, a text for each would cost more than its row.
        """
        texts: dict[tuple[int, bytes | int], str] = {}
        view = data.data
        # A list a column: a list a row is more work for Python's garbage collector than all else.
        for node, start, end in zip(*(column.tolist() for column in notes.T), strict=True):
            what = view[start:end].tobytes() if start >= 0 else start
            text = texts.get((node, what))
            if text is None:
                text = texts[node, what] = _reason(self._program.paths[node], what)
            yield text


def _reason(path: str, what: bytes | int) -> str:
    if isinstance(what, int):
        return f"field {shown(path)} {_NOTES[what]}"
    name = what.decode()
    return f"unknown field {shown(f'{path}.{name}' if path else name)}"
