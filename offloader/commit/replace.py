"""Files for files in the Delta log: what maintenance commits. Watermarks stay as they are.

1. A replacement is refused where a file that it removes is not in the table any more (another
   maintainer was first, or a RESTORE): delta-rs by itself removes what is not there, and adds the
   rows twice. So it is where an external writer has committed since the plan: a path may have got
   a deletion vector.
2. It goes through the handle that was checked, and delta-rs gets no retries of its own. Where the
   log has moved, a newer handle is checked in the same way: an append never hinders it, and it
   hinders no append except for one more try (``append.py``).
3. After *any* error the log is read again before anything is concluded, as ``append.py`` says.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from deltalake import Transaction
from deltalake.transaction import RemoveAction

from offloader.commit.actions import (
    MAINTENANCE_KEY,
    add_actions,
    commit_properties,
)
from offloader.commit.file_age import LEAST_MAX_AGE_MS, check_file_age
from offloader.commit.retry import commit_until_landed
from offloader.commit.storage_clock import storage_clock_ms
from offloader.commit.table_features import check_table_features
from offloader.model import COMMIT_RETRIES, CommitRetries, WrittenFile
from reader.errors import CommitConflictError
from reader.model import BEFORE_ALL, Partition, Position
from reader.storage import Storage
from reader.table import TopicTable, expired_from_key, expired_given_up_keys, expired_keys
from reader.table.log import read_commit

__all__ = ["ExpiredRows", "Replacement", "replace_files"]


@dataclass(frozen=True, slots=True)
class ExpiredRows:
    """Rows of one partition that expire: none in a ledger below ``first``, none behind ``last``.

    ``given_up``: none is of a given-up message that begins behind it.
    """

    first: int
    last: Position
    given_up: Position = BEFORE_ALL

    def joined(self, other: ExpiredRows) -> ExpiredRows:
        """Return the range of both."""
        return ExpiredRows(
            min(self.first, other.first),
            max(self.last, other.last),
            max(self.given_up, other.given_up),
        )


@dataclass(frozen=True, slots=True)
class Replacement:
    """What one commit takes out and puts in.

    ``removes``: path → bytes. ``changes``: whether the table's rows are others after it.
    ``note``: what the commit says of itself. ``transactions``: numbers of the log that only grow,
    never a watermark; ``exact``: numbers that are set as they are. ``expired``: the rows of each
    partition that expire. ``max_age_ms``: how old ``adds`` may be at the commit.
    """

    removes: dict[str, int]
    adds: tuple[WrittenFile, ...]
    changes: bool
    note: dict[str, Any]
    transactions: dict[str, int] = field(default_factory=dict)
    exact: dict[str, int] = field(default_factory=dict)
    expired: dict[Partition, ExpiredRows] = field(default_factory=dict)
    max_age_ms: int = LEAST_MAX_AGE_MS


def replace_files(
    storage: Storage,
    table: TopicTable,
    replacement: Replacement,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    retries: CommitRetries = COMMIT_RETRIES,
) -> TopicTable:
    """Commit ``replacement`` on top of ``table``, the version it was planned on; the one it makes.

    Raises CommitConflictError when a file to be removed is gone, or one to be added too old
    (``file_age.py``), or another writer has committed; UnsupportedError for a table that is not
    ours any more (``table_features.py``); ConfigurationError for a storage on which two commits may
    both win (``Storage.require_exclusive_put``); UnavailableError when the storage fails: the
    commit may then have landed all the same.
    """
    storage.require_exclusive_put()
    commit_id = uuid.uuid4().hex

    def attempt(on: TopicTable | None) -> None:
        if on is None:
            raise CommitConflictError(f"the table of {table.topic} is gone")
        check_table_features(on)
        _check(on, replacement)
        now_ms = clock_ms()
        check_file_age(
            replacement.adds,
            replacement.max_age_ms,
            now_ms,
            lambda: storage_clock_ms(storage, table.topic),
        )
        _commit(on, replacement, commit_id, now_ms)

    return commit_until_landed(
        table.topic,
        table,
        attempt=attempt,
        landed=lambda newest, since: _landed(storage, newest, commit_id, since=since),
        newest=lambda: TopicTable.open(storage, table.topic),
        sleep=sleep,
        retries=retries,
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

    Raises CommitConflictError where another writer has committed before it.
    """
    for version in range(since + 1, table.version + 1):
        commit = read_commit(storage, table.topic, version)
        if commit is not None and commit.id == commit_id:
            # Not a newer one: what came after it is checked before the next commit.
            return (
                table
                if table.version == version
                else TopicTable.open(storage, table.topic, version)
            )
        if commit is None or not commit.id:
            raise CommitConflictError(
                f"version {version} of the table of {table.topic} is not ours: what its files hold "
                "may have changed"
            )
    return None


def _not_below(version: int, there: int | None) -> int:
    """Another maintainer may have come further meanwhile."""
    return version if there is None else max(version, there)


def _expired(table: TopicTable, partition: Partition, rows: ExpiredRows) -> dict[str, int]:
    """Return the numbers of the log for all rows of a partition that have expired."""
    before = table.expired_from(partition)
    if before is not None:
        upto, given_up = table.expired_upto(partition), table.expired_given_up(partition)
        rows = rows.joined(ExpiredRows(before, upto, given_up))
    found = {expired_from_key(partition): rows.first}
    found |= zip(expired_keys(partition), (rows.last.ledger, rows.last.entry), strict=True)
    if rows.given_up != BEFORE_ALL:
        at = rows.given_up
        found |= zip(expired_given_up_keys(partition), (at.ledger, at.entry), strict=True)
    return found


def _commit(table: TopicTable, replacement: Replacement, commit_id: str, now_ms: int) -> None:
    removes = [
        RemoveAction(path, replacement.changes, now_ms, size, {})
        for path, size in replacement.removes.items()
    ]
    table.handle.create_write_transaction(
        [*removes, *add_actions(replacement.adds, data_change=replacement.changes)],
        mode="append",
        schema=table.handle.schema(),
        commit_properties=commit_properties(
            commit_id,
            {MAINTENANCE_KEY: json.dumps(replacement.note, separators=(",", ":"))},
            [
                Transaction(name, _not_below(version, table.handle.transaction_version(name)))
                for name, version in replacement.transactions.items()
            ]
            + [Transaction(name, number) for name, number in replacement.exact.items()]
            + [
                Transaction(name, number)
                for partition, rows in replacement.expired.items()
                for name, number in _expired(table, partition, rows).items()
            ],
        ),
    )
