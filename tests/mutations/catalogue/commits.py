"""Commits to the table: two offloaders, retries, age of files, statistics."""

from tests.mutations.mutation import Mutation

_COMMIT = "tests/maintenance/test_commit.py"

MUTATIONS = (
    Mutation(
        "commit-on-another-watermark",
        "offloader/commit/delta_committer.py",
        "if found != step.before:",
        "if found < step.before:",
        "two offloaders that converted the same ledger both commit: each row is there twice",
        (f"{_COMMIT}::test_two_plans_from_one_version_never_both_commit[directory]",),
    ),
    Mutation(
        "commit-on-another-lookback",
        "offloader/commit/delta_committer.py",
        "if begins != step.lookback_before or not step.forward:",
        "if not step.forward:",
        "two offloaders give up the same chunked message: its row is there twice",
        ("tests/unit/turns/test_giving_up.py",),
    ),
    Mutation(
        "commit-to-another-clusters-table",
        "offloader/commit/delta_committer.py",
        "if recorded and addition.cluster and recorded != addition.cluster:",
        "if recorded and not addition.cluster:",
        "messages of two clusters in one table, the ledgers of the second taken for those of the "
        "first",
        (f"{_COMMIT}::test_another_clusters_table_is_refused",),
    ),
    Mutation(
        "own-commit-not-known-by-its-id",
        "offloader/commit/delta_committer.py",
        "for version in range(since + 1, table.version + 1):\n"
        "        commit = read_commit(storage, addition.topic, version)",
        "for version in range(since + 2, table.version + 1):\n"
        "        commit = read_commit(storage, addition.topic, version)",
        "a commit whose answer was lost is taken for another offloader's: its work is done again",
        (
            f"{_COMMIT}::"
            "test_a_commit_that_landed_is_known_by_its_id_when_its_files_are_compacted_away",
        ),
        ("tests/maintenance/test_commit_faults.py::test_ledgers_without_rows_are_known_again_too",),
    ),
    Mutation(
        "commit-without-exclusive-put",
        "offloader/commit/delta_committer.py",
        "self._storage.require_exclusive_put()\n        return",
        "return",
        "on a storage on which two PUTs both win one commit overwrites the other: rows are lost",
        ("tests/unit/storage/test_put_probe.py",),
    ),
    Mutation(
        "error-believed-before-the-log-is-read",
        "offloader/commit/retry.py",
        "if table is not None and (found := landed(table, seen)):",
        "if failure is None and table is not None and (found := landed(table, seen)):",
        "a commit that the store applied and answered with 500 counts as failed",
        ("tests/unit/table/test_commit_errors.py",),
        ("tests/maintenance/test_commit_faults.py::test_a_put_that_seems_to_fail",),
    ),
    Mutation(
        "commit-never-tried-again",
        "offloader/commit/retry.py",
        "if moved > retries.moved or unmoved >= retries.unmoved:",
        "if moved or unmoved:",
        "a compaction at the same time, or one 503 of the store, fails the turn of a topic",
        (f"{_COMMIT}::test_compaction_and_new_columns_in_between_do_not_matter[directory]",),
    ),
    Mutation(
        "file-age-in-other-units",
        "offloader/commit/file_age.py",
        "if one.modified and age > limit_ms:",
        "if one.modified and age > limit_ms * 1000:",
        "a commit names a file that vacuum has deleted: the table cannot be read",
        (f"{_COMMIT}::test_each_attempt_looks_how_old_the_files_are[24]",),
    ),
    Mutation(
        "replaced-files-not-missed",
        "offloader/commit/delta_committer.py",
        "gone = replacement.removes.keys() - table.paths()",
        "gone = replacement.removes.keys() - table.paths() - replacement.removes.keys()",
        "two maintainers compact the same files: each of their rows is there twice",
        ("tests/maintenance/test_maintenance.py::test_of_two_maintainers_one_wins[directory]",),
    ),
    Mutation(
        "foreign-commit-since-the-plan",
        "offloader/commit/delta_committer.py",
        "if commit is None or not commit.id:",
        "if commit is None:",
        "a compaction brings back rows that somebody deleted since it was planned",
        ("tests/maintenance/test_external_commits.py",),
    ),
    Mutation(
        "expired-before-moves-back",
        "offloader/output/replacement.py",
        "at = max(self.expired_before, table.topic_numbers.expired_before or 0)",
        "at = self.expired_before",
        "of two maintainers the slower one forgets what the other has said to have expired: "
        "queries and streams miss it without a word",
        ("tests/maintenance/test_expiry.py",),
    ),
    Mutation(
        "statistics-of-the-last-batch-alone",
        "offloader/parquet/statistics.py",
        "self._ranges[name] = (min(low, found[0]), max(high, found[1]))",
        "self._ranges[name] = found if low <= high else (low, high)",
        "filters skip files that have matching rows",
        ("tests/unit/offloader/test_parquet.py",),
    ),
    Mutation(
        "greatest-time-rounded-down",
        "offloader/parquet/statistics.py",
        "_millis(-(-high // 1000))",
        "_millis(high // 1000)",
        "other readers of the Delta table skip a file whose last row lies within its last ms",
        ("tests/unit/offloader/test_parquet.py",),
    ),
)
