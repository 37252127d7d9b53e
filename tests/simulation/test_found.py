"""Histories that gave wrong rows once, each as short as it got.

The first ten are the points 1 to 10 of an attack on the code of commit c4e3b65, in its order.
"""

import pytest

from tests.simulation.run import check
from tests.simulation.world import Settings

FOUND = {
    "a chunked message that ends in a later ledger is not given up": (
        Settings(wildcard=False),
        "chunk 0 3, seal, chunk 0 3, chunk 0 3, advance 2, turn, seal, turn, query 0 1",
    ),
    "a message that was given up is one row in all later commits": (
        # The first producer's clock is a day ahead, the second one's is behind.
        Settings(wildcard=False),
        "chunk 0 14, chunk 0 24, seal, turn, advance 2, publish, seal, turn, publish, seal, turn, "
        "query 0 1",
    ),
    "an open transaction stays hidden while its broker recovers": (
        Settings(broker_times=False, transactions=True),
        "transaction, seal 0 2, query, turn, transaction 0 2, settle",
    ),
    "what was learned of a ledger is not believed of another cluster's": (
        Settings(broker_times=False),
        "publish, seal, query 0 1, wipe, publish 0 3, seal, count, query 0 4",
    ),
    "ledger ids that a restored cluster gives again are not cold": (
        Settings(broker_times=False),
        "backup, seal, publish, seal, turn, restore, publish, query, seal, turn, query 0 1",
    ),
    "a pinned query says that its ledger was lost and stepped over": (
        Settings(),
        "round, publish, seal, turn, publish, seal, pin 0 1, time_to_live, publish, seal, turn, "
        "run_pinned",
    ),
    "a forced tier is refused after the log was cleaned up": (
        Settings(wildcard=False),
        "publish, seal, turn, trim, advance 6, advance 6, advance 6, advance 6, publish, seal, "
        "turn, clean_log, query",
    ),
    "a query misses its table": (Settings(), "publish, seal, turn, trim, hide"),
    "an added partition is held after a round": (
        Settings(partitions=1, wildcard=False),
        "round, add_partitions, round",
    ),
    "an added partition has the first ones properties": (
        Settings(partitions=1, wildcard=False),
        "publish, seal, turn, add_partitions 0 1, turn",
    ),
    "a broker lags that tells when ledgers were closed": (
        Settings(),
        "publish, seal, publish, seal, lag, turn, lag, query 0 1, turn",
    ),
    "rows before an unsupported one come once": (
        Settings(wildcard=False, broker_times=False),
        "publish 0 776, publish 0 911, " + ", ".join(f"stumble 0 {at}" for at in range(12, 36)),
    ),
    "a forced tier of a deleted topic is refused": (
        Settings(wildcard=False),
        "publish, seal, turn, remake",
    ),
    "an abandoned message on an idle topic does not hold for ever": (
        Settings(wildcard=False),
        "chunk 0 3, seal, turn, idle",
    ),
    "a pinned query has no row of what was given up since": (
        Settings(broker_times=False, grace_minutes=10),
        "chunk, pin, idle, trim, run_pinned",
    ),
    "through the broker nothing is looked back to that was given up": (
        # Seed 696: all ledgers were forced to the broker, those of the table as well.
        Settings(wildcard=False, broker_times=False, schemas=True, broker=True),
        "chunk 0 3, seal, chunk 0 3, advance 2, turn, seal, turn, query 0 1",
    ),
    "messages of ledgers that are decoded together are as old as their own ledgers": (
        # Seed 9400819: a message without a schema, and a ledger that was opened after it.
        Settings(partitions=2, wildcard=False, retention_hours=3, schemas=True, late_schema=True),
        "publish, seal, between 281 125, settle",
    ),
    "a refused entry is not believed once those behind it were consumed": (
        # Seed 80042: the broker's word counted for what the target had deleted.
        Settings(wildcard=False, broker_times=False),
        "sink_incident 241 615, sink 0 274, sink_meet 0 837, seal, sink_trim, sink 0 125",
    ),
    "a message that is older than the first known schema has none of it": (
        # No product gave wrong rows here: a check excused those of one that would.
        Settings(wildcard=False, schemas=True, late_schema=True),
        "evolve, evolve, publish 0 2, seal, advance 2, register_anew 0 1, advance 1, publish, "
        "query 0 1",
    ),
    "a message that is older than the first schema of its table has none of it": (
        # The same.
        Settings(wildcard=False, schemas=True, late_schema=True),
        "evolve, evolve, publish 0 2, seal, advance 2, register_anew 0 1, publish, seal, turn, "
        "query 0 1",
    ),
    "a clock that was ahead for a while says something of schemas later": (
        # The same.
        Settings(wildcard=False, schemas=True, late_schema=True),
        "skew 2 1, skew 2 0, advance 6, evolve, evolve, publish 0 2, seal, turn, publish 0 2, "
        "advance 2, register_anew 0 1, advance 2, publish, query 0 1",
    ),
    "a message without a version is rescued where the registry has forgotten all": (
        # Seed 4096823, of a check that did not know the error.
        Settings(partitions=1, schemas=True, late_schema=True),
        "publish, evolve, pin, register_anew 0 134, run_pinned",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    check(*FOUND[name])
