"""Which source a split is read from, and which follows when one fails: one table, read here only.

    broker, a short tail ── silent, an entry not given ──▶ stored
    stored ── listed with other ensembles, or objects ───▶ stored
    stored ── silent, entries not handled ───────────────▶ broker
    stored ── the ledger is listed, and not there ───────▶ the newest table, then the broker
    stored, broker ── the ledger has left Pulsar ────────▶ the newest table

*Stored* is where Pulsar has put a ledger's entries: on bookies, or in its tiered storage.

Each step goes on after the last entry delivered, and none is made with a row given since: so no row
is missed or doubled.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import product

from reader import errors
from reader.model import Split, Tier
from reader.model.reasons import Reason


class Stage(Enum):
    """Where a split is read from now."""

    TAIL = "the broker, of a ledger that the bookies have as well"
    STORED = "the bookies, or the objects of Pulsar's tiered storage"
    LISTED_TABLE = "the newest version of the table, of a ledger that Pulsar still lists"
    BROKER = "the broker"
    TABLE = "the newest version of the table"


class Failure(Enum):
    """What an error of a source means for reading on."""

    UNSUPPORTED = "there are entries which the source cannot give"
    LEDGER_GONE = "a ledger has gone in which a message begins"
    NOT_FOUND = "the ledger is not there"
    CORRUPT = "entries cannot be right"
    UNAVAILABLE = "nobody answers"


class LedgerNow(Enum):
    """What Pulsar says of the split's ledger after the error."""

    GONE = "not listed any more"
    BARE = "listed without anything to read it by"
    SAME = "listed as it was read"
    CHANGED = "listed as stored elsewhere: on other bookies, in tiered storage, by another uuid"


_FAILURES: tuple[tuple[type[errors.PulsarLakeError], Failure], ...] = (
    (errors.UnsupportedError, Failure.UNSUPPORTED),
    (errors.LedgerGoneError, Failure.LEDGER_GONE),
    (errors.NotFoundError, Failure.NOT_FOUND),
    (errors.CorruptError, Failure.CORRUPT),
    (errors.UnavailableError, Failure.UNAVAILABLE),
)
_FIRST: Mapping[Tier, Stage] = {
    Tier.PARQUET: Stage.TABLE,
    Tier.BOOKKEEPER: Stage.STORED,
    Tier.TIERED: Stage.STORED,
    Tier.BROKER: Stage.BROKER,
}

Situation = tuple[Stage, Failure, LedgerNow]

_PULSAR = (Stage.TAIL, Stage.STORED, Stage.BROKER)
_LISTED = (LedgerNow.BARE, LedgerNow.SAME, LedgerNow.CHANGED)
_READ = (Failure.LEDGER_GONE, Failure.NOT_FOUND, Failure.CORRUPT, Failure.UNAVAILABLE)


def _rules(
    *rules: tuple[Iterable[Stage], Iterable[Failure], Iterable[LedgerNow], Stage],
) -> dict[Situation, Stage]:
    found: dict[Situation, Stage] = {}
    for stages, failures, ledgers, following in rules:
        for situation in product(stages, failures, ledgers):
            assert situation not in found, f"two rules for {situation}"
            found[situation] = following
    return found


_AGAIN: Mapping[Situation, Stage] = _rules(
    ([Stage.STORED], _READ, [LedgerNow.CHANGED], Stage.STORED)
)
"""By what is stored alone."""

FALLBACK: Mapping[Situation, Stage] = _rules(
    # Unsupported entries: it is not asked what Pulsar lists, only known whether there is metadata.
    ([Stage.TAIL], [Failure.UNSUPPORTED], [LedgerNow.SAME], Stage.STORED),
    ([Stage.STORED], [Failure.UNSUPPORTED], [LedgerNow.SAME, LedgerNow.BARE], Stage.BROKER),
    # What has left Pulsar was offloaded, or else is lost: the table tells.
    (_PULSAR, _READ, [LedgerNow.GONE], Stage.TABLE),
    (_PULSAR, [Failure.LEDGER_GONE], _LISTED, Stage.TABLE),
    # The bookies have it, too, whatever is wrong with the broker.
    (
        [Stage.TAIL],
        [Failure.NOT_FOUND, Failure.CORRUPT, Failure.UNAVAILABLE],
        [LedgerNow.SAME, LedgerNow.CHANGED],
        Stage.STORED,
    ),
    # It is stored elsewhere than when it was planned.
    (
        [Stage.STORED],
        [Failure.NOT_FOUND, Failure.CORRUPT, Failure.UNAVAILABLE],
        [LedgerNow.CHANGED],
        Stage.STORED,
    ),
    ([Stage.STORED], [Failure.UNAVAILABLE], [LedgerNow.SAME, LedgerNow.BARE], Stage.BROKER),
    # Objects, or copies, that somebody has deleted: the broker may be as much at a loss.
    ([Stage.STORED], [Failure.NOT_FOUND], [LedgerNow.SAME, LedgerNow.BARE], Stage.LISTED_TABLE),
    ([Stage.LISTED_TABLE], [Failure.NOT_FOUND, Failure.UNAVAILABLE], _LISTED, Stage.BROKER),
)
"""Where reading goes on; what is not here ends it."""


def first_stage(split: Split, *, fall_back: bool) -> Stage:
    """Where the split is read first."""
    stage = _FIRST[split.tier]
    tail = stage is Stage.BROKER and fall_back and split.reason.kind is Reason.SHORT_TAIL
    return Stage.TAIL if tail else stage


def failure_of(error: errors.PulsarLakeError) -> Failure | None:
    """What the error means; None: that no other source would help."""
    return next((failure for kind, failure in _FAILURES if isinstance(error, kind)), None)


def next_stage(
    stage: Stage, failure: Failure, ledger: LedgerNow, *, fall_back: bool
) -> Stage | None:
    """Where reading goes on after ``failure`` at ``stage``; None: nowhere, the error is raised.

    ``ledger``: after UNSUPPORTED what is known of it from the plan, SAME or BARE. The same stage
    means: as it is listed now. ``fall_back``: whether other tiers may be asked.
    """
    return (FALLBACK if fall_back else _AGAIN).get((stage, failure, ledger))
