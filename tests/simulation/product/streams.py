"""A stream of the product in the simulated world: its batches, read as Spark reads their plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from reader import stream
from reader.clients import Clients
from reader.model import Position
from reader.model.columns import FIRST_CHUNK
from reader.model.row_kinds import KIND_COLUMN
from reader.model.row_kinds import RowKind as StoredKind
from reader.plan import ColdFile, FilesRead, SplitsRead
from reader.sources import RowFormat, read_rows
from reader.stream.offsets import PartitionOffset
from testbed.simulation import Clock, HostClock, Row
from tests.simulation.product.queries import METADATA, rows_of

Batch = tuple[stream.StreamOffset, stream.StreamOffset, list[Row]]


class SimulatedStream:
    """A query and its checkpoint. ``begin`` once; then ``start`` for each driver's life.

    ``at``: where the checkpoint is; ``batches``: those that are done; ``held``: the greatest number
    of messages that the planner had fetched and not taken yet; ``told``: losses after which it went
    on. Of when it began: ``gone``, ledgers that were lost by then; ``expired``, rows; ``loads`` of
    each partition, by its name.
    """

    def __init__(self, options: stream.StreamOptions, clock: Clock, wall_clock: HostClock) -> None:
        self.options = options
        self.batches: list[Batch] = []
        self.began = self.at = stream.StreamOffset()
        self.held = 0
        self.told: list[str] = []
        self.gone: set[int] = set()
        self.expired: set[Row] = set()
        self.loads: dict[str, int] = {}
        self._planned: tuple[stream.StreamOffset, stream.StreamOffset] | None = None
        self._clock = clock
        self._wall_clock = wall_clock

    def start(self, clients: Clients) -> None:
        """A driver that starts, with nothing but the checkpoint."""

        def seconds() -> float:
            return self._clock.now_ms / 1000

        self._clients: Clients = clients
        self._stream = stream.TopicStream(
            clients,
            self.options,
            stream.Tails(clients, clock=seconds),
            warn=self._note,
            clock=seconds,
            sleep=self._clock.sleep,
            wall_clock=self._wall_clock.seconds,
        )

    def _note(self, text: str) -> None:
        if "goes on without what is lost" in text:
            self.told.append(text)

    def begin(self) -> None:
        """The first positions. Raises PulsarLakeError."""
        self.began = self.at = self._stream.bounds()[0]

    def end(self) -> stream.StreamOffset:
        """What there is now. Raises PulsarLakeError."""
        return self._stream.end()

    def next(self, until: stream.StreamOffset | None) -> bool:
        """One batch, if there is anything; whether there was. Raises PulsarLakeError."""
        end, _ = self._stream.next(self.at, None, until, waited=1e9)
        queues = [queue for queue, _ in self._stream._queues.values()]  # noqa: SLF001
        self.held = max([self.held, *(int(one.entries.rows.sum()) for one in queues)])
        if end.to_json() == self.at.to_json():
            return False
        # As the checkpoint has them.
        start, end = (stream.StreamOffset.from_json(one.to_json()) for one in (self.at, end))
        self._planned = start, end
        self.finish_planned()
        return True

    def finish_planned(self) -> None:
        """The batch that was planned and not done, if there is one: as Spark does, that very one.

        Raises PulsarLakeError.
        """
        if self._planned is not None:
            start, end = self._planned
            self.batches.append((start, end, self.read(start, end)))
            self.at, self._planned = end, None

    def read(self, start: stream.StreamOffset, end: stream.StreamOffset) -> list[Row]:
        """The rows of a batch, for the first time or again. Raises PulsarLakeError."""
        _, batches = self._stream.plan(start, end)
        return [row for one in batches for row in self._rows(one)]

    def _rows(self, batch: stream.TopicBatch) -> Iterator[Row]:
        snapshot = batch.snapshot
        fields = snapshot.fields
        if "value" not in fields.names:
            fields = pa.schema([("value", pa.binary()), *fields])
        names = [*METADATA, *fields.names]
        there = pa.schema(
            [*fields, *[one for one in snapshot.columns if one.name not in fields.names]]
        )
        columns = pa.schema([there.field(name) for name in names])
        plan = batch.plan
        ends = {one.index: to for one, to in batch.end.items()}
        for file in plan.cold:
            for begins, row in self._cold(batch, file.file, columns) if file.read else ():
                inside = _is_inside(row, batch.ranges)
                assert inside or not batch.has_all_of(file.file), (file, row)
                if inside and (begins is None or begins <= ends[row[0][0]].given_up):
                    yield row
        for late in batch.late_files():
            for begins, row in self._cold(batch, late, columns):
                if begins is not None and self._is_late(batch, row, begins):
                    yield row
        form = RowFormat(fields, snapshot.schemas, columns)
        for rows in read_rows(self._clients, SplitsRead(plan.splits), form):
            yield from rows_of(rows, ())

    def _cold(
        self, batch: stream.TopicBatch, file: ColdFile, columns: pa.Schema
    ) -> Iterator[tuple[Position | None, Row]]:
        """(where the message begins, if the row is one that was given up; the row)."""
        read = FilesRead(batch.snapshot.topic, batch.snapshot.version, (file,))
        form = RowFormat(batch.snapshot.fields, (), columns)
        for rows in read_rows(self._clients, read, form):
            begins = rows.select([KIND_COLUMN, *FIRST_CHUNK]).to_pylist()
            for begin, row in zip(begins, rows_of(rows, ()), strict=True):
                yield _begins(begin), row

    def _is_late(self, batch: stream.TopicBatch, row: Row, begins: Position) -> bool:
        """As ``TopicBatch.late_filter`` says it in SQL."""
        at = Position(row[0][1], row[0][2])
        for partition, since in batch.start.items():
            if partition.index != row[0][0]:
                continue
            began = self.began.partitions.get(partition, PartitionOffset()).at
            passed = began < at <= since.at
            return passed and since.given_up < begins <= batch.end[partition].given_up
        return False


def _begins(row: dict[str, Any]) -> Position | None:
    if row[KIND_COLUMN] != StoredKind.INCOMPLETE:
        return None
    return Position(*(row[name] for name in FIRST_CHUNK))


def _is_inside(row: Row, ranges: Mapping[int, tuple[Position, Position]]) -> bool:
    partition, ledger, entry, _ = row[0]
    low, high = ranges.get(partition, (Position(1, 0), Position(0, 0)))
    return low <= Position(ledger, entry) <= high
