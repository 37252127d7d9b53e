"""Filters of rows in memory."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reader.scan.row_filter import matching
from reader.scan.row_scan import RowScan

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


def test_no_thread_of_arrows_drops_the_rows() -> None:
    """One that asked for the interpreter's lock, as the interpreter ends, aborts the process."""
    dropped: Counter[int] = Counter()

    class Values(np.ndarray):
        def __del__(self) -> None:
            dropped[threading.get_ident()] += 1

    columns = pa.schema([("value", pa.int64())])
    scan = RowScan(cast(Any, None), columns, columns, _WHERE)
    for _ in range(3000):  # with ``batch.filter`` some 40 are dropped elsewhere
        batch = _batch(np.arange(5).view(Values))
        assert [one.num_rows for one in scan._matching([batch])] == [2]  # noqa: SLF001
        del batch
    assert {*dropped} == {threading.get_ident()}
