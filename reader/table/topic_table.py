"""One version of a topic's table: watermarks, schema, files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.table import ProtocolVersions

from reader.errors import CommitConflictError, CorruptError, NotFoundError
from reader.model import Partition, Position, SchemaInfo, Topic
from reader.model.columns import METADATA_NAMES
from reader.storage import Storage
from reader.table.definition import TableDefinition
from reader.table.file_paths import require_inside
from reader.table.log import LoggedCommit, newest_first, read_commit, recorded_ledgers
from reader.table.log_numbers import PartitionNumbers, TopicNumbers
from reader.table.offloaded_ledgers import OffloadedLedger
from reader.table.properties import CREATED_KEY, SCHEMAS_KEY
from reader.table.reading_errors import storage_error
from reader.table.remembered_schemas import decode_schemas

BATCH_ROWS = 1 << 17
"""How many rows a batch of ``TopicTable.batches`` has at most, where its caller does not say."""


class TopicTable:
    """One version of a topic's table. Commits go through ``handle`` and never a newer one."""

    def __init__(
        self,
        storage: Storage,
        topic: Topic,
        version: int,
        *,
        handle: DeltaTable | None = None,
        commit: LoggedCommit | None = None,
        transactions: dict[str, int | None] | None = None,
        definition: TableDefinition | None = None,
    ) -> None:
        self.uri = storage.table_uri(topic)
        self.topic = topic
        self.version = version
        self._storage = storage
        self._handle = handle
        self._commit = commit
        self._transactions = {} if transactions is None else transactions
        self._known_definition = definition

    @classmethod
    def open(cls, storage: Storage, topic: Topic, version: int | None = None) -> TopicTable | None:
        """The newest version (or ``version``); None where there is no table yet.

        Raises UnavailableError when the storage does not answer: that is not "no table".
        """
        handle = _open(storage, topic, version)
        return None if handle is None else cls(storage, topic, handle.version(), handle=handle)

    @classmethod
    def open_at(cls, storage: Storage, topic: Topic, at: int) -> TopicTable | None:
        """The newest version that was made at ``at`` (µs since the epoch) or before.

        None where there is no table. Raises NotFoundError where all versions that the log has are
        newer, and as ``open`` does.
        """
        newest = cls.open(storage, topic)
        if newest is None:
            return None
        for commit in newest.commits():
            if commit.at_ms > 0 and commit.at_ms * 1000 <= at:
                same = commit.version == newest.version
                return newest if same else cls.open(storage, topic, commit.version)
        raise NotFoundError(
            f"the log of the table of {topic} has no version that is as old",
            hint="log clean-up removes old ones",
        )

    def made_by(self, commit: LoggedCommit | None, *, files: bool) -> TopicTable:
        """The same version, to be kept: with its files, or what it says in short.

        ``commit``: the one that made this version, as it was read before this was opened; None
        where nobody did.
        """
        handle = self._handle if files else None
        return self._with(self.version, commit, self._transactions, handle)

    def followed_by(self, commits: Sequence[LoggedCommit]) -> TopicTable | None:
        """The version after ``commits``, of which the first is the one that made this version.

        None where they do not tell: this version is not known to be the log's, or one of them says
        anew what the table is, or is not ours.
        """
        if not (commits and self._commit and self._commit.id == commits[0].id != ""):
            return None
        if any(one.redefines or not one.id for one in commits[1:]):
            return None
        transactions = dict(self._transactions)
        for one in commits[1:]:
            transactions.update(one.transactions)
        return self._with(commits[-1].version, commits[-1], transactions)

    def _with(
        self,
        version: int,
        commit: LoggedCommit | None,
        transactions: dict[str, int | None],
        handle: DeltaTable | None = None,
    ) -> TopicTable:
        return TopicTable(
            self._storage,
            self.topic,
            version,
            handle=handle,
            commit=commit,
            transactions=transactions,
            definition=self._definition,
        )

    @property
    def handle(self) -> DeltaTable:
        """delta-rs's of this very version, opened when it is first asked for.

        Raises UnavailableError, and CommitConflictError where the log is another one by now.
        """
        if self._handle is None:
            handle = _open(self._storage, self.topic, self.version)
            # Read before it was opened, and now: so what was opened is of this log.
            now = read_commit(self._storage, self.topic, self.version)
            if handle is None or now is None or self._commit is None or now.id != self._commit.id:
                raise CommitConflictError(f"the table at {self.uri} was replaced meanwhile")
            self._handle = handle
        return self._handle

    @cached_property
    def _definition(self) -> TableDefinition:
        return self._known_definition or TableDefinition.of(self.handle)

    @property
    def id(self) -> str:
        """What the log calls the table, wherever it lies: ``metaData.id`` of the Delta protocol."""
        return self._definition.id

    @property
    def protocol(self) -> ProtocolVersions:
        """Versions and features of Delta's protocol that the table asks of who reads or writes."""
        return self._definition.protocol

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that are in no file: none, in a table of ours."""
        return self._definition.partition_columns

    def numbers(self, partition: Partition) -> PartitionNumbers:
        """Return the numbers that the log keeps of a partition."""
        return PartitionNumbers(partition.full_name, self._txn)

    @property
    def topic_numbers(self) -> TopicNumbers:
        """The numbers that the log keeps of the topic."""
        return TopicNumbers(self.topic.full_name, self._txn)

    def watermark(self, partition: Partition) -> int:
        """Return the last ledger id of the partition that is wholly in the table; -1 for none."""
        return self.numbers(partition).watermark

    def end(self, partition: Partition) -> Position | None:
        """The last entry of the watermark's ledger, with entry -1 if the ledger has none.

        Return None if the partition has no watermark. The log never forgets it.
        """
        numbers = self.numbers(partition)
        watermark = numbers.watermark
        if watermark < 0:
            return None
        entries = numbers.entries
        if entries is None:
            raise CorruptError(
                f"the table at {self.uri} has the watermark {watermark} of {partition}, but not "
                "the last entry of that ledger"
            )
        return Position(watermark, entries - 1)

    def partitions(self) -> list[Partition]:
        """Return the partitions that have rows here. A row without ``__partition`` has none: it is
        an external writer's."""
        files = self.files()
        known = "min.__partition" in files.schema.names
        indexes: set[Any] = set(files.column("min.__partition").to_pylist()) if known else {None}
        if None in indexes:  # a file without statistics, or a table that has just got a struct
            rows = self.batches(["__partition"])
            indexes = {one for batch in rows for one in pc.unique(batch.column(0)).to_pylist()}
        return [Partition(self.topic, int(one)) for one in sorted(indexes - {None})]

    @property
    def schema(self) -> pa.Schema:
        """All columns as Arrow, in the table's order."""
        return self._definition.schema

    @property
    def payload_schema(self) -> pa.Schema:
        """The payload's columns only."""
        return pa.schema([f for f in self.schema if f.name not in METADATA_NAMES])

    @property
    def configuration(self) -> Mapping[str, str]:
        """The table's properties."""
        return self._definition.configuration

    @property
    def schemas(self) -> tuple[SchemaInfo, ...]:
        """The schema versions that the table remembers, the oldest first."""
        return decode_schemas(self.configuration.get(SCHEMAS_KEY, ""))

    def created_at(self, partition: Partition) -> str | None:
        """The managed ledger's creation time that the table was filled from."""
        return self.configuration.get(CREATED_KEY + partition.full_name)

    def is_filled_from(self, partition: Partition, created_at: str) -> bool:
        """Whether a managed ledger is the one that the table was filled from, as far as is known.

        ``created_at``: its creation time, "" if Pulsar lists none.
        """
        ours = self.created_at(partition)
        return not ours or not created_at or ours == created_at

    def ledgers(self) -> list[OffloadedLedger]:
        """What the commits still in the log say of their ledgers, oldest first.

        Log clean-up removes commits by age, so old ledgers may be missing here.
        """
        return recorded_ledgers(self.commits())

    def commits(self) -> Iterator[LoggedCommit]:
        """Commits up to this version, newest first, as far as the log still has them.

        Read as they are asked for. Raises UnavailableError.
        """
        return newest_first(partial(read_commit, self._storage, self.topic), self.version)

    def _txn(self, key: str) -> int | None:
        # One version has one answer, and delta-rs reads the log for each.
        if key not in self._transactions:
            with self._storage_errors():
                found = self._transaction(key)
            self._transactions[key] = None if found is None else int(found)
        return self._transactions[key]

    def _transaction(self, key: str) -> int | None:
        try:
            return self.handle.transaction_version(key)
        except DeltaError:
            if self._commit is None:
                raise
        # Of a version that is kept: clean-up may have removed commits that it was opened with.
        self._handle = None
        return self.handle.transaction_version(key)

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        """Translate errors: delta-rs may read parts of a version only when they are needed."""
        try:
            yield
        except (DeltaError, OSError) as error:
            raise storage_error(error, self.uri) from error

    def dataset(self) -> pads.Dataset:
        """The version's files for pyarrow.

        Through pyarrow's own filesystem: delta-rs's Python one may abort the interpreter at exit
        (seen with 1.6.6). Raises CorruptError as ``files`` does.
        """
        self.files()
        filesystem, path = self._storage.directory(self.topic)
        return self.handle.to_pyarrow_dataset(filesystem=pafs.SubTreeFileSystem(path, filesystem))

    def count(self, where: pc.Expression) -> int:
        """How many rows of this version match. Raises as ``batches``."""
        dataset = self.dataset()
        with self._storage_errors():
            return int(dataset.count_rows(filter=where))

    def batches(
        self,
        columns: Sequence[str],
        where: pc.Expression | None = None,
        *,
        batch_rows: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows of this version as batches, columns that the table lacks left out.

        ``batch_rows``: how many a batch has at most, by default BATCH_ROWS. Raises UnavailableError
        where a file cannot be read, and as ``dataset`` does.
        """
        dataset = self.dataset()
        have = [name for name in columns if name in dataset.schema.names]
        with self._storage_errors():
            yield from dataset.to_batches(
                columns=have, filter=where, use_threads=False, batch_size=batch_rows or BATCH_ROWS
            )

    def files(self) -> pa.Table:
        """The version's Parquet files, a row each: ``path``, ``size_bytes``, statistics.

        Raises CorruptError for a path that leads out of the table.
        """
        return self._files

    @cached_property
    def _files(self) -> pa.Table:
        with self._storage_errors():
            found = pa.table(self.handle.get_add_actions(flatten=True))
        require_inside(found.column("path"), self.uri)
        return found

    @property
    def is_empty(self) -> bool:
        """Whether the version has no rows: only empty ledgers, so far. Raises as ``files``."""
        return not self.files().num_rows

    def paths(self) -> set[str]:
        """The version's Parquet files, as the log names them."""
        return {str(path) for path in self.files().column("path").to_pylist()}

    @property
    def files_in_memory(self) -> int:
        """How many files' statistics it has read."""
        found: pa.Table | None = self.__dict__.get("_files")
        return 0 if found is None else int(found.num_rows)


def _open(storage: Storage, topic: Topic, version: int | None) -> DeltaTable | None:
    uri = storage.table_uri(topic)
    storage.require_answer()
    try:
        return DeltaTable(uri, version=version, storage_options=storage.delta_options())
    except TableNotFoundError:
        return None
    except (DeltaError, OSError, ValueError) as error:
        raise storage_error(error, uri) from error
