"""Where a split is read when a source fails."""

from tests.mutations.mutation import Mutation

MUTATIONS = (
    Mutation(
        "no-table-for-what-has-left-pulsar",
        "reader/sources/fallback.py",
        "(_PULSAR, _READ, [LedgerNow.GONE], Stage.TABLE),",
        "(_PULSAR, _READ[:1], [LedgerNow.GONE], Stage.TABLE),",
        "queries fail whose ledgers are offloaded and trimmed while they run",
        ("tests/unit/sources/test_fallback.py",),
    ),
    Mutation(
        "no-broker-for-silent-bookies",
        "reader/sources/fallback.py",
        "[Failure.UNAVAILABLE], [LedgerNow.SAME, LedgerNow.BARE], Stage.BROKER)",
        "[Failure.UNAVAILABLE], [LedgerNow.BARE], Stage.BROKER)",
        "queries fail where bookies cannot be reached though the broker can",
        ("tests/unit/sources/test_split_reader.py",),
    ),
    Mutation(
        "rows-twice-after-a-failure",
        "reader/sources/split_reader.py",
        "if given or not self._goes_on_after(error):",
        "if not self._goes_on_after(error):",
        "rows that a source gave before it failed come again from the next one",
        ("tests/unit/sources/test_split_reader.py",),
    ),
    Mutation(
        "moved-ledger-with-fewer-rows",
        "reader/sources/moved_ledger.py",
        "if expected is not None and found < expected:",
        "if expected is not None and expected < found:",
        "a query whose ledger was offloaded and has expired meanwhile gives fewer rows without a "
        "word",
        ("tests/unit/sources/test_moved_ledger.py", "tests/maintenance/test_expiry.py"),
    ),
    Mutation(
        "moved-ledger-never-found",
        "reader/sources/moved_ledger.py",
        "named = record is not None and (record.ledger == ledger_id or record.lost)",
        "named = record is not None and record.lost",
        "a query or a stream's batch ends with an error once its ledger is offloaded and trimmed",
        ("tests/unit/sources/test_moved_ledger.py", "tests/simulation/test_streams.py"),
    ),
    Mutation(
        "moved-ledger-of-another-cluster",
        "reader/sources/moved_ledger.py",
        "if identity is not None and record.closed_at not in (None, identity.closed_at):",
        "if identity is None and record.closed_at is not None:",
        "a query gives the rows of a ledger of the same id of the cluster before its restore",
        ("tests/unit/sources/test_moved_ledger.py",),
    ),
    Mutation(
        "moved-ledger-that-was-shorter",
        "reader/sources/moved_ledger.py",
        "if record.entries <= split.last_entry:",
        "if record.entries < split.first_entry:",
        "a query gives fewer entries of a moved ledger than its snapshot saw",
        ("tests/unit/sources/test_moved_ledger.py",),
    ),
    Mutation(
        "damaged-entry-without-a-row",
        "reader/sources/salvage.py",
        "yield from unreadable(ledger_id, at, stop - 1, error.message)",
        "yield from unreadable(ledger_id, at, stop - 2, error.message)",
        "an entry of a ledger declared lost vanishes without a rescued row",
        ("tests/unit/sources/test_salvage.py",),
    ),
    Mutation(
        "lookback-into-a-deleted-ledger",
        "reader/sources/lookback.py",
        "if not sequence:\n            self._walk.require_first()",
        "if sequence:\n            self._walk.require_first()",
        "a chunked message whose beginning was trimmed meanwhile is a stray chunk, not read from "
        "the table",
        ("tests/unit/sources/test_lookback.py",),
    ),
    Mutation(
        "failed-ledger-not-looked-for-anew",
        "reader/tiered/tiered_ledgers.py",
        "        except PulsarLakeError as error:\n            self._forget(ledger)\n",
        "        except PulsarLakeError as error:\n",
        "objects that were moved or put back are not found until the process ends",
        ("tests/unit/tiered/test_tiered_ledgers.py",),
    ),
    Mutation(
        "a-late-bookie-asked-again",
        "reader/bookkeeper/reads/bookie_health.py",
        "        self._slow[bookie] = (self._now + _AVOID_SECONDS, seconds)\n",
        "",
        "each read waits again for a bookie that does not answer",
        ("tests/unit/bookkeeper/test_slow_bookies.py",),
    ),
    Mutation(
        "unhealthy-bookies-asked-first",
        "reader/bookkeeper/reads/entry_reads.py",
        "if kind[one]",
        "if not kind[one]",
        "bookies that do not answer are asked first, one time-out after the other",
        ("tests/unit/bookkeeper/test_ledger_reads.py", "tests/unit/bookkeeper/test_rules.py"),
    ),
)
