"""A part of a scan: what lies between two positions of each partition."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from reader.model import Split
from reader.model.columns import rows_between
from reader.plan import Bounds, RowFilter
from reader.scan.row_scan import RowScan


def within(scan: RowScan, bounds: Bounds) -> RowScan:
    """The scan of the rows within the bounds of these partitions, by index, and of no other."""
    plan = replace(
        scan.plan,
        cold=tuple(
            replace(
                one,
                read=one.read
                and any(one.file.overlaps(index, *each) for index, each in bounds.items()),
            )
            for one in scan.plan.cold
        ),
        segments=tuple(
            replace(one, splits=tuple(_cut(one.splits, bounds))) for one in scan.plan.segments
        ),
    )
    where = RowFilter(_between(bounds), ("__partition", "__ledgerId", "__entryId"))
    return replace(scan, plan=plan, where=where)


def _cut(splits: Sequence[Split], bounds: Bounds) -> Iterator[Split]:
    for one in splits:
        if one.partition.index not in bounds:
            continue
        first, last = bounds[one.partition.index]
        low, high = one.first_entry, one.last_entry
        if first is not None and first.ledger >= one.ledger_id:
            low = max(low, first.entry) if first.ledger == one.ledger_id else high + 1
        if last is not None and last.ledger <= one.ledger_id:
            high = min(high, last.entry) if last.ledger == one.ledger_id else low - 1
        if low <= high:
            whole = one.whole and (low, high) == (one.first_entry, one.last_entry)
            yield replace(one, first_entry=low, last_entry=high, whole=whole)


def _between(bounds: Bounds) -> pc.Expression:
    """Rows of the given partitions that lie within their bounds."""
    found = pc.scalar(False)
    for index, each in bounds.items():
        found |= rows_between(index, *each)
    return found
