"""Expiry, compaction, vacuum, and the Iceberg tables that follow."""

from tests.mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

_VACUUM = "tests/maintenance/test_vacuum.py"

MUTATIONS = (
    Mutation(
        "vacuum-deletes-superseded-files-at-once",
        "offloader/commit/vacuum.py",
        "used |= _plain(oldest.paths())",
        "used |= _plain(table.paths())",
        "queries that began before a compaction fail: their files are gone",
        (f"{_VACUUM}::test_a_file_stays_for_the_window_after_it_was_superseded",),
    ),
    Mutation(
        "vacuum-ignores-the-grace",
        "offloader/commit/vacuum.py",
        "old = [one for one, at in (*files, *unfinished) if at < before_ms]",
        "old = [one for one, _ in (*files, *unfinished)]",
        "files that a task has written and not committed yet are deleted: the commit names files "
        "that are gone",
        (f"{_VACUUM}::test_files_that_nobody_committed",),
    ),
    Mutation(
        "vacuum-deletes-live-files",
        "offloader/commit/vacuum.py",
        "[one for one in candidates if one.path not in used]",
        "[one for one in old if one.path in used or one in candidates]",
        "the table's own files are deleted: all rows are lost",
        (f"{_VACUUM}::test_every_version_of_the_window_stays_readable",),
    ),
    Mutation(
        "vacuum-window-in-seconds",
        "offloader/maintenance/table_maintainer.py",
        "window = int(settings.vacuum_after.total_seconds() * 1000)",
        "window = int(settings.vacuum_after.total_seconds())",
        "files are deleted some minutes after they were superseded, under running queries",
        (f"{_VACUUM}::test_a_file_stays_for_the_window_after_it_was_superseded",),
    ),
    Mutation(
        "young-rows-expire",
        "offloader/maintenance/selection.py",
        "if high < before:\n            gone.append(one)",
        "if low < before:\n            gone.append(one)",
        "rows that are younger than offload.retention are deleted with older ones of their file",
        ("tests/unit/maintenance/test_selection.py",),
    ),
    Mutation(
        "retention-in-milliseconds",
        "offloader/maintenance/table_maintainer.py",
        "retention_us = int(settings.retention.total_seconds() * 1_000_000)",
        "retention_us = int(settings.retention.total_seconds() * 1_000)",
        "offload.retention of 30 days keeps 43 minutes",
        ("tests/maintenance/test_expiry.py",),
    ),
    Mutation(
        "what-expired-is-not-said",
        "offloader/output/replacement.py",
        "found |= TopicNumbers.expired_before.set(table.topic, at)",
        "pass",
        "queries and segments do not say that rows have expired",
        ("tests/maintenance/test_expiry.py",),
    ),
    Mutation(
        "merged-rows-out-of-order",
        "offloader/maintenance/merge.py",
        "bound = min(one.last for one in opened)",
        "bound = max(one.last for one in opened)",
        "compacted files have rows out of the log's order",
        ("tests/unit/maintenance/test_merge.py",),
    ),
    Mutation(
        "unread-times-compacted-with-others",
        "offloader/maintenance/selection.py",
        "key=lambda one: (one.partition, one.published is None)",
        "key=lambda one: one.partition",
        "rows without a publish time expire with others, or keep them for ever",
        ("tests/unit/maintenance/test_selection.py",),
    ),
    Mutation(
        "iceberg-leaves-a-commit-out",
        "offloader/iceberg/changes.py",
        "since, newest = commits[1:], commits[-1]",
        "since, newest = commits[2:], commits[-1]",
        "rows of a commit are in the Delta table and in no Iceberg snapshot",
        ("tests/unit/iceberg/test_following.py",),
    ),
    Mutation(
        "iceberg-keeps-replaced-files",
        "offloader/iceberg/changes.py",
        "removed=frozenset(live.keys() - wanted.keys()) | wrong,",
        "removed=frozenset(wrong),",
        "after a compaction each row is in the Iceberg table twice",
        ("tests/unit/iceberg/test_following.py",),
    ),
    Mutation(
        "iceberg-snapshot-expired-early",
        "offloader/iceberg/snapshots.py",
        "return min(after.timestamp_ms, known or one.timestamp_ms)",
        "return one.timestamp_ms",
        "readers of Iceberg lose a snapshot that was the current one a moment ago",
        ("tests/unit/iceberg/test_old_snapshots.py",),
    ),
    Mutation(
        "iceberg-snapshots-kept-for-the-window",
        "offloader/iceberg/follower.py",
        "half = int(offload.vacuum_after.total_seconds() * 1000) // 2",
        "half = int(offload.vacuum_after.total_seconds() * 1000)",
        "vacuum deletes files of a snapshot whose catalog was away for hours",
        ("tests/unit/iceberg/test_old_snapshots.py",),
    ),
    Mutation(
        "iceberg-commit-of-others-believed",
        "offloader/iceberg/changes.py",
        "if not one.id or (one.id != shown.commit if first else bool(one.removed)):",
        "if not one.id or (not first and bool(one.removed)):",
        "after a restore of the Delta table the Iceberg table has rows that it does not have",
        ("tests/unit/iceberg/test_catch_up.py",),
    ),
)
