"""Kernels that several processes compile at once."""

from pathlib import Path

import pytest

from reader.kernels import cache, compiling, utf8
from reader.kernels.cache import KernelCache
from reader.kernels.compiling import kernel


def test_signatures_that_two_processes_save_at_once_stay_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have read an empty index; the one that writes its index last writes its code first."""
    for module in (cache, compiling):
        monkeypatch.setattr(module, "kernel_cache", lambda module: KernelCache("key", tmp_path))

    def double(number: float) -> float:
        return number * 2

    double.__module__ = utf8.__name__
    first, second, later = (kernel(double) for _ in range(3))
    assert second(2.5) == 5
    [index] = tmp_path.glob("*.nbi")
    of_second = index.read_bytes()
    index.unlink()
    assert first(2) == 4
    index.write_bytes(of_second)
    assert later(2.5) == 5, "not the code for whole numbers"
    assert later.stats.cache_hits
