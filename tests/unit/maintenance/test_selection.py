"""Which files maintenance replaces: tables of sizes, and what holds for any."""

import random
from collections.abc import Sequence

import pytest

from offloader.maintenance.selection import GROWTH, compactions, expiry
from offloader.maintenance.table_files import TableFile

MIB = 1 << 20
TARGET = 256 * MIB


def file(
    ledger: int, size: int, *, partition: int = 0, published: tuple[int, int] | None = None
) -> TableFile:
    return TableFile(
        f"p{partition}-{ledger}", size, 10, partition, (ledger, ledger), (0, 9), published
    )


def groups(sizes: Sequence[int]) -> list[list[int]]:
    files = [file(ledger, size) for ledger, size in enumerate(sizes)]
    return [[one.ledgers[0] for one in group] for group in compactions(files, TARGET)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([MIB] * 7, [], id="too few"),
        pytest.param([MIB] * 8, [list(range(8))], id="just enough"),
        pytest.param([MIB] * 20, [list(range(20))], id="all that fit"),
        pytest.param([60 * MIB] * 4, [], id="large ones stay"),
        pytest.param([200 * MIB] + [MIB] * 8, [list(range(1, 9))], id="beside a large one"),
        pytest.param([MIB] * 8 + [200 * MIB], [list(range(8))], id="before a large one"),
        pytest.param([MIB] * 4 + [200 * MIB] + [MIB] * 4, [], id="not across a large one"),
        pytest.param([8 * MIB, *[MIB] * 8], [list(range(1, 9))], id="one level at a time"),
        pytest.param([16 * MIB] * 17, [list(range(16))], id="up to the target"),
    ],
)
def test_neighbours_of_like_size(sizes: list[int], expected: list[list[int]]) -> None:
    assert groups(sizes) == expected


def test_partitions_are_kept_apart() -> None:
    files = [file(n, MIB, partition=n // 4) for n in range(8)]
    assert compactions(files, TARGET) == []


def test_files_without_publish_times_are_kept_apart() -> None:
    """Their rows would keep the others from expiring, or go with them."""
    known = (1, 2)
    files = [file(n, MIB, published=None if n in (8, 9) else known) for n in range(18)]
    found = [[one.ledgers[0] for one in group] for group in compactions(files, TARGET)]
    assert found == [list(range(8)), list(range(10, 18))]
    among_themselves = [file(n, MIB) for n in range(8)]
    assert compactions(among_themselves, TARGET) == [tuple(among_themselves)]


def test_a_row_is_rewritten_a_few_times_at_most() -> None:
    """Files come one by one, and are compacted after each: how often were the bytes written?"""
    random.seed(5)
    sizes: list[int] = []
    written = added = 0
    for _ in range(3000):
        sizes.append(random.randint(MIB // 4, MIB))
        added += sizes[-1]
        while found := groups(sizes):
            for group in reversed(found):
                total = sum(sizes[group[0] : group[-1] + 1])
                assert total <= TARGET
                assert total >= GROWTH * max(sizes[group[0] : group[-1] + 1])
                sizes[group[0] : group[-1] + 1] = [total]
                written += total
    assert written <= 4 * added, "log 8 of 256 MiB / 0.25 MiB is 3.3"
    assert len(sizes) < 3000 / 50


NOW = 1_000_000
KEEP = 100_000


@pytest.mark.parametrize(
    ("published", "fate"),
    [
        pytest.param((NOW - 200_000, NOW - KEEP - 1), "gone", id="all too old"),
        pytest.param((NOW - KEEP - 10_001, NOW - KEEP), "partly", id="some much too old"),
        pytest.param((NOW - KEEP - 10_000, NOW - KEEP), "kept", id="some a little too old"),
        pytest.param((NOW - KEEP, NOW), "kept", id="young"),
        pytest.param((0, NOW + 5_000_000), "partly", id="a clock that is ahead"),
        pytest.param(None, "kept", id="unknown"),
    ],
)
def test_expiry(published: tuple[int, int] | None, fate: str) -> None:
    one = file(1, MIB, published=published)
    plan = expiry([one], NOW, KEEP)
    assert plan.before == NOW - KEEP
    assert (one in plan.gone, one in plan.partly) == (fate == "gone", fate == "partly")
