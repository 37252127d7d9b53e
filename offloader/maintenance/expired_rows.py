"""What a commit says of rows that expire: files that go as a whole, and old rows of one that stays.

A stream compares two numbers of its partition: the last position of which a row has expired, and
the time before which rows went, which grows with each such commit. The position is exact, so that
a stream that has read up to it knows for good that nothing was lost to it. A chunked message that
is given up becomes a row at a place that a stream may have passed. So the log has for these rows
where the last of their messages begins, and the stream compares that with what it knows to be given
up (``PartitionOffset.given_up``). A compacted view
compares the first ledger of which a row has expired with the one from which on Pulsar has compacted
the partition.
"""

from collections.abc import Sequence

from offloader.maintenance.rewrite import Rewritten, range_of
from offloader.maintenance.table_files import TableFile
from offloader.output import ExpiredRows, Replacement
from reader.errors import CorruptError, UnavailableError
from reader.model import BEFORE_ALL, Partition, Position
from reader.storage import Storage
from reader.table import TopicTable


def whole_files(
    storage: Storage, table: TopicTable, files: Sequence[TableFile], before: int
) -> Replacement:
    """Return the removal of ``files``, whose rows were all published before ``before`` (µs)."""
    expired: dict[Partition, ExpiredRows] = {}
    for one in files:
        partition = Partition(table.topic, one.partition)
        rows = _range(storage, table, one)
        expired[partition] = rows.joined(expired[partition]) if partition in expired else rows
    return _replacement(table, files, sum(one.rows for one in files), expired, before)


def old_rows(table: TopicTable, file: TableFile, rest: Rewritten, before: int) -> Replacement:
    """Return the replacement of ``file`` by the ``rest`` of its rows, which stay."""
    partition = Partition(table.topic, file.partition)
    expired = {} if rest.expired is None else {partition: rest.expired}
    return _replacement(table, [file], rest.dropped, expired, before, rest)


def _replacement(
    table: TopicTable,
    files: Sequence[TableFile],
    rows: int,
    expired: dict[Partition, ExpiredRows],
    before: int,
    rest: Rewritten | None = None,
) -> Replacement:
    before_ms = max(before // 1000, (table.topic_numbers.expired_before or 0) + 1)
    return Replacement(
        removes={one.path: one.size for one in files},
        adds=(rest.file,) if rest is not None and rest.file is not None else (),
        changes=True,
        note={"operation": "expire", "files": len(files), "rows": rows, "before": before},
        expired=expired,
        expired_before=before_ms,
    )


def _range(storage: Storage, table: TopicTable, file: TableFile) -> ExpiredRows:
    """Return the range of the rows of a file, or a larger one if the file cannot be read."""
    first, last = file.ledgers
    given_up = table.numbers(Partition(table.topic, file.partition)).given_up
    if first < last or given_up is not None:
        try:
            return range_of(storage, table, file)
        except (CorruptError, UnavailableError):
            pass  # a file that cannot be read expires all the same
    end = Position(last, file.entries[1])
    # The row of a message lies behind where it begins.
    return ExpiredRows(first, end, min(given_up or BEFORE_ALL, end))
