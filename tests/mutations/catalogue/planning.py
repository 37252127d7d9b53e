"""Which segments and files a query reads, and what it counts without reading."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
last-entry-in-no-split: a ledger of one entry is in no task: its rows are missing
reader/plan/splitting.py: tests/unit/plan/test_splitting.py
- for first in range(one.first, one.last + 1, step)
+ for first in range(one.first, one.last, step)

watermark-off-by-one: the ledger of the watermark is read from the table and from Pulsar: its rows
    come twice
reader/plan/tier_choice.py: tests/unit/plan/test_snapshot.py
- elif info.ledger_id <= watermark:
+ elif info.ledger_id < watermark:

end-of-the-snapshot-off-by-one: the newest entry of each partition is in no query
reader/plan/tier_choice.py: tests/unit/plan/test_snapshot.py
- last = min(last, end.entry)
+ last = min(last, end.entry - 1)

behind-an-open-transaction: messages of transactions that are still open are rows
reader/plan/tier_choice.py: tests/unit/plan/test_snapshot.py
- end = min(listing.last_confirmed, listing.max_read)
+ end = max(listing.last_confirmed, listing.max_read)

schemas-before-ledgers: a message whose schema is registered while a query is planned is NULL with
    an error
reader/plan/snapshot.py: tests/unit/plan/test_snapshot.py tests/simulation/test_histories.py
- listed = list_ledgers(admin, admin.partitions(topic))
-             # After the ledgers: every listed message's schema version is registered by now.
-             schemas = admin.schemas(topic)
+ schemas = admin.schemas(topic)
+             listed = list_ledgers(admin, admin.partitions(topic))

pruned-by-the-wrong-bound: a filter by time skips files and segments that begin before it and reach
    into it
reader/plan/pruning.py: tests/unit/plan/test_pruning.py tests/unit/plan/test_plan.py
- return (low is not None and last is not None and last < low) or (
+ return (low is not None and first is not None and first < low) or (

inclusive-bound-taken-as-exclusive: rows at the very time of a filter's bound are missing
reader/plan/pruning.py: tests/unit/plan/test_pruning.py
- value = min(one.values) + (1 if one.op == ">" else 0)
+ value = min(one.values) + (1 if one.op in (">", ">=") else 0)

filter-inverted: a filter by ledger or partition skips the files that match and reads the others
reader/plan/pruning.py: tests/unit/plan/test_pruning.py tests/unit/plan/test_cold_files.py
- return bool(low <= values[0])
+ return bool(low > values[0])

times-cut-to-milliseconds-believed: a filter by time skips a file whose last row lies up to a
    millisecond later than its log says
reader/plan/cold_files.py: tests/unit/plan/test_cold_files.py tests/unit/plan/test_pruning.py
- if name.startswith("max."):
-             column = pc.add(column, _TIME_CUT_US)
+ if name.startswith("max."):
+             column = pc.add(column, 0)

wanted-value-at-the-least-one: a filter with IN or = skips a file whose least value is the wanted
    one
reader/plan/cold_files.py: tests/unit/plan/test_cold_files.py
- place = np.searchsorted(wanted, low)
+ place = np.searchsorted(wanted, low, side="right")

all-null-by-any-null: a filter skips a file in which the column is NULL in some row
reader/plan/cold_files.py: tests/unit/plan/test_cold_files.py
- found: _Mask = (nulls >= 0) & (nulls == self._numbers("num_records"))
+ found: _Mask = nulls > 0

count-of-a-part-of-a-ledger: count(*) is the number of rows of a part of a ledger
reader/plan/plan.py: tests/unit/plan/test_plan.py
- exact = learned.first == 0 and learned.last == segment.last_entry
+ exact = learned.first == 0

overlapping-counts-added: count(*) counts rows twice that two queries have read
reader/plan/publish_times.py: tests/unit/plan/test_publish_times.py
- if other.first <= self.last:
-                 return None
+ if other.first < self.first:
+                 return None

count-of-another-clusters-ledger: count(*) and filters by time go by a ledger of the same id of a
    cluster that was wiped
reader/plan/publish_times.py: tests/unit/plan/test_publish_times.py
- used = {key: some for key, some in parts.items() if key in wanted}
+ ids = {key[:2] for key in wanted}
+             used = {key: some for key, some in parts.items() if key[:2] in ids}

count-from-the-header: count(*) leaves out the rows that the first reader of a ledger had filtered
    by time
reader/decode/seen.py: tests/unit/decode/test_messages.py tests/unit/reader/test_learned_times.py
- None if passed_over else 0,
+ 0,

restored-cluster-not-seen: after a restore of Pulsar new ledgers with old ids count as offloaded:
    their messages are in no query and are deleted
reader/plan/history.py: tests/unit/plan/test_history.py
- if closed_at is not None and at > closed_at and ledger <= numbers.closed_ledger:
+ if closed_at is None and ledger <= numbers.closed_ledger:

no-ledger-is-ever-lost: queries give fewer rows without a word where Pulsar deleted ledgers before
    they were offloaded
reader/plan/data_loss.py: tests/unit/plan/test_data_loss.py tests/unit/turns/test_gaps.py
- if at == len(listing.ledgers) or listing.ledgers[at].ledger_id == ledger:
+ if at == len(listing.ledgers) or listing.ledgers[at].ledger_id >= ledger:

table-behind-its-hold: an old copy of the table passes as complete: rows are missing without a word
reader/plan/completeness/held_tables.py: tests/unit/turns/test_old_copies.py
    tests/unit/turns/test_table_in_sight.py
- if one.is_of(table.uri, table.id):
-             if one.reached > table.watermark(
+ if one.is_of(table.uri, table.id):
+             if one.reached < table.watermark(

forced-tier-with-fewer-rows: a forced tier gives fewer rows without a word where Pulsar has trimmed
    ledgers
reader/plan/history.py: tests/unit/plan/test_forced_tiers.py
- return ledger is None or ledger < first
+ return ledger is None

learned-parts-with-a-gap-joined: count(*) leaves out an entry that no query has read yet, and
    filters by time skip it
reader/plan/publish_times.py: tests/unit/plan/test_publish_times.py
- if other.first > self.last + 1:
+ if other.first > self.last + 2:
""")
