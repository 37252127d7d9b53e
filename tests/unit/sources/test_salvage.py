"""What can be read of a ledger that is declared lost: whatever is in front of damage, or behind."""

import random
from collections.abc import Generator

import pytest

from reader.errors import CorruptError, NotFoundError, UnavailableError
from reader.model import EntryBlock
from reader.sources import salvage as salvaging
from reader.sources.salvage import salvage, unreadable


class Damaged:
    """``bad``: entries that cannot be read; a read may begin at each ``begins`` th one."""

    def __init__(self, bad: set[int], begins: int = 1, block: int = 7) -> None:
        self.bad = bad
        self.begins = begins
        self.block = block
        self.reads = 0

    def read(self, first: int, last: int) -> Generator[EntryBlock]:
        self.reads += 1
        lead = first - first % self.begins
        end = next((n for n in range(lead, last + 1) if n in self.bad), last + 1)
        # A window is given as a whole, or not at all.
        whole = end if end > last else end - end % self.block
        for begin in range(first, whole, self.block):
            stop = min(begin + self.block, whole)
            yield EntryBlock.of(5, {n: b"%d" % n for n in range(begin, stop)})
        if end <= last:
            raise CorruptError(f"entry {end} is damaged")

    def begin_after(self, entry: int, error: CorruptError | NotFoundError) -> int | None:
        return entry - entry % self.begins + self.begins


def read(ledger: Damaged, first: int, last: int) -> tuple[list[int], list[int]]:
    """(entries that were read, those that were not); together they are the range, in order."""
    good, lost, every = [], [], []
    for block in salvage(5, ledger, first, last):
        every += block.entry_ids.tolist()
        for i, (number, at, size) in enumerate(
            zip(block.entry_ids.tolist(), block.offsets, block.lengths, strict=True)
        ):
            if i in block.damaged:
                assert size == 0
                lost.append(number)
            else:
                assert block.arena[at : at + size].tobytes() == b"%d" % number
                good.append(number)
    assert every == list(range(first, last + 1))
    return good, lost


@pytest.mark.parametrize("bad", [set(), {0}, {99}, {50}, {3, 4, 5, 50, 98}, set(range(100))])
def test_each_entry_that_is_missing_alone(bad: set[int]) -> None:
    """As on bookies."""
    assert read(Damaged(bad), 0, 99)[1] == sorted(bad)
    assert read(Damaged(bad), 40, 60)[1] == sorted(bad & set(range(40, 61)))


def test_what_lies_between_damage_and_the_next_beginning() -> None:
    """As in objects: of a block only what is in front of its damage."""
    found, lost = read(Damaged({13, 57}, begins=10), 0, 99)
    assert lost == [*range(13, 20), *range(57, 60)]
    assert len(found) == 90


def test_any_damage() -> None:
    rng = random.Random(3)
    for _ in range(200):
        begins = rng.choice([1, 4, 16])
        bad = {rng.randrange(200) for _ in range(rng.randrange(6))}
        first = rng.randrange(200)
        last = rng.randrange(first, 200)
        lost = {n for n in range(first, last + 1) if any(n - n % begins <= one <= n for one in bad)}
        assert read(Damaged(bad, begins, rng.randrange(1, 9)), first, last)[1] == sorted(lost)


def test_a_ledger_without_damage_is_read_once() -> None:
    ledger = Damaged(set())
    read(ledger, 0, 99_999)
    assert ledger.reads == 1


def test_a_store_that_does_not_answer_is_an_error() -> None:
    class Silent(Damaged):
        def read(self, first: int, last: int) -> Generator[EntryBlock]:
            yield from super().read(first, min(last, 20))
            raise UnavailableError("nobody is there")

    with pytest.raises(UnavailableError):
        read(Silent({3}), 0, 99)


def test_what_is_gone_altogether_comes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(salvaging, "MOST_ENTRIES", 40)

    class Gone(Damaged):
        def read(self, first: int, last: int) -> Generator[EntryBlock]:
            raise NotFoundError("it is not there")
            yield  # a generator

        def begin_after(self, entry: int, error: CorruptError | NotFoundError) -> int | None:
            return None if isinstance(error, NotFoundError) else entry + 1

    assert read(Gone(set()), 10, 109) == ([], list(range(10, 110)))
    assert [len(one) for one in unreadable(5, 10, 109, "why")] == [40, 40, 20]
