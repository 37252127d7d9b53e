"""What an Iceberg snapshot lacks of the newest version of its Delta table, and has too many.

Two ways to know it:

* By the commits since the version that the snapshot shows, where they are all there, all ours, and
  only add files: what an offloader does all day. One small request each, however large the table.
* Else as the difference of two sets of files, the newest version's and the snapshot's: after
  compaction and expiry, when the log was cleaned up meanwhile, for a table that is new here, where
  another writer has been at either of the two, or the Delta table is another one. It is right
  whatever has happened, so there is no case that it does not cover.

The snapshot is always read before the log: so the log is at least as new.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from offloader.iceberg.data_files import DeltaFile, delta_file
from offloader.iceberg.snapshots import Shown
from reader import table as tables
from reader.errors import CorruptError, UnavailableError, plain_text
from reader.model import Topic
from reader.storage import Storage

MOST_COMMITS = 100
"""Of more, opening the table is the quicker way."""
_READERS = 8


@dataclass(frozen=True, slots=True)
class Change:
    """From what a snapshot shows to Delta version ``shown``.

    ``added`` by the files' names in the table's directory, ``removed``: such names. ``columns``:
    the version's, None where they are known to be the same. ``since_ms``: when the first version
    was committed that the snapshot lacks, ms since the epoch; 0: not known.
    """

    shown: Shown
    added: Mapping[str, DeltaFile]
    removed: frozenset[str] = frozenset()
    columns: pa.Schema | None = None
    since_ms: int = 0


def added_since(storage: Storage, topic: Topic, shown: Shown) -> Change | None:
    """By the commits after ``shown``; None where they do not tell (``difference`` does).

    Raises UnavailableError, CorruptError, UnsupportedError for a table whose files alone are not
    its rows.
    """
    commits: list[tables.FileChanges] = []
    while (
        one := tables.read_file_changes(storage, topic, shown.version + len(commits))
    ) is not None:
        first = not commits
        if not one.id or (one.id != shown.commit if first else bool(one.removed)):
            return None
        commits.append(one)
        if len(commits) > MOST_COMMITS:
            return None
    if not commits:
        return None
    since, newest = commits[1:], commits[-1]
    return Change(
        shown=Shown(newest.version, newest.id),
        added={_name(one.path): delta_file(one) for some in since for one in some.added},
        columns=_columns(storage, topic, newest.version)
        if any(one.redefines for one in since)
        else None,
        since_ms=since[0].at_ms if since else 0,
    )


def difference(
    storage: Storage, topic: Topic, shown: Shown | None, live: Mapping[str, int]
) -> Change | None:
    """Between the snapshot's files, ``live``, and the newest version; None without a table.

    ``live``: names in the table's directory, and how many times the snapshot has each.
    Raises UnavailableError, CorruptError, UnsupportedError for a table that is not ours any more.
    """
    table = tables.TopicTable.open(storage, topic)
    if table is None:
        return None
    tables.require_readable(table)
    made_by = tables.read_file_changes(storage, topic, table.version)
    next_one = (
        tables.read_file_changes(storage, topic, shown.version + 1)
        if shown is not None and shown.version < table.version
        else None
    )
    wanted = _files(table)
    wrong = {name for name, count in live.items() if count != 1}
    return Change(
        shown=Shown(table.version, made_by.id if made_by else ""),
        added={name: one for name, one in wanted.items() if name not in live or name in wrong},
        removed=frozenset(live.keys() - wanted.keys()) | wrong,
        columns=table.schema,
        since_ms=next_one.at_ms if next_one else 0,
    )


def _columns(storage: Storage, topic: Topic, version: int) -> pa.Schema | None:
    """The columns of ``version``; None where there is no table any more."""
    table = tables.TopicTable.open(storage, topic, version)
    if table is None:
        return None
    tables.require_readable(table)
    return table.schema


def row_count(storage: Storage, topic: Topic, names: Mapping[str, DeltaFile]) -> dict[str, int]:
    """How many rows each file has: by the log, or where that does not say, by the file's footer.

    Raises UnavailableError.
    """
    filesystem, directory = storage.directory(topic)

    def read(name: str) -> int:
        try:
            with filesystem.open_input_file(f"{directory}/{name}") as source:
                return int(pq.read_metadata(source).num_rows)
        except (OSError, pa.ArrowException) as error:
            raise UnavailableError(
                f"cannot read {directory}/{name}: {plain_text(error)}"
            ) from error

    found = {name: one.rows for name, one in names.items() if one.rows is not None}
    unknown = [name for name in names if name not in found]
    with ThreadPoolExecutor(_READERS) as pool:
        return found | dict(zip(unknown, pool.map(read, unknown), strict=True))


def _name(path: str) -> str:
    if not tables.is_inside(path):
        raise CorruptError(f"the log names a file outside of its table: {path[:200]!r}")
    return tables.stored_name(path)


def _files(table: tables.TopicTable) -> dict[str, DeltaFile]:
    found = {}
    for row in table.files().to_pylist():
        found[tables.stored_name(row["path"])] = DeltaFile(
            path=row["path"],
            size=row["size_bytes"],
            rows=row.get("num_records"),
            nulls=_of("null_count.", row),
            low=_of("min.", row),
            high=_of("max.", row),
        )
    return found


def _of(prefix: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Members of structs, ``min.a.b``, are left out by who uses it: no column has that name."""
    return {
        name.removeprefix(prefix): value
        for name, value in row.items()
        if name.startswith(prefix) and value is not None
    }
