"""Where a split is read when a source fails."""

from tests.mutations.mutation import mutations

MUTATIONS = mutations(r"""
no-table-for-what-has-left-pulsar: queries fail whose ledgers are offloaded and trimmed while they
    run
reader/sources/fallback.py: tests/unit/sources/test_fallback.py
- (_PULSAR, _READ, [LedgerNow.GONE], Stage.TABLE),
+ (_PULSAR, _READ[:1], [LedgerNow.GONE], Stage.TABLE),

no-broker-for-silent-bookies: queries fail where bookies cannot be reached though the broker can
reader/sources/fallback.py: tests/unit/sources/test_split_reader.py
- [Failure.UNAVAILABLE], [LedgerNow.SAME, LedgerNow.BARE], Stage.BROKER)
+ [Failure.UNAVAILABLE], [LedgerNow.BARE], Stage.BROKER)

rows-twice-after-a-failure: rows that a source gave before it failed come again from the next one
reader/sources/split_reader.py: tests/unit/sources/test_split_reader.py
- if given or not self._goes_on_after(error):
+ if not self._goes_on_after(error):

moved-ledger-with-fewer-rows: a query whose ledger was offloaded and has expired meanwhile gives
    fewer rows without a word
reader/sources/moved_ledger.py: tests/unit/sources/test_moved_ledger.py
    tests/maintenance/test_expiry.py
- if expected is not None and found < expected:
+ if expected is not None and expected < found:

moved-ledger-never-found: a query or a stream's batch ends with an error once its ledger is
    offloaded and trimmed
reader/sources/moved_ledger.py: tests/unit/sources/test_moved_ledger.py
    tests/simulation/test_streams.py
- named = record is not None and (record.ledger == ledger_id or record.lost)
+ named = record is not None and record.lost

moved-ledger-of-another-cluster: a query gives the rows of a ledger of the same id of the cluster
    before its restore
reader/sources/moved_ledger.py: tests/unit/sources/test_moved_ledger.py
- if identity is not None and record.closed_at not in (None, identity.closed_at):
+ if identity is None and record.closed_at is not None:

moved-ledger-that-was-shorter: a query gives fewer entries of a moved ledger than its snapshot saw
reader/sources/moved_ledger.py: tests/unit/sources/test_moved_ledger.py
- if record.entries <= split.last_entry:
+ if record.entries < split.first_entry:

damaged-entry-without-a-row: an entry of a ledger declared lost vanishes without a rescued row
reader/sources/salvage.py: tests/unit/sources/test_salvage.py
- yield from unreadable(ledger_id, at, stop - 1, error.message)
+ yield from unreadable(ledger_id, at, stop - 2, error.message)

lookback-into-a-deleted-ledger: a chunked message whose beginning was trimmed meanwhile is a stray
    chunk, not read from the table
reader/sources/lookback.py: tests/unit/sources/test_lookback.py
- if not sequence:
-             self._walk.require_first()
+ if sequence:
+             self._walk.require_first()

failed-ledger-not-looked-for-anew: objects that were moved or put back are not found until the
    process ends
reader/tiered/tiered_ledgers.py: tests/unit/tiered/test_tiered_ledgers.py
-         except PulsarLakeError as error:
-             self._forget(ledger)
-
+         except PulsarLakeError as error:
+

a-late-bookie-asked-again: each read waits again for a bookie that does not answer
reader/bookkeeper/reads/bookie_health.py: tests/unit/bookkeeper/test_slow_bookies.py
-         self._slow[bookie] = (self._now + _AVOID_SECONDS, seconds)
-

unhealthy-bookies-asked-first: bookies that do not answer are asked first, one time-out after the
    other
reader/bookkeeper/reads/entry_reads.py: tests/unit/bookkeeper/test_ledger_reads.py
    tests/unit/bookkeeper/test_rules.py
- if kind[one]
+ if not kind[one]
""")
