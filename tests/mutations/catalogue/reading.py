"""Settings, status, scans, compacted views."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
environment-ignored: settings in the environment do not win over the file
reader/config/loading.py: tests/unit/reader/test_config.py
- given = _merged(_toml(Path(source)), EnvSettingsSource(cls)())
+ given = _merged(EnvSettingsSource(cls)(), _toml(Path(source)))

tail-entries-ignored: query.tail_entries changes nothing: short tails are read from bookies
reader/plan/tier_choice.py: tests/unit/plan/test_snapshot.py
- if last < tail_entries:
+ if last < 0:

lost-ledgers-ignored: pulsar.lost_ledgers changes nothing: a lost ledger stops its topic for good
reader/plan/tier_choice.py: tests/unit/tiered/test_declared_lost.py
- if info.ledger_id in settings.pulsar.lost_ledgers and closed:
+ if info.ledger_id in settings.pulsar.lost_ledgers and not closed:

page-shows-the-least-lag: the page shows no lag as long as one topic has none
offloader/web/overview.py: tests/unit/web/test_api.py
- "seconds": max((one["seconds"] for one in lags), default=0.0),
+ "seconds": min((one["seconds"] for one in lags), default=0.0),

status-in-milliseconds: status says that Pulsar was asked in the year 58000
offloader/service/status.py: tests/unit/offloader/test_status.py tests/unit/service tests/unit/turns
- at=clock_ms / 1000,
-                 asked
+ at=clock_ms,
+                 asked

foreign-changes-are-warnings: status calls a table fine from which somebody deleted rows
offloader/service/status.py: tests/unit/offloader/test_status.py
    tests/maintenance/test_external_commits.py
- (errors if commit.touches_files else warnings).append(str(commit))
+ warnings.append(str(commit))

tombstone-kept: compacted views show keys that were deleted
spark_ext/planner/relations.py: tests/unit/spark/planner/test_relations.py servers:
    tests/contract/test_compacted_view.py
- AND (__key IS NULL OR __tombstone IS NOT TRUE)
+ AND (__key IS NULL OR __tombstone IS NOT NULL)

oldest-message-of-a-key: compacted views show the first value of a key that is in several ledgers
spark_ext/planner/relations.py: servers: tests/contract/test_compacted_view.py
- ORDER BY __ledgerId DESC,
+ ORDER BY __ledgerId,

compacted-ledger-of-later: a compacted view lacks keys whose newer messages came after its snapshot
reader/plan/completeness/compacted_part.py: tests/unit/compacted
- return ledger.ledger_id == self.ledger.ledger_id or ledger.upto <= self.end
+ return ledger.ledger_id >= self.ledger.ledger_id or ledger.upto <= self.end

compacted-and-readable-both-read: messages of a ledger that is readable come from Pulsar's compacted
    ledger as well
reader/sources/compacted/compacted_rows.py: tests/unit/compacted
- if found.ledger_id >= part.before:
+ if found.ledger_id > part.before:

limit-off-by-one: tail shows a message less than it was asked for
reader/scan/ends.py: tests/unit/scan/test_ends_of_a_topic.py servers: tests/scan/test_messages.py
- one.slice(max(0, one.num_rows - count)) if newest else one.slice(0, count)
+ one.slice(max(0, one.num_rows - count + 1)) if newest else one.slice(0, count)

messages-followed-twice: tail -f shows the last message again with each new one
reader/scan/follow.py: tests/unit/scan/test_follow.py servers: tests/scan/test_messages.py
- bounds[index] = Position(end.ledger, end.entry + 1), None
+ bounds[index] = Position(end.ledger, end.entry), None

partition-not-merged-by-time: head and tail show messages of the wrong partitions
reader/scan/ends.py: tests/unit/scan/test_ends_of_a_topic.py servers: tests/scan/test_messages.py
- order = heapq.merge(*runs, key=lambda one: one[0], reverse=newest)
+ order = heapq.merge(*runs, key=lambda one: one[0], reverse=not newest)

followed-message-left-out: tail -f leaves out messages of a ledger of which it has shown some
reader/scan/bounds.py: tests/unit/scan/test_follow.py servers: tests/scan/test_messages.py
- low = max(low, first.entry) if first.ledger == one.ledger_id else high + 1
+ low = max(low, first.entry + 1) if first.ledger == one.ledger_id else high + 1

times-of-a-scan-in-milliseconds: a scan with start and end gives no rows
reader/scan/time_range.py: tests/unit/scan/test_ends_of_a_topic.py servers: tests/scan/test_rows.py
- return (aware - _EPOCH) // timedelta(microseconds=1)
+ return (aware - _EPOCH) // timedelta(milliseconds=1)

older-rows-expired-in-other-units: segments says of young ledgers that rows have expired, and
    count(*) reads them
reader/plan/offloaded.py: tests/unit/plan/test_cold_files.py
- if before is None or oldest is None or oldest >= before * 1000:
+ if before is None or oldest is None or oldest >= before * 1_000_000:

undecodable-payload-called-a-message: a query for messages alone gives rows whose payload could not
    be decoded
reader/sources/rows.py: tests/unit/sources/test_row_kinds.py
- kinds = dict.fromkeys(decoded.unread, RowKind.UNDECODABLE)
+ kinds = {}

files-pruned-by-another-kind: a query for one kind of rows leaves out files that have some
reader/plan/cold_files.py: tests/unit/plan/test_cold_files.py
- return KIND_RANKS.get(value) if column == KIND_COLUMN else None
+ return len(value)

decoded-rows-filtered-in-threads: a command that has printed its rows aborts at times when it ends
reader/sources/reading.py: tests/unit/sources/test_reading.py
- to_table(use_threads=False)
+ to_table(use_threads=True)
""")
