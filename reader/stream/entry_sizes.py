"""What entries hold, without their payloads: for limits, and to find a publish time.

Of files three columns are read, which take next to nothing, and two more where entries are
encrypted; of what is hot, the entries.

Where in a partition the messages of a time begin.

In the table by its statistics and the rows of one file, exactly. In what is hot by bisection, as
Pulsar's own seek finds a time: publish times are producers' clocks, and mostly ascend.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.model import Partition, Position, Split
from reader.model.columns import METADATA, rows_between
from reader.model.row_kinds import KIND_COLUMN, RowKind
from reader.plan import ColdFile, FilesRead, Plan, RowFilter, SplitsRead
from reader.sources import RowFormat, read_rows
from reader.stream.limits import NO_TIME, Entries
from reader.stream.topic_batch import TopicBatch

_COLUMNS = ("__ledgerId", "__entryId", "__publishTime")
_OF_BATCHES = (KIND_COLUMN, "__encryptionContext")
_SCHEMA = pa.schema([METADATA.field(name) for name in _COLUMNS])


def entries_of(clients: Clients, batch: TopicBatch, partition: Partition) -> Iterator[Entries]:
    """A partition's entries that lie in a batch, in the order of the log; planned when asked.

    Raises as reading does.
    """
    plan = batch.plan
    for file in files_of(plan, partition):
        yield from entries_of_file(clients, batch, plan, file, partition)
    splits = [one for one in plan.splits if one.partition == partition]
    yield from entries_of_splits(clients, batch, splits)


def files_of(plan: Plan, partition: Partition) -> list[ColdFile]:
    """Those that a plan reads of a partition, in the order of the log."""
    found = []
    for one in plan.cold:
        low, high = one.file.limit("__partition")
        inside = (low is None or low <= partition.index) and (
            high is None or partition.index <= high
        )
        if one.read and inside:
            found.append(one.file)
    return sorted(found, key=_place)


def _place(file: ColdFile) -> tuple[int, int, int]:
    first, last = file.limit("__ledgerId")
    entry = file.limit("__entryId")[0] if first == last else None
    return (first or 0, last or 0, entry or 0)


def entries_of_file(
    clients: Clients, batch: TopicBatch, plan: Plan, file: ColdFile, partition: Partition
) -> Iterator[Entries]:
    """Those of a file that lie in the batch."""
    where = rows_between(partition.index, *batch.ranges[partition.index])
    read = FilesRead(plan.topic, plan.version, (file,))
    names = (*_COLUMNS, *(_OF_BATCHES if plan.snapshot.ciphertext is not None else ()))
    columns = pa.schema([METADATA.field(name) for name in names])
    form = RowFormat.of(clients.settings, plan.snapshot, columns)
    each = file.bytes / file.rows if file.rows else 0.0
    for rows in read_rows(clients, read, form, RowFilter(where, _COLUMNS)):
        yield _entries(rows, row_bytes=each)


def entries_of_splits(
    clients: Clients, batch: TopicBatch, splits: Iterable[Split]
) -> Iterator[Entries]:
    """Those of hot splits."""
    form = RowFormat.of(clients.settings, batch.snapshot, _SCHEMA)
    for split in splits:
        each = split.bytes / split.entries
        for rows in read_rows(clients, SplitsRead((split,)), form):
            yield _entries(rows, entry_bytes=each)


def _entries(rows: pa.RecordBatch, *, row_bytes: float = 0.0, entry_bytes: float = 0.0) -> Entries:
    ledgers, entries, times = (rows.column(name).cast(pa.int64()) for name in _COLUMNS)
    messages = _messages(rows) if KIND_COLUMN in rows.schema.names else None
    return Entries.of_rows(
        np.asarray(ledgers),
        np.asarray(entries),
        np.asarray(pc.fill_null(times, NO_TIME)),
        None if messages is None else np.asarray(pc.fill_null(messages.cast(pa.int64()), 1)),
        row_bytes=row_bytes,
        entry_bytes=entry_bytes,
    )


def _messages(rows: pa.RecordBatch) -> pa.Array:
    """Return how many messages each row has: an encrypted entry has all of its batch."""
    sizes = pc.struct_field(rows.column("__encryptionContext"), "batchSize")
    encrypted = pc.equal(rows.column(KIND_COLUMN), RowKind.ENCRYPTED.value)
    return pc.if_else(encrypted, pc.max_element_wise(sizes, pa.scalar(1, pa.int32())), 1)


_LOOK_ENTRIES = 16
"""How many entries are read for a message of them; twice as many where they hold none."""


def position_before(
    clients: Clients, batch: TopicBatch, partition: Partition, time: int
) -> Position:
    """The position behind which all that is of ``time`` (µs) or later begins, within a batch.

    Its end where nothing is. Raises as reading does.
    """
    plan = batch.plan
    for file in files_of(plan, partition):
        latest = file.limit("__publishTime")[1]
        if latest is not None and latest < time:
            continue
        for entries in entries_of_file(clients, batch, plan, file, partition):
            found = np.flatnonzero(entries.times >= time)
            if len(found):
                first = int(found[0])
                return Position(int(entries.ledgers[first]), int(entries.entries[first]) - 1)
    ledgers = [
        _whole(one.splits)
        for one in plan.segments
        if one.splits and one.segment.partition == partition
    ]
    return _bisected(clients, batch, ledgers, time) or batch.end[partition].at


def _whole(splits: Sequence[Split]) -> Split:
    return replace(splits[0], last_entry=splits[-1].last_entry)


def _bisected(
    clients: Clients, batch: TopicBatch, ledgers: Sequence[Split], time: int
) -> Position | None:
    """None: nothing is as late."""
    low, high = 0, len(ledgers)  # those before ``low`` begin earlier, those from ``high`` on do not
    while low < high:
        middle = (low + high) // 2
        found = _look(clients, batch, ledgers[middle], ledgers[middle].first_entry)
        if found is None or found[1] < time:
            low = middle + 1
        else:
            high = middle
    if low:
        ledger = ledgers[low - 1]
        first, last = ledger.first_entry, ledger.last_entry + 1
        while first < last:
            middle = (first + last) // 2
            found = _look(clients, batch, ledger, middle)
            if found is not None and found[1] < time:
                first = found[0] + 1
            else:
                last = middle
        if first <= ledger.last_entry:
            return Position(ledger.ledger_id, first - 1)
    return Position(ledgers[low].ledger_id, -1) if low < len(ledgers) else None


def _look(clients: Clients, batch: TopicBatch, ledger: Split, entry: int) -> tuple[int, int] | None:
    """(entry, publish time) of the first message at ``entry`` or behind it; None: there is none."""
    count = _LOOK_ENTRIES
    while entry <= ledger.last_entry:
        last = min(entry + count - 1, ledger.last_entry)
        part = replace(ledger, first_entry=entry, last_entry=last, whole=False)
        for found in entries_of_splits(clients, batch, [part]):
            return int(found.entries[0]), int(found.times[0])
        entry, count = last + 1, 2 * count
    return None
