"""What the offloader writes, by verbs: files, versions of a topic's table, tables that follow it.

    LakeWriter     write: rows become a file of the table's directory, which nothing refers to yet
    LakeCommitter  commit, replace: a new version of the table; vacuum: files that no version needs
    LakeFollower   follow, lag: a table of another format that shows the versions of the first

What holds for all of them:

1. A version is made only on top of the very ``TopicTable`` that its plan was made on, or of a newer
   one of which all that the plan relied on is checked again. Else CommitConflictError is raised,
   and the caller plans again.
2. After any error the log is read again before anything is concluded: a storage may apply a commit
   and answer with an error. UnavailableError means that a commit may have landed all the same.
3. No error deletes a file. What a failed write or commit leaves behind, ``vacuum`` deletes by age.
4. Each attempt writes a file of another name, and only a file whose ``write`` has returned may be
   committed.
5. A follower commits to its own table alone, after the version that it shows. Nobody waits for it.

``parquet`` has the writer, ``commit`` the committer of Delta tables, ``iceberg`` a follower.
Iceberg has neither a writer nor a committer: its tables name the files of the Delta table, and an
Iceberg commit that came first would be a second index (decision 33). So a follower has no verb that
adds or replaces: it is told which topic, and reads what to show from the Delta log.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

from offloader.model import IcebergLag, IcebergResult
from offloader.output.addition import Addition
from offloader.output.files import UnusedFile, WrittenFile
from offloader.output.replacement import Replacement
from reader.model import Topic
from reader.table import TopicTable


class LakeWriter(ABC):
    """Writes files of one topic's table."""

    @abstractmethod
    def write(
        self, partition: int, ledger: int, rows: Iterable[tuple[int, pa.RecordBatch]]
    ) -> WrittenFile | None:
        """Write (ledger id, rows) pairs of a partition as one file; None, and no file, without any.

        partition, ledger: the partition's index and the file's first ledger, for its name.
        Raises UnavailableError if the storage fails; CorruptError if the closed file has not the
        rows that were written; and what ``rows`` raises. It then may leave a file behind.
        """


class LakeCommitter(ABC):
    """Makes new versions of topics' tables, and deletes files that no version needs."""

    @abstractmethod
    def commit(self, table: TopicTable | None, addition: Addition) -> TopicTable:
        """Commit files and watermarks on top of ``table``; return a version that has them.

        table: the version that was planned on; None: there is no table yet.

        Raises CommitConflictError if a watermark or a lookback is not the planned one any more, or
        a file is too old to be committed. Raises CorruptError if a file does not fit the table.
        Raises ConfigurationError if the table is another cluster's, or the storage may let two
        commits win. Raises UnsupportedError if an external writer has changed the table too much.
        Raises UnavailableError if the storage fails.
        """

    @abstractmethod
    def replace(self, table: TopicTable, replacement: Replacement) -> TopicTable:
        """Commit files for files on top of ``table``; return the version that the commit made.

        Raises CommitConflictError if a file to be removed is gone, a file to be added is too old,
        or another writer has committed since ``table``; and otherwise as ``commit``.
        """

    @abstractmethod
    def vacuum(
        self,
        topic: Topic,
        before_ms: int,
        *,
        dry_run: bool = False,
        raise_if_stopped: Callable[[], None] = lambda: None,
    ) -> Sequence[UnusedFile]:
        """Delete the files that no version needed since ``before_ms``; return them.

        before_ms: ms since the epoch, by the storage's clock.
        dry_run: delete nothing.
        raise_if_stopped: called before each file.

        Raises UnavailableError if the storage fails.
        """


class LakeFollower(ABC):
    """Keeps tables of another format up to date with topics' tables; for one thread at a time."""

    @abstractmethod
    def follow(self, topic: Topic, *, clean: bool = False) -> IcebergResult:
        """Show the newest version of the topic's table.

        clean: remove unused metadata also if that was done less than a day ago.

        Raises ConfigurationError for what only the user can put right. Raises UnsupportedError for
        a table that the format cannot have, or that another writer has changed too much. Raises
        CorruptError if its metadata are damaged, CommitConflictError if other writers were first
        again and again, and UnavailableError otherwise.
        """

    @abstractmethod
    def lag(self, topic: Topic) -> IcebergLag | None:
        """Return how far the table is behind; None if the topic has no table.

        Raises as ``follow``.
        """

    @abstractmethod
    def close(self) -> None:
        """Close connections; they are opened again when they are needed."""
