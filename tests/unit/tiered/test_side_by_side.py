"""A read has several requests on their way: one alone is slow, from a store far away."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.local import LocalFileSystem

from reader.config import StorageConfig
from reader.errors import CorruptError
from reader.storage import open_storage
from reader.tiered import TieredLedgers
from reader.tiered.object_reads import ObjectReads
from reader.tiered.tiered_ledgers import WINDOW, WINDOWS_AT_ONCE
from tests.unit.tiered.placed import JCLOUD, PARTITION, UUID, entries, place, put, read


@cache
def sent() -> list[bytes]:
    """Entries of eight windows: made by the process that runs these tests, not by all."""
    return entries(8 * WINDOW // 50_000, 100_000)


class OfPython(LocalFileSystem):  # type: ignore[misc]
    """A local directory through files of Python's, as stores of other packages are."""

    protocol = "of-python"


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    fsspec.register_implementation("of-python", OfPython, clobber=True)


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Whole windows are read once as many are asked for as may be; the others' sizes."""
    barrier = threading.Barrier(WINDOWS_AT_ONCE)
    met: list[int] = []
    asked = count()
    original = ObjectReads.read

    def waits(self: ObjectReads, at: int, size: int) -> object:
        if size == WINDOW and next(asked) < WINDOWS_AT_ONCE:  # not by met: it is behind
            met.append(barrier.wait(60))
        return original(self, at, size)

    monkeypatch.setattr(ObjectReads, "read", waits)
    yield met


@pytest.mark.parametrize("scheme", ["", "of-python://"])
def test_windows_are_asked_for_together(tmp_path: Path, scheme: str, together: list[int]) -> None:
    put(tmp_path, sent(), JCLOUD, block_size=8 << 20)
    where = place(tmp_path, JCLOUD).model_copy(update={"uri": f"{scheme}{tmp_path}"})
    assert read(TieredLedgers([where]), 0, len(sent()) - 1) == dict(enumerate(sent()))
    assert sorted(together) == [*range(WINDOWS_AT_ONCE)]


def test_a_read_that_nobody_wants_to_its_end_asks_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = put(tmp_path, sent(), JCLOUD, block_size=8 << 20)
    asked: list[int] = []
    original = ObjectReads.read

    def noted(self: ObjectReads, at: int, size: int) -> object:
        asked.append(at)
        return original(self, at, size)

    monkeypatch.setattr(ObjectReads, "read", noted)
    blocks = TieredLedgers([place(tmp_path, JCLOUD)]).read(PARTITION, 7, UUID, 0, len(sent()) - 1)
    next(blocks)
    blocks.close()
    windows = -(-data.stat().st_size // WINDOW)
    assert len(asked) <= 2 + WINDOWS_AT_ONCE < windows, "the index, too"
    assert not [one for one in threading.enumerate() if one.name.startswith("tiered-window")]


def test_an_object_that_was_cut_meanwhile(tmp_path: Path) -> None:
    data, _ = put(tmp_path, sent(), JCLOUD, block_size=8 << 20)
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    assert read(ledgers, 0, 3) == dict(enumerate(sent()[:4]))
    data.write_bytes(data.read_bytes()[: 3 * WINDOW])
    with pytest.raises(CorruptError):
        read(ledgers, 0, len(sent()) - 1)


@pytest.mark.parametrize("scheme", ["", "of-python://"])
def test_each_thread_gets_its_own_bytes(tmp_path: Path, scheme: str) -> None:
    data = b"".join(n.to_bytes(4, "big") for n in range(50_000))
    (tmp_path / "object").write_bytes(data)
    storage = open_storage(StorageConfig(uri=f"{scheme}{tmp_path}"))
    reads = ObjectReads(storage, "object")
    assert reads.size == len(data)
    places = [(n * 37 % 190_000, 1 + n % 9_000) for n in range(400)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda one: reads.read(*one).tobytes(), places))
    assert found == [data[at : at + size] for at, size in places]
