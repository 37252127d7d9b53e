"""One topic's Iceberg table, brought to the newest version of its Delta table.

1. What a snapshot shows stands in the snapshot: Delta's version and the id of the commit that made
   it (``changes.Shown``). So files and version are one commit of Iceberg's. What was done is never
   done again, also if the process that did it was killed right after, or was another one.
2. The table is loaded, then the Delta log is read, then one commit is made on top of exactly that
   snapshot, which the catalog checks. PyIceberg gets no retries of its own (they would add the same
   files on top of another's). After a refusal, or no answer, the table is loaded again.
3. Nothing here commits to Delta, and nothing waits for it. Delta's commit comes first, always.
4. A snapshot expires long before vacuum may delete a file that it has (``snapshots.superseded``).
5. A table comes with its first snapshot, in one commit: no reader sees it without rows.
6. Others may use the table, and change what does not matter here. What another writer
   did to its columns and files is undone. A table in which single rows were deleted is refused.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update.snapshot import ExpireSnapshots

from offloader.commit import check_clock, storage_clock_ms
from offloader.config import IcebergConfig, OffloadConfig
from offloader.iceberg import snapshots
from offloader.iceberg.catalogs import catalog_errors, directory_of, identifier_of, open_catalog
from offloader.iceberg.changes import Change, added_since, difference, row_count
from offloader.iceberg.data_files import data_file
from offloader.iceberg.storage_files import location_of, path_below
from offloader.iceberg.table_columns import followed_schema, grow, name_mapping, put_back
from offloader.iceberg.table_transactions import ChangingTransaction
from offloader.iceberg.unused_metadata import remove_unused
from offloader.iceberg.version_hint import point
from offloader.model import IcebergLag, IcebergResult
from offloader.output import LakeFollower
from reader import errors
from reader.model import Topic
from reader.storage import Storage
from reader.table import TopicTable
from reader.table.log import read_commit

LOCATION_KEY = "pulsarlake.delta-location"

_PROPERTIES = {
    "format-version": "2",
    "commit.retry.num-retries": "0",
    # The Parquet files are the Delta table's: no engine may delete them with a snapshot or a table.
    "gc.enabled": "false",
    "write.metadata.previous-versions-max": "20",
    # Else each commit adds a manifest for good: PyIceberg, unlike Java, merges none by default.
    "commit.manifest-merge.enabled": "true",
    # Bounds are for skipping files: those of times are wider than the rows. Spark would answer
    # min() and max() by them, were they not said to be counts only.
    "write.metadata.metrics.default": "counts",
}
_AT_CREATION = {"format-version"}

_TRIES = 5
_DAY_SECONDS = 24 * 3_600.0
_MOST_BEHIND_MS = 30_000
_CLOCK_SECONDS = 600.0
_JUMP_SECONDS = 60.0


class IcebergFollower(LakeFollower):
    """The follower with Iceberg tables. ``raise_if_stopped`` is called between steps.

    ``clock_ms``: ms since the epoch; ``storage_ms``: by the storage. ``elapsed``: seconds,
    monotonic, which all pauses are counted by.
    """

    def __init__(
        self,
        storage: Storage,
        config: IcebergConfig,
        offload: OffloadConfig,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        storage_ms: Callable[[Storage, Topic], int] = storage_clock_ms,
        elapsed: Callable[[], float] = time.monotonic,
        raise_if_stopped: Callable[[], None] = lambda: None,
        opened: Callable[[Storage, IcebergConfig], Catalog] = open_catalog,
    ) -> None:
        self._storage = storage
        self._config = config
        self._clock_ms = clock_ms
        self._storage_ms = storage_ms
        self._elapsed = elapsed
        self._agreed_at: float | None = None
        self._agreed_ahead = 0.0
        self._raise_if_stopped = raise_if_stopped
        self._open = opened
        self._catalog: Catalog | None = None
        half = int(offload.vacuum_after.total_seconds() * 1000) // 2
        self._keep_ms = min(int(config.keep_snapshots.total_seconds() * 1000), half)
        self._cleaned: dict[Topic, float] = {}

    def close(self) -> None:
        """Close what was opened; it is opened again when it is needed."""
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()

    def follow(self, topic: Topic, *, clean: bool = False) -> IcebergResult:
        """Bring the topic's Iceberg table to the newest Delta version: see ``LakeFollower``."""
        tries = 0
        while True:
            self._raise_if_stopped()
            tries += 1
            try:
                with self._errors(topic):
                    return self._follow(topic, clean)
            except errors.CommitConflictError:
                if tries == _TRIES:
                    raise

    def lag(self, topic: Topic) -> IcebergLag | None:
        """Return how far it is behind; None without a Delta table: see ``LakeFollower``."""
        with self._errors(topic):
            table = self._load(topic)
            shown = snapshots.shown_by(table) if table is not None else None
            newest = TopicTable.open(self._storage, topic)
            if newest is None:
                return None
            if shown is None:
                return IcebergLag(None, None, 0.0)
            since = self._clock_ms()
            if shown.version < newest.version:
                first = read_commit(self._storage, topic, shown.version + 1)
                since = first.at_ms if first else _made_ms(table)
            seconds = (self._clock_ms() - since) / 1000
            return IcebergLag(
                shown.version, max(0, newest.version - shown.version), max(0.0, seconds)
            )

    def _errors(self, topic: Topic) -> AbstractContextManager[None]:
        return catalog_errors(f"the Iceberg table of {topic}", self._config.options)

    # -- the steps -----------------------------------------------------------------------------

    def _follow(self, topic: Topic, clean: bool) -> IcebergResult:
        table = self._load(topic)
        restored = table is not None and self._settle(topic, table)
        shown = snapshots.shown_by(table) if table is not None else None
        change = added_since(self._storage, topic, shown) if shown is not None else None
        live: Mapping[str, list[DataFile]] = {}
        if change is None:
            if table is not None:
                live = snapshots.live_files(table, self._delta_location(topic))
            names = {name: len(files) for name, files in live.items()}
            change = difference(self._storage, topic, shown, names)
        if change is None:
            return IcebergResult(topic)  # there is no Delta table, or it was deleted
        before_ms = self._clock_ms() - self._keep_ms
        old = snapshots.superseded(table, before_ms) if table is not None else []
        news = change.shown != shown or change.added or change.removed
        if news or old:
            table = self._commit(topic, table, change if news else None, live, old)
        assert table is not None  # one that was not there has just been made
        self._point(topic, table)
        return IcebergResult(
            topic,
            version=change.shown.version,
            before=shown.version if shown else None,
            added=len(change.added),
            removed=len(change.removed),
            expired=len(old),
            cleaned=self._clean(topic, clean),
            restored=restored,
        )

    def _commit(
        self,
        topic: Topic,
        table: Table | None,
        change: Change | None,
        live: Mapping[str, list[DataFile]],
        expired: list[Snapshot],
    ) -> Table:
        """Commit the change; return the table that has it."""
        self._check_clock(topic, table)
        transaction = self._begun(
            topic, snapshots.without_history(table, expired) if table is not None else None, change
        )
        if change is not None:
            schema = transaction.table_metadata.schema()
            rows = row_count(self._storage, topic, change.added)
            update = transaction.update_snapshot(
                snapshot_properties=snapshots.snapshot_properties(change.shown, change.since_ms)
            )
            with update.overwrite() if change.removed else update.merge_append() as files:
                for name in change.removed:
                    files.delete_data_file(live[name][0])
                for name, one in change.added.items():
                    location = f"{self._delta_location(topic)}/{name}"
                    files.append_data_file(data_file(one, location, rows[name], schema))
        if expired:
            ExpireSnapshots(transaction).by_ids([one.snapshot_id for one in expired]).commit()
        self._raise_if_stopped()
        try:
            committed = transaction.commit_transaction()
        except ValueError as error:
            if not expired:
                raise
            raise errors.CommitConflictError(
                f"another offloader has expired the same: {error}"
            ) from error
        if table is None:  # what made it cannot be brought up to date
            return self._opened.load_table(identifier_of(self._config, topic))
        return committed

    def _begun(self, topic: Topic, table: Table | None, change: Change | None) -> Transaction:
        """Begin to change the table, or to make it, with the columns that the version has."""
        columns = change.columns if change is not None else None
        if table is None:
            assert columns is not None  # of a difference
            return self._create(topic, columns)
        transaction = ChangingTransaction(table)
        if columns is not None:
            grow(transaction, columns)
        return transaction

    def _point(self, topic: Topic, table: Table) -> None:
        """Until it points at what the catalog says after it was written: another may be ahead."""
        directory = self._directory(topic) + "/metadata"
        while True:
            path = path_below(self._storage, table.metadata_location)
            if path is None or not path.startswith(directory + "/"):
                return  # a catalog that puts metadata elsewhere
            if not point(self._storage, directory, table.metadata_location):
                return
            self._raise_if_stopped()
            table.refresh()

    # -- the table -----------------------------------------------------------------------------

    @property
    def _opened(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._open(self._storage, self._config)
        return self._catalog

    def _load(self, topic: Topic) -> Table | None:
        try:
            return self._opened.load_table(identifier_of(self._config, topic))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _create(self, topic: Topic, columns: pa.Schema) -> Transaction:
        identifier = identifier_of(self._config, topic)
        for depth in range(1, len(identifier)):
            self._make_namespace(identifier[:depth])
        try:
            transaction = self._opened.create_table_transaction(
                identifier,
                columns,
                location=location_of(self._storage, self._directory(topic)),
                properties={**_PROPERTIES, LOCATION_KEY: self._delta_location(topic)},
            )
        except (TypeError, ValueError, UnsupportedPyArrowTypeException) as error:
            raise errors.UnsupportedError(
                f"there can be no Iceberg table of {topic}: {errors.plain_text(error)}"
            ) from error
        return transaction.set_properties(name_mapping(transaction.table_metadata.schema()))

    def _make_namespace(self, namespace: tuple[str, ...]) -> None:
        try:
            self._opened.create_namespace_if_not_exists(namespace)
        except Exception:
            # Another offloader makes it at the same time, and each catalog says so in another way.
            if not self._opened.namespace_exists(namespace):
                raise

    def _settle(self, topic: Topic, table: Table) -> bool:
        """Is it ours to follow? Then it gets the properties and columns that all here relies on.

        Whether columns had to be put back as they were.
        """
        followed = table.properties.get(LOCATION_KEY)
        if followed != self._delta_location(topic):
            name = ".".join(identifier_of(self._config, topic))
            raise errors.ConfigurationError(
                f"the Iceberg table {name} is not that of {topic}: it follows "
                f"{followed or 'no Delta table of ours'}",
                hint="two topics or two lakes have one name: see iceberg.name, iceberg.namespace "
                "and iceberg.table. If it is an old one, drop it",
            )
        schema = followed_schema(table, snapshots.newest_of_ours(table))
        wanted = {**_PROPERTIES, **name_mapping(schema)}
        missing = {
            k: v
            for k, v in wanted.items()
            if k not in _AT_CREATION and table.properties.get(k) != v
        }
        restored = schema.schema_id != table.schema().schema_id
        if restored or missing:
            self._check_clock(topic, table)
            with ChangingTransaction(table) as transaction:
                if restored:
                    put_back(transaction, schema)
                transaction.set_properties(missing)
        return restored

    def _check_clock(self, topic: Topic, table: Table | None) -> None:
        """Raise UnavailableError where a commit made now would be earlier than the last one.

        Also where this machine's clock is not the storage's. That is asked once in ten minutes, and
        at once after this machine's clock was set.

        Java's readers refuse a table whose snapshots are out of order by more than a minute. So one
        commit of a machine whose clock is ahead would keep all others from any, and expire
        snapshots that readers were told they have.
        """
        now = self._clock_ms()
        behind_ms = table.metadata.last_updated_ms - now if table is not None else 0
        if behind_ms > _MOST_BEHIND_MS and table is not None:
            raise errors.UnavailableError(
                f"this machine's clock is {behind_ms // 1000} s behind that of the last commit to "
                f"the Iceberg table {'.'.join(table.name())}",
                hint="synchronise the clocks by NTP, and wait; or drop the table: it is made again",
            )
        elapsed = self._elapsed()
        ahead = now / 1000 - elapsed
        if (
            self._agreed_at is not None
            and elapsed - self._agreed_at < _CLOCK_SECONDS
            and abs(ahead - self._agreed_ahead) < _JUMP_SECONDS
        ):
            return
        check_clock(
            self._clock_ms,
            lambda: self._storage_ms(self._storage, topic),
            "Iceberg does not follow, because its snapshots would expire too early or too late",
        )
        self._agreed_at, self._agreed_ahead = elapsed, ahead

    # -- what is old ---------------------------------------------------------------------------

    def _clean(self, topic: Topic, clean: bool) -> int:
        now, last = self._elapsed(), self._cleaned.get(topic)
        if not clean and last is not None and now - last < _DAY_SECONDS:
            return 0
        # Also where it fails, say for want of a permission: to follow is more urgent.
        self._cleaned[topic] = now
        identifier = identifier_of(self._config, topic)
        return remove_unused(
            self._storage,
            self._directory(topic) + "/metadata",
            lambda: self._opened.load_table(identifier),
            before_ms=self._clock_ms() - self._keep_ms,
            raise_if_stopped=self._raise_if_stopped,
        )

    def _directory(self, topic: Topic) -> str:
        return directory_of(self._config, identifier_of(self._config, topic))

    def _delta_location(self, topic: Topic) -> str:
        path = self._storage.table_uri(topic).removeprefix(self._storage.root + "/")
        return location_of(self._storage, path)


def _made_ms(table: Table | None) -> int:
    """When the current snapshot was: of a commit that the log has forgotten, the next best."""
    snapshot = table.current_snapshot() if table is not None else None
    return snapshot.timestamp_ms if snapshot is not None else 0
