"""Compiled kernels are never run for other sources than they were compiled from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import reader

_CONSTANTS = Path("decode", "tables.py")

# The publish time (µs) of an entry with producer_name "p", sequence_id 0, publish_time 1 ms; and
# how many compiled kernels were found on disk, and not.
_SCAN = """
import numpy as np
from reader.decode.passes import entry_headers
from reader.decode.tables import E_PUBLISH
metadata = bytes.fromhex("0a0170 1000 1801")
entry = np.frombuffer(len(metadata).to_bytes(4, "big") + metadata + b"x", np.uint8)
one = np.zeros(1, np.int64)
_, entries = entry_headers.scan(entry, one, one + len(entry), np.zeros(1, np.uint8))
stats = entry_headers.scan_entries.stats
print(entries[E_PUBLISH, 0], sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def _scan(root: Path, cache: Path) -> tuple[int, int, int]:
    """(publish time, hits, misses) of a new process that imports the package below ``root``.

    The user's own cache, which has kernels of the same sources, is not used.
    """
    environment = {**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", _SCAN],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=environment,
        check=True,
    )
    published, hits, misses = map(int, done.stdout.split())
    return published, hits, misses


def test_a_change_in_an_imported_module_compiles_anew(tmp_path: Path) -> None:
    package = tmp_path / "reader"
    shutil.copytree(
        Path(reader.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    cache = tmp_path / "cache"
    assert _scan(tmp_path, cache) == (1_000, 0, 1)
    assert _scan(tmp_path, cache) == (1_000, 1, 0), "the second process finds the compiled kernel"

    constants = package / _CONSTANTS
    before = constants.read_text()
    # Two columns of the table change places.
    after = before.replace("E_PUBLISH: Final = 4", "E_PUBLISH: Final = 5")
    after = after.replace("E_BROKER: Final = 5", "E_BROKER: Final = 4")
    assert after != before
    constants.write_text(after)
    assert _scan(tmp_path, cache) == (1_000, 0, 1)

    constants.write_text(before)
    assert _scan(tmp_path, cache) == (1_000, 1, 0), "both are kept, each for its sources"
