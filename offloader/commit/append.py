"""Files and watermarks into the Delta log, in one commit. What else commits: ``replace.py``.

1. One commit carries a ledger's files *and* ``txn(partition's full name, ledger id)``, and two
   more that say where the messages begin which it leaves incomplete, another which ledger is to
   be the next, and one for the topic where rows are ciphertext, or messages were lost.
   One that only gives up chunked messages has no ledger and leaves the watermark out.
2. It goes through a handle of the version whose watermarks, and those beginnings, the plan was made
   on (``TopicTable.handle``), and only if one of the two grows for each partition. delta-rs gets no
   retries of its own: the log must not have moved since that version.
   Moved by another commit that leaves our watermarks alone (compaction, new columns): a newer
   handle is checked in the same way and the same files are committed through it.
   Moved by another offloader: CommitConflictError, and the caller plans again.
3. After *any* error the log is read again before anything is concluded: a store may apply the PUT
   and then answer 500, and delta-rs then reports a conflict with itself. Every attempt of one
   addition carries the same id in its metadata, so a commit is known again.
4. Nothing here deletes a file.

New columns, and table properties, are commits of their own before that (``schema_changes.py``).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial

from offloader.commit.actions import SOURCE_KEY, add_actions, commit_properties
from offloader.commit.addition import Addition
from offloader.commit.file_age import check_file_age
from offloader.commit.retry import commit_until_landed
from offloader.commit.schema_changes import check_files, create_table, evolve
from offloader.commit.storage_clock import storage_clock_ms
from offloader.commit.table_features import check_table_features
from offloader.model import COMMIT_RETRIES, CommitRetries
from reader.errors import CommitConflictError, ConfigurationError
from reader.storage import Storage
from reader.table import CLUSTER_KEY, LEDGERS_KEY, TopicTable, encode_ledgers
from reader.table.log import read_commit

__all__ = ["append", "landed"]


def append(
    storage: Storage,
    table: TopicTable | None,
    addition: Addition,
    *,
    newest: Callable[[], TopicTable | None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    retries: CommitRetries = COMMIT_RETRIES,
) -> TopicTable:
    """Commit ``addition`` on top of ``table`` (None: there is none yet); the table after it.

    ``newest`` reads the log afresh, and gives its newest version; None: by opening the table.

    Raises CommitConflictError when a watermark or a lookback is not the planned one any more, or a
    file too old (``file_age.py``), CorruptError when a file does not fit the table,
    ConfigurationError for another cluster's table, and for a storage on which two commits may both
    win (``Storage.require_exclusive_put``), UnsupportedError for one that is not ours any
    more (``table_features.py``), and UnavailableError when the storage fails; the commit may then
    have landed all the same.
    """
    storage.require_exclusive_put()
    commit_id = uuid.uuid4().hex

    def attempt(on: TopicTable | None) -> None:
        if on is None:
            create_table(storage, addition)
            return
        _check_watermarks(on, addition)
        _check_cluster(on, addition)
        check_table_features(on)
        if not evolve(on, addition):
            check_files(on, addition)
            check_file_age(
                addition.files,
                addition.max_age_ms,
                clock_ms(),
                lambda: storage_clock_ms(storage, addition.topic),
            )
            _commit(on, addition, commit_id)

    def found(after: TopicTable, since: int) -> TopicTable | None:
        return after if landed(storage, after, addition, commit_id, since=since) else None

    return commit_until_landed(
        addition.topic,
        table,
        attempt=attempt,
        landed=found,
        newest=newest or partial(TopicTable.open, storage, addition.topic),
        sleep=sleep,
        retries=retries,
    )


def landed(
    storage: Storage, table: TopicTable, addition: Addition, commit_id: str, *, since: int
) -> bool:
    """Whether the log, after version ``since``, has the addition's commit.

    By its id in the commits' metadata, or by its files: compaction may already have replaced the
    files, and clean-up the commit, but not both.
    """
    for version in range(since + 1, table.version + 1):
        commit = read_commit(storage, addition.topic, version)
        if commit is not None and commit.id == commit_id:
            return True
    if not addition.files or table.version == since:
        return False
    there = table.paths()
    return any(file.path in there for file in addition.files)


def _check_watermarks(table: TopicTable, addition: Addition) -> None:
    for step in addition.advances:
        found = table.watermark(step.partition)
        if found != step.before:
            raise CommitConflictError(
                f"the watermark of {step.partition} is {found}, the plan was made at {step.before}"
            )
        begins = table.lookback(step.partition)
        if begins != step.lookback_before or not step.forward:
            raise CommitConflictError(
                f"the incomplete messages of {step.partition} begin at {begins}, the plan was made "
                f"at {step.lookback_before}, for {step.lookback} at watermark {step.upto}"
            )


def _check_cluster(table: TopicTable, addition: Addition) -> None:
    recorded = table.configuration.get(CLUSTER_KEY, "")
    if recorded and addition.cluster and recorded != addition.cluster:
        raise ConfigurationError(
            f"the table of {addition.topic} was filled from cluster {recorded!r}, "
            f"not {addition.cluster!r}",
            hint=f"point storage.uri elsewhere, or move the table at {table.uri} away",
        )


def _commit(table: TopicTable, addition: Addition, commit_id: str) -> None:
    table.handle.create_write_transaction(
        list(add_actions(addition.files, data_change=True)),
        mode="append",
        schema=table.handle.schema(),
        commit_properties=commit_properties(
            commit_id,
            {LEDGERS_KEY: encode_ledgers(addition.ledgers), SOURCE_KEY: addition.source},
            addition.transactions,
        ),
    )
