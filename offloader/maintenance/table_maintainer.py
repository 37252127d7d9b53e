"""All maintenance of one topic's table: old rows out, small files together, unused files gone.

Each step is a commit of its own, or none; a stop in between leaves the table right, and at worst
files that nothing refers to. Of two maintainers of one table one commits, and the other plans again
at its next turn. Watermarks are never touched.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from offloader import model
from offloader.commit import (
    DeltaCommitter,
    check_clock,
    check_table_features,
    max_file_age_ms,
    storage_clock_ms,
)
from offloader.config import OffloadConfig
from offloader.maintenance.aborted_since import AbortedSince
from offloader.maintenance.expired_rows import old_rows, whole_files
from offloader.maintenance.rewrite import Rewritten, rewrite
from offloader.maintenance.selection import compactions, expiry
from offloader.maintenance.table_files import TableFile, files_of
from offloader.output import LakeCommitter, Replacement
from reader.clients import Clients
from reader.errors import CommitConflictError, PulsarLakeError
from reader.model import Topic
from reader.storage import Storage
from reader.table import TopicTable

RUN_BYTES = 4 << 30
"""What one turn rewrites at most; the rest is for the next."""

_VACUUM_SECONDS = 24 * 3_600.0


class TableMaintainer:
    """Maintains tables, one topic at a time.

    ``raise_if_stopped`` is called all the while. A day between two vacuums is counted by the
    monotonic clock. ``pulsar``: to find rows that it calls aborted by now (``aborted_since.py``);
    not used with ``offload.source = "broker"``, as brokers do not show what is aborted.
    """

    def __init__(
        self,
        storage: Storage,
        config: OffloadConfig,
        *,
        pulsar: Clients | None = None,
        clocks: model.Clocks = model.HOST_CLOCKS,
        storage_clock_ms: Callable[[Storage, Topic], int] = storage_clock_ms,
        raise_if_stopped: Callable[[], None] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._config = config
        self._storage = storage
        self._aborted_since = (
            AbortedSince(pulsar) if pulsar is not None and config.source != "broker" else None
        )
        self._committer: LakeCommitter = DeltaCommitter(storage, clocks=clocks)
        self._clock_ms = clocks.ms
        self._storage_clock_ms = storage_clock_ms
        self._elapsed = clocks.elapsed
        self._raise_if_stopped = raise_if_stopped
        self._say = model.listener(say)
        self._vacuumed: dict[Topic, float] = {}

    def maintain(
        self, topic: Topic, *, dry_run: bool = False, vacuum: bool = False
    ) -> model.MaintenanceResult:
        """Whatever the table needs. ``vacuum``: also if the last one was less than a day ago.

        Raises UnsupportedError for a table that an external writer has changed too much,
        UnavailableError when the storage fails or its clock differs, CorruptError where files are
        not what the log says: those are left alone, and the error is raised after everything else.
        """
        settings = model.settings_of(self._config, topic)
        table = TopicTable.open(self._storage, topic)
        result = model.MaintenanceResult(topic, dry_run=dry_run)
        if table is None:
            return result
        check_table_features(table)
        vacuum = vacuum or dry_run or self._vacuum_is_due(topic)
        if not dry_run and (vacuum or settings.retention is not None):
            check_clock(self._clock_ms, lambda: self._storage_clock_ms(self._storage, topic))
        failed: list[PulsarLakeError] = []
        table, result = self._expire(table, settings, result, failed)
        if not result.more:
            table, result = self._compact(table, settings, result, failed)
        try:
            if vacuum:
                result = self._vacuum(topic, settings, result)
        except model.StoppedError:
            raise
        except PulsarLakeError as error:
            failed.append(error)
        result = replace(result, version=table.version)
        if not result.more:
            result = self._look_back(table, result)
        if failed:
            if not result.idle:
                self._say(str(result))
            raise failed[0]
        return result

    def _rewrite(
        self,
        table: TopicTable,
        files: Sequence[TableFile],
        failed: list[PulsarLakeError],
        published_from: int | None = None,
    ) -> Rewritten | None:
        """None, and one more in ``failed``, where that fails: other files are independent."""
        self._raise_if_stopped()
        try:
            return rewrite(
                self._storage,
                table,
                files,
                published_from=published_from,
                raise_if_stopped=self._raise_if_stopped,
            )
        except model.StoppedError:
            raise
        except PulsarLakeError as error:
            failed.append(error)
            return None

    # -- old rows ------------------------------------------------------------------------------

    def _expire(
        self,
        table: TopicTable,
        settings: OffloadConfig,
        result: model.MaintenanceResult,
        failed: list[PulsarLakeError],
    ) -> tuple[TopicTable, model.MaintenanceResult]:
        if settings.retention is None:
            return table, result
        retention_us = int(settings.retention.total_seconds() * 1_000_000)
        plan = expiry(files_of(table), self._clock_ms() * 1000, retention_us)
        if plan.gone:
            if not result.dry_run:
                after = self._replace(
                    table, whole_files(self._storage, table, plan.gone, plan.before)
                )
                if after is None:
                    return table, replace(result, more=True)
                table = after
            result = replace(
                result,
                expired_files=len(plan.gone),
                expired_rows=sum(one.rows for one in plan.gone),
                expired_bytes=sum(one.size for one in plan.gone),
            )
        budget = RUN_BYTES
        for file in plan.partly:
            if budget <= 0:
                return table, replace(result, more=True)
            if result.dry_run:
                budget -= file.size
                result = replace(result, rewritten=result.rewritten + 1)
                continue
            found = self._rewrite(table, [file], failed, plan.before)
            if found is None:
                continue
            budget -= file.size
            after = self._replace(table, old_rows(table, file, found, plan.before))
            if after is None:
                return table, replace(result, more=True)
            table = after
            result = replace(
                result,
                rewritten=result.rewritten + 1,
                expired_rows=result.expired_rows + found.dropped,
            )
        return table, result

    # -- small files ---------------------------------------------------------------------------

    def _compact(
        self,
        table: TopicTable,
        settings: OffloadConfig,
        result: model.MaintenanceResult,
        failed: list[PulsarLakeError],
    ) -> tuple[TopicTable, model.MaintenanceResult]:
        budget = RUN_BYTES
        for group in compactions(files_of(table), settings.target_file_bytes):
            if budget <= 0:
                return table, replace(result, more=True)
            size = sum(one.size for one in group)
            if not result.dry_run:
                found = self._rewrite(table, group, failed)
                if found is None:
                    continue
                written = found.file
                assert written is not None  # it has all rows of its files, and these have some
                note = {"operation": "compact", "files": len(group), "rows": written.rows}
                removes = {one.path: one.size for one in group}
                after = self._replace(table, Replacement(removes, (written,), False, note))
                if after is None:
                    return table, replace(result, more=True)
                table = after
            budget -= size
            result = replace(
                result,
                compacted=result.compacted + len(group),
                into=result.into + 1,
                compacted_bytes=result.compacted_bytes + size,
            )
        return table, result

    def _replace(self, table: TopicTable, replacement: Replacement) -> TopicTable | None:
        """The table after the commit; None after a conflict, or where writing took too long."""
        self._raise_if_stopped()
        replacement = replace(replacement, max_age_ms=max_file_age_ms(self._config))
        try:
            return self._committer.replace(table, replacement)
        except CommitConflictError as error:
            self._say(f"{table.topic}: maintenance starts over at its next turn: {error}")
            return None

    # -- rows that Pulsar has taken back -------------------------------------------------------

    def _look_back(
        self, table: TopicTable, result: model.MaintenanceResult
    ) -> model.MaintenanceResult:
        if self._aborted_since is None:
            return result
        try:
            found = self._aborted_since.find(table, self._raise_if_stopped)
        except model.StoppedError:
            raise
        except PulsarLakeError as error:
            # The table is maintained all the same, whether there is a Pulsar or not.
            self._say(f"{table.topic}: not compared with Pulsar's aborted transactions: {error}")
            return result
        return replace(
            result,
            aborted_rows=found.rows,
            aborted_transactions=found.transactions,
            aborted_at=found.first,
        )

    # -- unused files --------------------------------------------------------------------------

    def _vacuum_is_due(self, topic: Topic) -> bool:
        last = self._vacuumed.get(topic)
        return last is None or self._elapsed() - last >= _VACUUM_SECONDS

    def _vacuum(
        self, topic: Topic, settings: OffloadConfig, result: model.MaintenanceResult
    ) -> model.MaintenanceResult:
        now_ms = self._clock_ms()
        window = int(settings.vacuum_after.total_seconds() * 1000)
        files = self._committer.vacuum(
            topic, now_ms - window, dry_run=result.dry_run, raise_if_stopped=self._raise_if_stopped
        )
        if not result.dry_run:
            self._vacuumed[topic] = self._elapsed()
        return replace(result, vacuumed=len(files), vacuumed_bytes=sum(one.size for one in files))
