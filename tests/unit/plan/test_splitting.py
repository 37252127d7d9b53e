"""Segments as splits, and splits as tasks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reader.model import Segment, Split, Tier
from reader.plan.splitting import EntryRange, cut_ranges, pack_splits, whole
from tests.unit.plan.values import segment


@given(
    entries=st.integers(1, 5000),
    size=st.integers(0, 1 << 34),
    target=st.integers(1 << 20, 1 << 28),
    parallelism=st.integers(1, 16),
    tier=st.sampled_from(["bookkeeper", "broker"]),
)
def test_splits_cover_each_entry_once(
    entries: int, size: int, target: int, parallelism: int, tier: Tier
) -> None:
    hot = [replace(one, tier=tier) for one in (segment(7, entries, size), segment(8, 3, 10))]
    cut = cut_ranges([whole(one) for one in hot], target, parallelism)
    splits = [split for some in cut for split in some]
    seen = [(s.ledger_id, e) for s in splits for e in range(s.first_entry, s.last_entry + 1)]
    assert seen == [(h.ledger_id, e) for h in hot for e in range(h.entries)]
    assert all(s.whole == (s.first_entry == 0 and s.last_entry == s_last(hot, s)) for s in splits)
    packs = pack_splits(splits, target)
    assert [s for pack in packs for s in pack] == splits


def s_last(hot: list[Segment], split: Split) -> int:
    return next(h.last_entry for h in hot if h.ledger_id == split.ledger_id)


@given(size=st.integers(0, 1 << 30), first=st.integers(0, 999), count=st.integers(1, 1000))
def test_a_part_of_a_segment(size: int, first: int, count: int) -> None:
    part = EntryRange(segment(7, 1000, size), first, min(first + count - 1, 999))
    [splits] = cut_ranges([part], 4 << 20)
    seen = [e for s in splits for e in range(s.first_entry, s.last_entry + 1)]
    assert seen == list(range(part.first, part.last + 1))
    assert all(s.whole == (part.entries == 1000 and len(splits) == 1) for s in splits)
