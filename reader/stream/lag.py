"""How far a stream is behind: messages, bytes and seconds of each partition that has not been read.

Of files the log says how many rows there are; of hot entries that is estimated, by the last entries
that there are. Seconds: the age of the oldest message that was not read.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from reader.clients import Clients
from reader.model import Partition, Position, Split
from reader.stream.topic_batch import TopicBatch

_SECONDS = 5.0
"""How long what was read of entries is believed."""
_SOME_ENTRIES = 16


@dataclass(frozen=True, slots=True)
class Lag:
    """What a partition has that was not read; ``seconds`` None where nobody knows."""

    messages: int = 0
    bytes: int = 0
    seconds: float | None = 0.0


@dataclass(slots=True)
class _Seen:
    """What was read of a partition's entries: ``rows`` of each, and when the oldest was published
    (s since the epoch)."""

    at: float
    rows: float
    oldest: float | None


class LagReader:
    """For one thread at a time. ``clock``: s since the epoch."""

    def __init__(self, clients: Clients, *, clock: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._clock = clock
        self._seen: dict[Partition, _Seen] = {}

    def of(self, batch: TopicBatch) -> dict[Partition, Lag]:
        """Of each partition of what lies between where a stream is and the end of its topic."""
        plan = batch.plan
        found: dict[Partition, Lag] = {}
        for partition in batch.end:
            at, to = batch.start[partition].at, batch.end[partition].at
            if to <= at:
                found[partition] = Lag()
                continue
            splits = [one for one in plan.splits if one.partition == partition]
            seen = self._look(batch, partition, splits)
            messages = sum(one.entries for one in splits) * seen.rows
            size = sum(one.bytes for one in splits)
            oldest = seen.oldest
            for file in plan.cold:
                low, high = file.file.limit("__partition")
                if file.read and low == high == partition.index:
                    part = _share(file.file.limit("__ledgerId"), at)
                    messages += (file.file.rows or 0) * part
                    size += int(file.file.bytes * part)
                    least = file.file.limit("__publishTime")[0]
                    if least is not None and part == 1.0:
                        oldest = min(oldest or least / 1e6, least / 1e6)
            seconds = None if oldest is None else max(0.0, self._clock() - oldest)
            found[partition] = Lag(round(messages), size, seconds)
        return found

    def _look(self, batch: TopicBatch, partition: Partition, splits: Sequence[Split]) -> _Seen:
        known = self._seen.get(partition)
        if known is not None and self._clock() - known.at < _SECONDS:
            return known
        from reader.stream.entry_sizes import (
            entries_of_splits,  # kernels: only where there is a lag
        )

        rows, oldest = 1.0, None
        if splits:
            first, last = splits[0], splits[-1]
            for entries in entries_of_splits(self._clients, batch, [_part(first, newest=False)]):
                oldest = int(entries.times[0]) / 1e6
                break
            found = list(entries_of_splits(self._clients, batch, [_part(last, newest=True)]))
            count = sum(len(one) for one in found)
            rows = sum(int(one.rows.sum()) for one in found) / count if count else 1.0
        self._seen[partition] = seen = _Seen(self._clock(), rows, oldest)
        return seen


def _part(split: Split, *, newest: bool) -> Split:
    """Some entries at one end of it."""
    first, last = split.first_entry, split.last_entry
    if newest:
        return replace(split, first_entry=max(first, last - _SOME_ENTRIES + 1), whole=False)
    return replace(split, last_entry=min(last, first + _SOME_ENTRIES - 1), whole=False)


def _share(ledgers: tuple[int | None, int | None], at: Position) -> float:
    """How much of a file lies behind a position, about: its ledgers are taken for equal."""
    first, last = ledgers
    if first is None or last is None or first > at.ledger:
        return 1.0
    return (last - at.ledger + 0.5) / (last - first + 1)
