"""Which segments and files a query reads, and what it counts without reading."""

from tests.mutations.mutation import Mutation

__all__ = ["MUTATIONS"]

MUTATIONS = (
    Mutation(
        "last-entry-in-no-split",
        "reader/plan/splitting.py",
        "for first in range(one.first, one.last + 1, step)",
        "for first in range(one.first, one.last, step)",
        "a ledger of one entry is in no task: its rows are missing",
        ("tests/unit/plan/test_splitting.py",),
    ),
    Mutation(
        "watermark-off-by-one",
        "reader/plan/tier_choice.py",
        "elif info.ledger_id <= watermark:",
        "elif info.ledger_id < watermark:",
        "the ledger of the watermark is read from the table and from Pulsar: its rows come twice",
        ("tests/unit/plan/test_snapshot.py",),
    ),
    Mutation(
        "end-of-the-snapshot-off-by-one",
        "reader/plan/tier_choice.py",
        "last = min(last, end.entry)",
        "last = min(last, end.entry - 1)",
        "the newest entry of each partition is in no query",
        ("tests/unit/plan/test_snapshot.py",),
    ),
    Mutation(
        "behind-an-open-transaction",
        "reader/plan/tier_choice.py",
        "end = min(listing.last_confirmed, listing.max_read)",
        "end = max(listing.last_confirmed, listing.max_read)",
        "messages of transactions that are still open are rows",
        ("tests/unit/plan/test_snapshot.py",),
    ),
    Mutation(
        "schemas-before-ledgers",
        "reader/plan/snapshot.py",
        "listed = list_ledgers(admin, admin.partitions(topic))\n"
        "            # After the ledgers: every listed message's schema version is registered by "
        "now.\n            schemas = admin.schemas(topic)",
        "schemas = admin.schemas(topic)\n"
        "            listed = list_ledgers(admin, admin.partitions(topic))",
        "a message whose schema is registered while a query is planned is NULL with an error",
        ("tests/unit/plan/test_snapshot.py", "tests/simulation/test_histories.py"),
    ),
    Mutation(
        "pruned-by-the-wrong-bound",
        "reader/plan/pruning.py",
        "return (low is not None and last is not None and last < low) or (",
        "return (low is not None and first is not None and first < low) or (",
        "a filter by time skips files and segments that begin before it and reach into it",
        ("tests/unit/plan/test_pruning.py", "tests/unit/plan/test_plan.py"),
    ),
    Mutation(
        "inclusive-bound-taken-as-exclusive",
        "reader/plan/pruning.py",
        'value = min(one.values) + (1 if one.op == ">" else 0)',
        'value = min(one.values) + (1 if one.op in (">", ">=") else 0)',
        "rows at the very time of a filter's bound are missing",
        ("tests/unit/plan/test_pruning.py",),
    ),
    Mutation(
        "filter-inverted",
        "reader/plan/pruning.py",
        "return bool(low <= values[0])",
        "return bool(low > values[0])",
        "a filter by ledger or partition skips the files that match and reads the others",
        ("tests/unit/plan/test_pruning.py", "tests/unit/plan/test_cold_files.py"),
    ),
    Mutation(
        "times-cut-to-milliseconds-believed",
        "reader/plan/cold_files.py",
        'if name.startswith("max."):\n            column = pc.add(column, _TIME_CUT_US)',
        'if name.startswith("max."):\n            column = pc.add(column, 0)',
        "a filter by time skips a file whose last row lies up to a millisecond later than its log "
        "says",
        ("tests/unit/plan/test_cold_files.py", "tests/unit/plan/test_pruning.py"),
    ),
    Mutation(
        "wanted-value-at-the-least-one",
        "reader/plan/cold_files.py",
        "place = np.searchsorted(wanted, low)",
        'place = np.searchsorted(wanted, low, side="right")',
        "a filter with IN or = skips a file whose least value is the wanted one",
        ("tests/unit/plan/test_cold_files.py",),
    ),
    Mutation(
        "all-null-by-any-null",
        "reader/plan/cold_files.py",
        'found: _Mask = (nulls >= 0) & (nulls == self._numbers("num_records"))',
        "found: _Mask = nulls > 0",
        "a filter skips a file in which the column is NULL in some row",
        ("tests/unit/plan/test_cold_files.py",),
    ),
    Mutation(
        "count-of-a-part-of-a-ledger",
        "reader/plan/plan.py",
        "exact = learned.first == 0 and learned.last == segment.last_entry",
        "exact = learned.first == 0",
        "count(*) is the number of rows of a part of a ledger",
        ("tests/unit/plan/test_plan.py",),
    ),
    Mutation(
        "overlapping-counts-added",
        "reader/plan/publish_times.py",
        "if other.first <= self.last:\n                return None",
        "if other.first < self.first:\n                return None",
        "count(*) counts rows twice that two queries have read",
        ("tests/unit/plan/test_publish_times.py",),
    ),
    Mutation(
        "count-of-another-clusters-ledger",
        "reader/plan/publish_times.py",
        "used = {key: some for key, some in parts.items() if key in wanted}",
        "ids = {key[:2] for key in wanted}\n"
        "            used = {key: some for key, some in parts.items() if key[:2] in ids}",
        "count(*) and filters by time go by a ledger of the same id of a cluster that was wiped",
        ("tests/unit/plan/test_publish_times.py",),
    ),
    Mutation(
        "count-from-the-header",
        "reader/decode/seen.py",
        "None if passed_over else 0,",
        "0,",
        "count(*) leaves out the rows that the first reader of a ledger had filtered by time",
        ("tests/unit/decode/test_messages.py", "tests/unit/reader/test_learned_times.py"),
    ),
    Mutation(
        "restored-cluster-not-seen",
        "reader/plan/history.py",
        "if closed_at is not None and at > closed_at and ledger <= numbers.closed_ledger:",
        "if closed_at is None and ledger <= numbers.closed_ledger:",
        "after a restore of Pulsar new ledgers with old ids count as offloaded: their messages are "
        "in no query and are deleted",
        ("tests/unit/plan/test_history.py",),
    ),
    Mutation(
        "no-ledger-is-ever-lost",
        "reader/plan/data_loss.py",
        "if at == len(listing.ledgers) or listing.ledgers[at].ledger_id == ledger:",
        "if at == len(listing.ledgers) or listing.ledgers[at].ledger_id >= ledger:",
        "queries give fewer rows without a word where Pulsar deleted ledgers before they were "
        "offloaded",
        ("tests/unit/plan/test_data_loss.py", "tests/unit/turns/test_gaps.py"),
    ),
    Mutation(
        "table-behind-its-hold",
        "reader/plan/completeness/held_tables.py",
        "if one.is_of(table.uri, table.id):\n            if one.reached > table.watermark(",
        "if one.is_of(table.uri, table.id):\n            if one.reached < table.watermark(",
        "an old copy of the table passes as complete: rows are missing without a word",
        ("tests/unit/turns/test_old_copies.py", "tests/unit/turns/test_table_in_sight.py"),
    ),
    Mutation(
        "forced-tier-with-fewer-rows",
        "reader/plan/history.py",
        "return ledger is None or ledger < first",
        "return ledger is None",
        "a forced tier gives fewer rows without a word where Pulsar has trimmed ledgers",
        ("tests/unit/plan/test_forced_tiers.py",),
    ),
    Mutation(
        "learned-parts-with-a-gap-joined",
        "reader/plan/publish_times.py",
        "if other.first > self.last + 1:",
        "if other.first > self.last + 2:",
        "count(*) leaves out an entry that no query has read yet, and filters by time skip it",
        ("tests/unit/plan/test_publish_times.py",),
    ),
)
