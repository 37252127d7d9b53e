"""Segments cut into splits by entry range, and small splits put together for one task."""

from collections.abc import Sequence
from dataclasses import dataclass

from reader.model import Segment, Split, Tier

_MIN_SPLIT_BYTES = 4 << 20
_MIN_TIERED_BYTES = 64 << 20
"""Pulsar offloads in blocks of 64 MiB, which are read from their beginning on."""


@dataclass(frozen=True, slots=True)
class EntryRange:
    """Entries first..last (inclusive) of a segment that has entries."""

    segment: Segment
    first: int
    last: int

    @property
    def entries(self) -> int:
        return self.last - self.first + 1

    @property
    def bytes(self) -> int:
        """Their share of the segment's bytes: an estimate."""
        return self.segment.bytes * self.entries // self.segment.entries


def whole(segment: Segment) -> EntryRange:
    """All entries of a segment."""
    return EntryRange(segment, 0, segment.last_entry)


def cut_ranges(
    ranges: Sequence[EntryRange], target_bytes: int, parallelism: int = 1
) -> list[tuple[Split, ...]]:
    """The splits of each range, in order.

    A range is cut so that a split is about ``target_bytes``, less where ``parallelism`` tasks
    would otherwise be idle.
    """
    total = sum(one.bytes for one in ranges)
    target = max(_MIN_SPLIT_BYTES, min(target_bytes, total // max(1, parallelism)))
    tiered = max(_MIN_TIERED_BYTES, target)
    return [_cut(one, tiered if one.segment.tier is Tier.TIERED else target) for one in ranges]


def _cut(one: EntryRange, target: int) -> tuple[Split, ...]:
    segment = one.segment
    count = max(1, -(-one.bytes // target))
    step = -(-one.entries // count)
    return tuple(
        Split(
            partition=segment.partition,
            ledger_id=segment.ledger_id,
            first_entry=first,
            last_entry=min(first + step - 1, one.last),
            tier=segment.tier,
            reason=segment.reason,
            state=segment.state,
            bytes=segment.bytes * min(step, one.last + 1 - first) // segment.entries,
            metadata=segment.metadata,
            whole=step >= segment.entries,
            lookback=segment.lookback,
            identity=segment.identity,
            opened_at=segment.opened_at,
        )
        for first in range(one.first, one.last + 1, step)
    )


def pack_splits(splits: Sequence[Split], target_bytes: int) -> list[list[Split]]:
    """Neighbouring small splits put together, so that a task has about ``target_bytes`` to do.

    Never more than 512 splits a task, and the order of splits is kept.
    """
    packs: list[list[Split]] = []
    size = 0
    for split in splits:
        fits = packs and size + split.bytes <= target_bytes and len(packs[-1]) < 512
        if fits:
            packs[-1].append(split)
            size += split.bytes
        else:
            packs.append([split])
            size = split.bytes
    return packs
