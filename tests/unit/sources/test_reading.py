"""Filters of rows in memory."""

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reader.plan import CompactedRead, RowFilter
from reader.sources import RowFormat, reading
from reader.sources.reading import matching, read_rows

_WHERE = pc.field("value") > 2


def _batch(values: np.ndarray) -> pa.RecordBatch:
    buffers = [None, pa.py_buffer(values)]
    return pa.record_batch({"value": pa.Array.from_buffers(pa.int64(), len(values), buffers)})


def test_rows_that_match() -> None:
    batch = _batch(np.arange(5))
    assert matching(batch, _WHERE) == batch.slice(3)
    assert matching(batch, pc.field("value") > 9) == batch.slice(0, 0)
    with pytest.raises(pa.ArrowInvalid, match="nope"):
        matching(batch, pc.field("nope") > 2)


def test_rows_are_in_one_piece_and_in_order() -> None:
    values = np.arange(300_000)  # several of what Arrow filters at once
    found = matching(_batch(values), pc.field("value") != 7)
    np.testing.assert_array_equal(found.column("value").to_numpy(), np.delete(values, 7))


def test_no_thread_of_arrows_drops_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asked for the interpreter's lock, as the interpreter ends, aborts the process."""
    dropped: Counter[int] = Counter()

    class Values(np.ndarray):
        def __del__(self) -> None:
            dropped[threading.get_ident()] += 1

    columns = pa.schema([("value", pa.int64())])
    rows, where = RowFormat(columns, (), columns), RowFilter(_WHERE, ("value",))
    read = CompactedRead(cast(Any, None))

    def one_batch(*_: Any) -> Iterator[pa.RecordBatch]:
        yield _batch(np.arange(5).view(Values))

    monkeypatch.setattr(reading, "read_compacted", one_batch)
    for _ in range(3000):  # with ``batch.filter`` some 40 are dropped elsewhere
        found = read_rows(cast(Any, None), read, rows, where)
        assert [one.num_rows for one in found] == [2]
    assert {*dropped} == {threading.get_ident()}
