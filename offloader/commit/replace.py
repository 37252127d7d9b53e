"""Files for files in the Delta log: what maintenance commits. Watermarks stay as they are.

1. A replacement is refused where a file that it removes is not in the table any more (another
   maintainer was first, or a RESTORE): delta-rs by itself removes what is not there, and adds the
   rows twice. So it is where an external writer has committed since the plan: a path may have got
   a deletion vector.
2. It goes through the handle that was checked, and delta-rs gets no retries of its own. Where the
   log has moved, a newer handle is checked in the same way: an append never hinders it, and it
   hinders no append but for one more try (``commit.append``).
3. After *any* error the log is read again before anything is concluded, as ``commit.py`` says.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deltalake import CommitProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from offloader.commit.append import COMMIT_KEY
from offloader.commit.file_age import FRESH_MS, check_fresh
from offloader.commit.retry import commit_until_landed
from offloader.commit.table_features import check_protocol
from offloader.model.files import WrittenFile
from reader.errors import CommitConflictError
from reader.storage import Storage
from reader.table import TopicTable
from reader.table.log import commit_info

__all__ = ["MAINTENANCE_KEY", "Replacement", "replace_files"]

MAINTENANCE_KEY = "pulsarlake.maintenance"


@dataclass(frozen=True, slots=True)
class Replacement:
    """What one commit takes out and puts in.

    ``removes``: path → bytes. ``changes``: whether the table's rows are others after it.
    ``note``: what the commit says of itself. ``transactions``: never a watermark. ``fresh_ms``: how
    old ``adds`` may be at the commit.
    """

    removes: dict[str, int]
    adds: tuple[WrittenFile, ...]
    changes: bool
    note: dict[str, Any]
    transactions: dict[str, int] = field(default_factory=dict)
    fresh_ms: int = FRESH_MS


def replace_files(
    storage: Storage,
    table: TopicTable,
    replacement: Replacement,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> TopicTable:
    """Commit ``replacement`` on top of ``table``, the version it was planned on; the one it makes.

    Raises CommitConflictError when a file to be removed is gone, or one to be added too old
    (``fresh.py``), or somebody else has committed; UnsupportedError for a table that is not ours
    any more (``protocol.py``); UnavailableError when the storage fails: the commit may then have
    landed all the same.
    """
    commit_id = uuid.uuid4().hex

    def attempt(on: TopicTable | None) -> None:
        if on is None:
            raise CommitConflictError(f"the table of {table.topic} is gone")
        check_protocol(on)
        _check(on, replacement)
        check_fresh(replacement.adds, replacement.fresh_ms, clock_ms())
        _commit(on, replacement, commit_id)

    return commit_until_landed(
        storage,
        table.topic,
        table,
        attempt=attempt,
        landed=lambda newest, since: _landed(storage, newest, commit_id, since=since),
        sleep=sleep,
    )


def _check(table: TopicTable, replacement: Replacement) -> None:
    gone = replacement.removes.keys() - table.paths()
    if gone:
        raise CommitConflictError(
            f"{len(gone)} files of {table.topic} were replaced meanwhile: {min(gone)}"
        )


def _landed(
    storage: Storage, table: TopicTable, commit_id: str, *, since: int
) -> TopicTable | None:
    """The version that our commit made, if there is one after ``since``.

    Raises CommitConflictError where somebody else has committed before it.
    """
    for version in range(since + 1, table.version + 1):
        info = commit_info(storage, table.topic, version) or {}
        if info.get(COMMIT_KEY) == commit_id:
            # Not a newer one: what came after it is looked at before the next commit.
            return (
                table
                if table.version == version
                else TopicTable.open(storage, table.topic, version)
            )
        if COMMIT_KEY not in info:
            raise CommitConflictError(
                f"version {version} of the table of {table.topic} is not ours: what its files hold "
                "may have changed"
            )
    return None


def _not_below(version: int, there: int | None) -> int:
    """Another maintainer may have come further meanwhile."""
    return version if there is None else max(version, there)


def _commit(table: TopicTable, replacement: Replacement, commit_id: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    removes = [
        RemoveAction(path, replacement.changes, now_ms, size, {})
        for path, size in replacement.removes.items()
    ]
    adds = [
        AddAction(
            path=file.path,
            size=file.size,
            partition_values={},
            modification_time=file.modified,
            data_change=replacement.changes,
            stats=file.statistics,
        )
        for file in replacement.adds
    ]
    table.handle.create_write_transaction(
        [*removes, *adds],
        mode="append",
        schema=table.handle.schema(),
        commit_properties=CommitProperties(
            max_commit_retries=0,
            custom_metadata={
                COMMIT_KEY: commit_id,
                MAINTENANCE_KEY: json.dumps(replacement.note, separators=(",", ":")),
            },
            app_transactions=[
                Transaction(name, _not_below(version, table.handle.transaction_version(name)))
                for name, version in replacement.transactions.items()
            ],
        ),
    )
