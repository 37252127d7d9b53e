"""Splits are read ahead of each other, and what comes of them is in their order all the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from reader.config import ReadConfig
from reader.model import Partition, Split, Topic
from reader.model.reasons import Reason, TierReason
from reader.sources.fallback import _Reading, read_splits
from reader.sources.rows import RowFormat

PARTITION = Partition(Topic.parse("a/b/c"), -1)
FORMAT = RowFormat(pa.schema([]), (), pa.schema([]))


def split(ledger: int) -> Split:
    return Split(
        partition=PARTITION,
        ledger_id=ledger,
        first_entry=0,
        last_entry=1,
        tier="bookkeeper",
        state="sealed",
        reason=TierReason(Reason.SEALED),
        metadata=None,
        bytes=1,
        whole=True,
    )


def rows(number: int) -> pa.RecordBatch:
    return pa.record_batch({"n": [number]})


def test_rows_and_the_last_word_on_a_chunked_message(monkeypatch: pytest.MonkeyPatch) -> None:
    second_is_done = threading.Event()

    def steps(self: _Reading) -> Iterator[Any]:
        number = self.split.ledger_id
        if number == 1:
            assert second_is_done.wait(10), "the second is read meanwhile"
        self.chunks[b"uuid"] = number  # type: ignore[assignment]
        if number == 2:
            second_is_done.set()
        yield rows(number)

    monkeypatch.setattr(_Reading, "_steps", steps)
    chunks: dict[bytes, Any] = {}
    found = list(read_splits(ReadConfig(), [split(n) for n in (1, 2, 3)], FORMAT, chunks=chunks))
    assert [(one.ledger_id, batch["n"].to_pylist()) for one, batch in found] == [
        (1, [1]),
        (2, [2]),
        (3, [3]),
    ]
    assert chunks == {b"uuid": 3}


def test_an_error_comes_in_its_turn_and_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(self: _Reading) -> Iterator[Any]:
        if self.split.ledger_id == 2:
            raise KeyError("two")
        yield rows(self.split.ledger_id)

    monkeypatch.setattr(_Reading, "_steps", steps)
    reading = read_splits(ReadConfig(), [split(n) for n in (1, 2, 3)], FORMAT)
    assert next(reading)[0].ledger_id == 1
    with pytest.raises(KeyError, match="two"):
        next(reading)
    assert not [one for one in threading.enumerate() if one.name == "ahead"]
