"""Where in a partition the messages of a time begin.

In the table by its statistics and the rows of one file, exactly. In what is hot by bisection, as
Pulsar's own seek finds a time: publish times are producers' clocks, and mostly ascend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from reader.clients import Clients
from reader.model import Partition, Position, Split
from reader.stream.entry_sizes import entries_of_file, entries_of_splits, files_of
from reader.stream.topic_batch import TopicBatch

__all__ = ["position_before"]

_LOOK_ENTRIES = 16
"""How many entries are read for a message of them; twice as many where they hold none."""


def position_before(
    clients: Clients, batch: TopicBatch, partition: Partition, time: int
) -> Position:
    """The position behind which all that is of ``time`` (µs) or later begins, within a batch.

    Its end where nothing is. Raises as reading does.
    """
    plan = batch.plan(clients)
    for file in files_of(plan, partition):
        latest = file.limit("__publishTime")[1]
        if latest is not None and latest < time:
            continue
        for entries in entries_of_file(clients, batch, plan, file, partition):
            found = np.flatnonzero(entries.times >= time)
            if len(found):
                first = int(found[0])
                return Position(int(entries.ledgers[first]), int(entries.entries[first]) - 1)
    ledgers = [
        _whole(one.splits)
        for one in plan.segments
        if one.splits and one.segment.partition == partition
    ]
    return _bisected(clients, batch, ledgers, time) or batch.end[partition].at


def _whole(splits: Sequence[Split]) -> Split:
    return replace(splits[0], last_entry=splits[-1].last_entry)


def _bisected(
    clients: Clients, batch: TopicBatch, ledgers: Sequence[Split], time: int
) -> Position | None:
    """None: nothing is as late."""
    low, high = 0, len(ledgers)  # those before ``low`` begin earlier, those from ``high`` on do not
    while low < high:
        middle = (low + high) // 2
        found = _look(clients, batch, ledgers[middle], ledgers[middle].first_entry)
        if found is None or found[1] < time:
            low = middle + 1
        else:
            high = middle
    if low:
        ledger = ledgers[low - 1]
        first, last = ledger.first_entry, ledger.last_entry + 1
        while first < last:
            middle = (first + last) // 2
            found = _look(clients, batch, ledger, middle)
            if found is not None and found[1] < time:
                first = found[0] + 1
            else:
                last = middle
        if first <= ledger.last_entry:
            return Position(ledger.ledger_id, first - 1)
    return Position(ledgers[low].ledger_id, -1) if low < len(ledgers) else None


def _look(clients: Clients, batch: TopicBatch, ledger: Split, entry: int) -> tuple[int, int] | None:
    """(entry, publish time) of the first message at ``entry`` or behind it; None: there is none."""
    count = _LOOK_ENTRIES
    while entry <= ledger.last_entry:
        last = min(entry + count - 1, ledger.last_entry)
        part = replace(ledger, first_entry=entry, last_entry=last, whole=False)
        for found in entries_of_splits(clients, batch, [part]):
            return int(found.entries[0]), int(found.times[0])
        entry, count = last + 1, 2 * count
    return None
