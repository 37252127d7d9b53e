"""Commits to the table: two offloaders, retries, age of files, statistics."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
commit-on-another-watermark: two offloaders that converted the same ledger both commit: each row is
    there twice
offloader/commit/delta_committer.py:
    tests/maintenance/test_commit.py::test_two_plans_from_one_version_never_both_commit[directory]
- if found != step.before:
+ if found < step.before:

commit-on-another-lookback: two offloaders give up the same chunked message: its row is there twice
offloader/commit/delta_committer.py: tests/unit/turns/test_giving_up.py
- if begins != step.lookback_before or not step.forward:
+ if not step.forward:

commit-to-another-clusters-table: messages of two clusters in one table, the ledgers of the second
    taken for those of the first
offloader/commit/delta_committer.py:
    tests/maintenance/test_commit.py::test_another_clusters_table_is_refused
- if recorded and addition.cluster and recorded != addition.cluster:
+ if recorded and not addition.cluster:

own-commit-not-known-by-its-id: a commit whose answer was lost is taken for another offloader's: its
    work is done again
offloader/commit/delta_committer.py:
    tests/maintenance/test_commit.py::test_a_commit_that_landed_is_known_by_its_id_when_its_files_are_compacted_away
    servers: tests/maintenance/test_commit_faults.py::test_ledgers_without_rows_are_known_again_too
- for version in range(since + 1, table.version + 1):
-         commit = read_commit(storage, addition.topic, version)
+ for version in range(since + 2, table.version + 1):
+         commit = read_commit(storage, addition.topic, version)

commit-without-exclusive-put: on a storage on which two PUTs both win one commit overwrites the
    other: rows are lost
offloader/commit/delta_committer.py: tests/unit/storage/test_put_probe.py
- self._storage.require_exclusive_put()
-         return
+ return

error-believed-before-the-log-is-read: a commit that the store applied and answered with 500 counts
    as failed
offloader/commit/retry.py: tests/unit/table/test_commit_errors.py servers:
    tests/maintenance/test_commit_faults.py::test_a_put_that_seems_to_fail
- if table is not None and (found := landed(table, seen)):
+ if failure is None and table is not None and (found := landed(table, seen)):

commit-never-tried-again: a compaction at the same time, or one 503 of the store, fails the turn of
    a topic
offloader/commit/retry.py:
    tests/maintenance/test_commit.py::test_compaction_and_new_columns_in_between_do_not_matter[directory]
- if moved > retries.moved or unmoved >= retries.unmoved:
+ if moved or unmoved:

file-age-in-other-units: a commit names a file that vacuum has deleted: the table cannot be read
offloader/commit/file_age.py:
    tests/maintenance/test_commit.py::test_each_attempt_looks_how_old_the_files_are[24]
- if one.modified and age > limit_ms:
+ if one.modified and age > limit_ms * 1000:

replaced-files-not-missed: two maintainers compact the same files: each of their rows is there twice
offloader/commit/delta_committer.py:
    tests/maintenance/test_maintenance.py::test_of_two_maintainers_one_wins[directory]
- gone = replacement.removes.keys() - table.paths()
+ gone = replacement.removes.keys() - table.paths() - replacement.removes.keys()

foreign-commit-since-the-plan: a compaction brings back rows that somebody deleted since it was
    planned
offloader/commit/delta_committer.py: tests/maintenance/test_external_commits.py
- if commit is None or not commit.id:
+ if commit is None:

expired-before-moves-back: of two maintainers the slower one forgets what the other has said to have
    expired: queries and streams miss it without a word
offloader/output/replacement.py: tests/maintenance/test_expiry.py
- at = max(self.expired_before, table.topic_numbers.expired_before or 0)
+ at = self.expired_before

statistics-of-the-last-batch-alone: filters skip files that have matching rows
offloader/parquet/statistics.py: tests/unit/offloader/test_parquet.py
- self._ranges[name] = (min(low, found[0]), max(high, found[1]))
+ self._ranges[name] = found if low <= high else (low, high)

greatest-time-rounded-down: other readers of the Delta table skip a file whose last row lies within
    its last ms
offloader/parquet/statistics.py: tests/unit/offloader/test_parquet.py
- _millis(-(-high // 1000))
+ _millis(high // 1000)
""")
