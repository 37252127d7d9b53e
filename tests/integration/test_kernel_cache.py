"""Compiled kernels are never run for other sources than they were compiled from."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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

# The same, while the constants are others: from the first kernels on until all are imported, or
# until the constants are imported, and no kernels.
_UPGRADED = {
    "while it imports kernels": """
import os
from reader.kernels import utf8
os.rename("tables.py", "reader/decode/tables.py")
from reader.decode.passes import entry_headers
os.rename("before.py", "reader/decode/tables.py")
""",
    "before it imports kernels": """
import importlib.util, os, sys, time
import reader
name, path = "reader.decode.tables", "reader/decode/tables.py"
os.rename("tables.py", path)
spec = importlib.util.spec_from_file_location(name, path)
sys.modules[name] = importlib.util.module_from_spec(spec)  # alone: its package imports kernels
spec.loader.exec_module(sys.modules[name])
assert "reader.kernels.cache" not in sys.modules
time.sleep(0.1)  # a file's times are those of the system's last tick
os.rename("before.py", path)
""",
}


def _scan(root: Path, cache: Path, begin: str = "") -> tuple[int, int, int]:
    """(publish time, hits, misses) of a new process that imports the package below ``root``."""
    environment = {**os.environ, "PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(cache)}
    environment["XDG_CACHE_HOME"] = str(cache / "user")  # the real one has the same kernels
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", begin + _SCAN],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=environment,
        check=True,
    )
    published, hits, misses = map(int, done.stdout.split())
    return published, hits, misses


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, to be changed."""
    copy = tmp_path / "reader"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(reader.__file__).parent, copy, ignore=ignored)
    return copy


def _others(constants: str) -> str:
    """Return a table of which two columns have changed places."""
    after = constants.replace("E_PUBLISH: Final = 4", "E_PUBLISH: Final = 5")
    after = after.replace("E_BROKER: Final = 5", "E_BROKER: Final = 4")
    assert after != constants
    return after


@pytest.mark.parametrize("when", _UPGRADED)
def test_a_process_that_is_upgraded_keeps_no_kernels(
    tmp_path: Path, package: Path, when: str
) -> None:
    """Its modules are of two versions, and the hash of the first would name kernels of both."""
    cache = tmp_path / "cache"
    before = (package / _CONSTANTS).read_text()
    (tmp_path / "before.py").write_text(before)
    (tmp_path / "tables.py").write_text(_others(before))
    assert _scan(tmp_path, cache, _UPGRADED[when])[1] == 0
    assert _scan(tmp_path, cache) == (1_000, 0, 1)


def test_a_change_in_an_imported_module_compiles_anew(tmp_path: Path, package: Path) -> None:
    cache = tmp_path / "cache"
    assert _scan(tmp_path, cache) == (1_000, 0, 1)
    assert _scan(tmp_path, cache) == (1_000, 1, 0), "the second process finds the compiled kernel"

    constants = package / _CONSTANTS
    before = constants.read_text()
    constants.write_text(_others(before))
    assert _scan(tmp_path, cache) == (1_000, 0, 1)

    constants.write_text(before)
    assert _scan(tmp_path, cache) == (1_000, 1, 0), "both are kept, each for its sources"
