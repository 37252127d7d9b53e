"""Where entries begin, as reads have learned it: right, and bounded, however many there are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.tiered import TieredLedgers
from reader.tiered import places as places_module
from reader.tiered.object_reads import ObjectReads
from reader.tiered.places import MOST_BYTES, Places
from reader.tiered.walk import Found
from tests.support.examples import examples
from tests.unit.tiered.placed import JCLOUD, PARTITION, UUID, place, put

_NO = np.zeros(0, np.uint8)


def found(first: int, count: int) -> Found:
    """Entry n begins at 10 n + 3."""
    ids = np.arange(first, first + count, dtype=np.int64)
    return Found(first, _NO, ids, ids, 10 * ids + 3)


def test_what_follows_each_other_is_all_known() -> None:
    places = Places()
    for first in range(0, 3_000, 100):
        places.add(found(first, 100))
    assert places.before(-1) is None
    for entry in range(3_000):
        assert places.of(entry) == 10 * entry + 3
    assert places.of(3_000) is None
    assert places.before(9_999) == (2_999, 29_993)


def test_of_twelve_million_entries_it_stays_bounded() -> None:
    places, most = Places(), 0
    for first in range(0, 12_000_000, 40_000):
        places.add(found(first, 40_000))
        most = max(most, places.nbytes)
    assert MOST_BYTES / 3 < most <= MOST_BYTES
    for entry in (0, 1, 77_777, 5_999_999, 11_999_999):
        at, byte = places.before(entry) or (-1, -1)
        assert byte == 10 * at + 3
        assert entry - 256 < at <= entry


def test_single_entries_that_lie_apart_are_bounded_too() -> None:
    places = Places()
    for entry in range(0, 1_000_000, 50):
        places.add(found(entry, 1))
        assert places.nbytes <= MOST_BYTES
    at, byte = places.before(999_999) or (-1, -1)
    assert byte == 10 * at + 3


@given(
    st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=30),
    st.integers(600, 6_000),
)
@settings(max_examples=examples(300), deadline=None)
def test_any_order(added: list[tuple[int, int]], most: int) -> None:
    places = Places(most)
    known: set[int] = set()
    for first, count in added:
        places.add(found(first, count))
        known |= set(range(first, first + count))
        assert places.nbytes <= most
    for entry in range(-1, 600):
        at = places.before(entry)
        if at is None:
            continue
        assert at[0] in known
        assert at[0] <= entry
        assert at[1] == 10 * at[0] + 3
    exact = {n for n in range(600) if places.of(n) is not None}
    assert exact <= known


@pytest.mark.parametrize("most", [600, 2_000, MOST_BYTES])
def test_a_ledger_of_many_entries_is_read_right(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup reads what lies between it and the place before it, and not the whole block."""
    monkeypatch.setattr(places_module.Places.__init__, "__defaults__", (most,))
    sent = [b"%d" % n * 40 for n in range(3_000)]
    put(tmp_path, sent, JCLOUD, block_size=8 << 20)
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    assert sum(map(len, ledgers.read(PARTITION, 7, UUID, 0, 2_999))) == 3_000
    sizes: list[int] = []
    original = ObjectReads.read

    def noted(self: ObjectReads, at: int, size: int) -> object:
        sizes.append(size)
        return original(self, at, size)

    monkeypatch.setattr(ObjectReads, "read", noted)
    for entry in (0, 1, 1_499, 2_998, 2_999):
        (block,) = ledgers.read(PARTITION, 7, UUID, entry, entry)
        at, size = int(block.offsets[0]), int(block.lengths[0])
        assert block.arena[at : at + size].tobytes() == sent[entry]
    if most == MOST_BYTES:
        assert max(sizes) < 1_000
    assert sum(sizes) < 5 * (3 * 64 << 10)
