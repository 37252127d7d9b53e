"""The memory that a few kB of hostile entries take, measured in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.decode.hostile import CASES

MOST_MIB = 224
# Entries that become one rescued row each, not decompressed or not repeated.
REFUSED = {
    "a_size_that_is_only_stated",
    "a_batch_of_impossible_size",
    "half_a_gigabyte_of_zeros",
    "a_name_that_is_repeated_too_often",
}


def test_memory_is_bounded_by_what_comes_out() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.unit.decode.hostile"],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = {}
    for line in ran.stdout.splitlines():
        name, _, number, mib = line.split()
        assert int(mib) <= MOST_MIB, f"{name} took {mib} MiB"
        rows[name] = int(number)
    assert list(rows) == [case.__name__ for case in CASES]
    assert {name for name, number in rows.items() if number == 1} == REFUSED | {
        "millions_of_properties"
    }
    assert rows["millions_of_messages"] == 1 << 22
