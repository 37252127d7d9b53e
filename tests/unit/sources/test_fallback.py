"""Which source follows which: every situation there can be, one by one."""

from itertools import product

import pytest

from reader import errors
from reader.model import Tier
from reader.sources.fallback import Failure, LedgerNow, Stage, failure_of, first_stage, next_stage
from tests.unit.sources.splits import split

TAIL, STORED, LISTED_TABLE, BROKER, TABLE = Stage
UNSUPPORTED, LEDGER_GONE, NOT_FOUND, CORRUPT, UNAVAILABLE = Failure
GONE, BARE, SAME, CHANGED = LedgerNow

# At a stage, after a failure: what follows where the ledger is now gone, bare, the same, changed.
FOLLOWING: dict[tuple[Stage, Failure], tuple[Stage | None, ...]] = {
    (TAIL, UNSUPPORTED): (None, None, STORED, None),
    (TAIL, LEDGER_GONE): (TABLE, TABLE, TABLE, TABLE),
    (TAIL, NOT_FOUND): (TABLE, None, STORED, STORED),
    (TAIL, CORRUPT): (TABLE, None, STORED, STORED),
    (TAIL, UNAVAILABLE): (TABLE, None, STORED, STORED),
    (STORED, UNSUPPORTED): (None, BROKER, BROKER, None),
    (STORED, LEDGER_GONE): (TABLE, TABLE, TABLE, TABLE),
    (STORED, NOT_FOUND): (TABLE, LISTED_TABLE, LISTED_TABLE, STORED),
    (STORED, CORRUPT): (TABLE, None, None, STORED),
    (STORED, UNAVAILABLE): (TABLE, BROKER, BROKER, STORED),
    **{(LISTED_TABLE, failure): (None, None, None, None) for failure in Failure},
    (LISTED_TABLE, NOT_FOUND): (None, BROKER, BROKER, BROKER),
    (LISTED_TABLE, UNAVAILABLE): (None, BROKER, BROKER, BROKER),
    (BROKER, UNSUPPORTED): (None, None, None, None),
    (BROKER, LEDGER_GONE): (TABLE, TABLE, TABLE, TABLE),
    (BROKER, NOT_FOUND): (TABLE, None, None, None),
    (BROKER, CORRUPT): (TABLE, None, None, None),
    (BROKER, UNAVAILABLE): (TABLE, None, None, None),
    **{(TABLE, failure): (None, None, None, None) for failure in Failure},
}


@pytest.mark.parametrize(("stage", "failure"), list(product(Stage, Failure)))
def test_what_follows(stage: Stage, failure: Failure) -> None:
    found = tuple(next_stage(stage, failure, now, fall_back=True) for now in LedgerNow)
    assert found == FOLLOWING[stage, failure]


@pytest.mark.parametrize(("stage", "failure"), list(product(Stage, Failure)))
def test_without_falling_back_the_tier_stays(stage: Stage, failure: Failure) -> None:
    """Only where the same ledger is stored by now is tried."""
    found = tuple(next_stage(stage, failure, now, fall_back=False) for now in LedgerNow)
    again = stage is STORED and failure is not UNSUPPORTED
    assert found == (None, None, None, STORED if again else None)


def test_reading_comes_to_an_end() -> None:
    """No step leads back, and only changed metadata lead to where it is."""
    order = list(Stage)
    for stage, failure, now in product(Stage, Failure, LedgerNow):
        following = next_stage(stage, failure, now, fall_back=True)
        if following is stage:
            assert now is CHANGED
        elif following is not None:
            assert order.index(following) > order.index(stage)


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (errors.UnsupportedError, UNSUPPORTED),
        (errors.LedgerGoneError, LEDGER_GONE),
        (errors.NotFoundError, NOT_FOUND),
        (errors.CorruptError, CORRUPT),
        (errors.UnavailableError, UNAVAILABLE),
        (errors.ConfigurationError, None),
        (errors.CommitConflictError, None),
        (errors.PulsarLakeError, None),
    ],
)
def test_what_an_error_means(error: type[errors.PulsarLakeError], failure: Failure | None) -> None:
    assert failure_of(error("it failed")) is failure


@pytest.mark.parametrize(
    ("tier", "short_tail", "fall_back", "stage"),
    [
        ("parquet", False, True, TABLE),
        ("bookkeeper", False, True, STORED),
        ("bookkeeper", False, False, STORED),
        ("tiered", False, True, STORED),
        ("tiered", False, False, STORED),
        ("broker", False, True, BROKER),
        ("broker", True, True, TAIL),
        ("broker", True, False, BROKER),
        ("bookkeeper", True, True, STORED),
    ],
)
def test_where_a_split_is_read_first(
    tier: Tier, short_tail: bool, fall_back: bool, stage: Stage
) -> None:
    assert first_stage(split(tier=tier, short_tail=short_tail), fall_back=fall_back) is stage
