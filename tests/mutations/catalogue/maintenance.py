"""Expiry, compaction, vacuum, and the Iceberg tables that follow."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
vacuum-deletes-superseded-files-at-once: queries that began before a compaction fail: their files
    are gone
offloader/commit/vacuum.py:
    tests/maintenance/test_vacuum.py::test_a_file_stays_for_the_window_after_it_was_superseded
- used |= _plain(oldest.paths())
+ used |= _plain(table.paths())

vacuum-ignores-the-grace: files that a task has written and not committed yet are deleted: the
    commit names files that are gone
offloader/commit/vacuum.py: tests/maintenance/test_vacuum.py::test_files_that_nobody_committed
- old = [one for one, at in (*files, *unfinished) if at < before_ms]
+ old = [one for one, _ in (*files, *unfinished)]

vacuum-deletes-live-files: the table's own files are deleted: all rows are lost
offloader/commit/vacuum.py:
    tests/maintenance/test_vacuum.py::test_every_version_of_the_window_stays_readable
- [one for one in candidates if one.path not in used]
+ [one for one in old if one.path in used or one in candidates]

vacuum-window-in-seconds: files are deleted some minutes after they were superseded, under running
    queries
offloader/maintenance/table_maintainer.py:
    tests/maintenance/test_vacuum.py::test_a_file_stays_for_the_window_after_it_was_superseded
- window = int(settings.vacuum_after.total_seconds() * 1000)
+ window = int(settings.vacuum_after.total_seconds())

young-rows-expire: rows that are younger than offload.retention are deleted with older ones of their
    file
offloader/maintenance/selection.py: tests/unit/maintenance/test_selection.py
- if high < before:
-             gone.append(one)
+ if low < before:
+             gone.append(one)

retention-in-milliseconds: offload.retention of 30 days keeps 43 minutes
offloader/maintenance/table_maintainer.py: tests/maintenance/test_expiry.py
- retention_us = int(settings.retention.total_seconds() * 1_000_000)
+ retention_us = int(settings.retention.total_seconds() * 1_000)

what-expired-is-not-said: queries and segments do not say that rows have expired
offloader/output/replacement.py: tests/maintenance/test_expiry.py
- found |= TopicNumbers.expired_before.set(table.topic, at)
+ pass

merged-rows-out-of-order: compacted files have rows out of the log's order
offloader/maintenance/merge.py: tests/unit/maintenance/test_merge.py
- bound = min(one.last for one in opened)
+ bound = max(one.last for one in opened)

unread-times-compacted-with-others: rows without a publish time expire with others, or keep them for
    ever
offloader/maintenance/selection.py: tests/unit/maintenance/test_selection.py
- key=lambda one: (one.partition, one.published is None)
+ key=lambda one: one.partition

iceberg-leaves-a-commit-out: rows of a commit are in the Delta table and in no Iceberg snapshot
offloader/iceberg/changes.py: tests/unit/iceberg/test_following.py
- since, newest = commits[1:], commits[-1]
+ since, newest = commits[2:], commits[-1]

iceberg-keeps-replaced-files: after a compaction each row is in the Iceberg table twice
offloader/iceberg/changes.py: tests/unit/iceberg/test_following.py
- removed=frozenset(live.keys() - wanted.keys()) | wrong,
+ removed=frozenset(wrong),

iceberg-snapshot-expired-early: readers of Iceberg lose a snapshot that was the current one a moment
    ago
offloader/iceberg/snapshots.py: tests/unit/iceberg/test_old_snapshots.py
- return min(after.timestamp_ms, known or one.timestamp_ms)
+ return one.timestamp_ms

iceberg-snapshots-kept-for-the-window: vacuum deletes files of a snapshot whose catalog was away for
    hours
offloader/iceberg/follower.py: tests/unit/iceberg/test_old_snapshots.py
- half = int(offload.vacuum_after.total_seconds() * 1000) // 2
+ half = int(offload.vacuum_after.total_seconds() * 1000)

iceberg-commit-of-others-believed: after a restore of the Delta table the Iceberg table has rows
    that it does not have
offloader/iceberg/changes.py: tests/unit/iceberg/test_catch_up.py
- if not one.id or (one.id != shown.commit if first else bool(one.removed)):
+ if not one.id or (not first and bool(one.removed)):
""")
