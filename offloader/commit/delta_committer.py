"""Versions of a topic's Delta table: additions and replacements, each one commit of its log.

An *addition* is files and watermarks.

1. One commit carries a ledger's files *and* the partition's new numbers: the watermark, where the
   messages begin that it leaves incomplete, which ledger is to be the next. A commit that only
   gives up chunked messages has no ledger and leaves the watermark out.
2. It goes through a handle of the version whose watermarks, and those beginnings, the plan was made
   on (``TopicTable.handle``), and only if one of the two grows for each partition. delta-rs gets no
   retries of its own: the log must not have moved since that version.
   Moved by another commit that leaves our watermarks alone (compaction, new columns): a newer
   handle is checked in the same way and the same files are committed through it.
   Moved by another offloader: CommitConflictError, and the caller plans again.
3. After *any* error the log is read again before anything is concluded: a store may apply the PUT
   and then answer 500, and delta-rs then reports a conflict with itself. Every attempt of one
   commit carries the same id in its metadata, so a commit is known again.

New columns, and table properties, are commits of their own before that (``schema_changes.py``).

A *replacement* is files for files: what maintenance commits. Watermarks stay as they are.

4. It is refused where a file that it removes is not in the table any more (another maintainer was
   first, or a RESTORE): delta-rs by itself removes what is not there, and adds the rows twice. So
   it is where an external writer has committed since the plan: a path may have got a deletion
   vector.
5. Where the log has moved otherwise, a newer handle is checked in the same way: an addition never
   hinders it, and it hinders no addition except for one more try.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Sequence

from deltalake.transaction import AddAction, RemoveAction

from offloader.commit.actions import MAINTENANCE_KEY, SOURCE_KEY, add_actions, commit_properties
from offloader.commit.file_age import check_file_age
from offloader.commit.retry import commit_until_landed
from offloader.commit.schema_changes import check_files, create_table, evolve
from offloader.commit.storage_clock import storage_clock_ms
from offloader.commit.table_features import check_table_features
from offloader.commit.vacuum import remove, unused_files
from offloader.model import HOST_CLOCKS, Clocks
from offloader.output import Addition, LakeCommitter, Replacement, UnusedFile, WrittenFile
from reader.errors import CommitConflictError, ConfigurationError
from reader.model import Topic
from reader.storage import Storage
from reader.table import CLUSTER_KEY, LEDGERS_KEY, TopicTable, encode_ledgers
from reader.table.log import read_commit


class DeltaCommitter(LakeCommitter):
    """The committer of Delta tables. Thread-safe.

    newest: reads the log afresh, and returns its newest version; None: by opening the table.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        newest: Callable[[Topic], TopicTable | None] | None = None,
        clocks: Clocks = HOST_CLOCKS,
    ) -> None:
        self._storage = storage
        self._newest = newest or (lambda topic: TopicTable.open(storage, topic))
        self._clocks = clocks

    def commit(self, table: TopicTable | None, addition: Addition) -> TopicTable:
        """Commit ``addition`` on top of ``table``: see ``LakeCommitter.commit``."""
        commit_id = uuid.uuid4().hex

        def attempt(on: TopicTable | None) -> None:
            if on is None:
                create_table(self._storage, addition)
                return
            _check_watermarks(on, addition)
            _check_cluster(on, addition)
            check_table_features(on)
            if not evolve(on, addition):
                check_files(on, addition)
                self._check_age(addition.topic, addition.files, addition.max_age_ms)
                info = {LEDGERS_KEY: encode_ledgers(addition.ledgers), SOURCE_KEY: addition.source}
                added = add_actions(addition.files, data_change=True)
                _write(on, added, commit_id, info, addition.transactions)

        def found(after: TopicTable, since: int) -> TopicTable | None:
            return after if landed(self._storage, after, addition, commit_id, since=since) else None

        return self._until_landed(addition.topic, table, attempt, found)

    def replace(self, table: TopicTable, replacement: Replacement) -> TopicTable:
        """Commit ``replacement`` on top of ``table``: see ``LakeCommitter.replace``."""
        commit_id = uuid.uuid4().hex

        def attempt(on: TopicTable | None) -> None:
            if on is None:
                raise CommitConflictError(f"the table of {table.topic} is gone")
            check_table_features(on)
            _check_removed(on, replacement)
            self._check_age(table.topic, replacement.adds, replacement.max_age_ms)
            now_ms = self._clocks.ms()
            removed = [
                RemoveAction(path, replacement.changes, now_ms, size, {})
                for path, size in replacement.removes.items()
            ]
            added = add_actions(replacement.adds, data_change=replacement.changes)
            info = {MAINTENANCE_KEY: json.dumps(dict(replacement.note), separators=(",", ":"))}
            _write(on, [*removed, *added], commit_id, info, replacement.transactions(on))

        def found(after: TopicTable, since: int) -> TopicTable | None:
            return _replaced(self._storage, after, commit_id, since=since)

        return self._until_landed(table.topic, table, attempt, found)

    def vacuum(
        self,
        topic: Topic,
        before_ms: int,
        *,
        dry_run: bool = False,
        raise_if_stopped: Callable[[], None] = lambda: None,
    ) -> Sequence[UnusedFile]:
        """Delete unused files: see ``LakeCommitter.vacuum``."""
        files = unused_files(self._storage, topic, before_ms)
        if not dry_run:
            remove(self._storage, topic, files, raise_if_stopped=raise_if_stopped)
        return files

    def _until_landed(
        self,
        topic: Topic,
        table: TopicTable | None,
        attempt: Callable[[TopicTable | None], None],
        found: Callable[[TopicTable, int], TopicTable | None],
    ) -> TopicTable:
        self._storage.require_exclusive_put()
        return commit_until_landed(
            topic,
            table,
            attempt=attempt,
            landed=found,
            newest=lambda: self._newest(topic),
            sleep=self._clocks.sleep,
        )

    def _check_age(self, topic: Topic, files: Sequence[WrittenFile], max_age_ms: int) -> None:
        check_file_age(
            files, max_age_ms, self._clocks.ms(), lambda: storage_clock_ms(self._storage, topic)
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


def _replaced(
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


def _check_watermarks(table: TopicTable, addition: Addition) -> None:
    for step in addition.advances:
        found = table.watermark(step.partition)
        if found != step.before:
            raise CommitConflictError(
                f"the watermark of {step.partition} is {found}, the plan was made at {step.before}"
            )
        begins = table.numbers(step.partition).lookback
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


def _check_removed(table: TopicTable, replacement: Replacement) -> None:
    gone = replacement.removes.keys() - table.paths()
    if gone:
        raise CommitConflictError(
            f"{len(gone)} files of {table.topic} were replaced meanwhile: {min(gone)}"
        )


def _write(
    table: TopicTable,
    actions: Iterable[AddAction | RemoveAction],
    commit_id: str,
    info: dict[str, str],
    transactions: dict[str, int],
) -> None:
    table.handle.create_write_transaction(
        list(actions),
        mode="append",
        schema=table.handle.schema(),
        commit_properties=commit_properties(commit_id, info, transactions),
    )
