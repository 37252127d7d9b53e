"""Reasons as values: every one has its text, and details are in it."""

import pickle
from datetime import timedelta

import pytest

from reader.model.reasons import Pruned, PruneReason, Reason, TierReason


@pytest.mark.parametrize("kind", Reason)
def test_every_reason_has_a_text(kind: Reason) -> None:
    found = TierReason(kind, "detail")
    assert "{" not in str(found)
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("kind", Pruned)
def test_every_pruning_has_a_text(kind: Pruned) -> None:
    assert "{" not in str(PruneReason(kind, 3))


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (TierReason(Reason.SEALED), "sealed, not offloaded yet"),
        (TierReason(Reason.AT_WATERMARK, 7), "at or below the watermark 7"),
        (TierReason(Reason.OPEN), "open, up to the last confirmed entry"),
        (TierReason(Reason.SHORT_TAIL, 4096), "open, at most 4096 entries"),
        (
            TierReason(Reason.IN_TABLE, "bookkeeper", 1_577_836_800_000),
            "in the table, read from bookkeeper; "
            "rows published before 2020-01-01 00:00:00Z have expired",
        ),
        (
            TierReason(Reason.OLDER_COMMIT),
            "in the table; its commit is older than those read from the log",
        ),
        (PruneReason(Pruned.PARTITION, 3), "__partition is 3"),
        (
            PruneReason(Pruned.CLOSE_TIMES, timedelta(minutes=10)),
            "closed outside the range, clock_skew 0:10:00 (not exact)",
        ),
    ],
)
def test_texts(reason: TierReason | PruneReason, text: str) -> None:
    assert str(reason) == text
