"""The memory that a few kB of hostile entries take, measured in a process of its own."""

import os
import sys
from pathlib import Path

from tests.support.running import run_program
from tests.unit.decode.hostile import CASES

MOST_MIB = 224
_PROGRAM = """
from spark_ext.without_pandas import keep_out_pandas
keep_out_pandas()
from tests.unit.decode.hostile import main
main()
"""
# Entries that become one rescued row each, not decompressed or not repeated.
REFUSED = {
    "a_size_that_is_only_stated",
    "a_batch_of_impossible_size",
    "half_a_gigabyte_of_zeros",
    "a_name_that_is_repeated_too_often",
    "millions_of_properties",
}


def test_memory_is_bounded_by_what_comes_out() -> None:
    ran = run_program(
        [sys.executable, "-c", _PROGRAM],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    rows, rescued = {}, {}
    for line in ran.stdout.splitlines():
        name, _, number, of_them, mib = line.split()
        assert int(mib) <= MOST_MIB, f"{name} took {mib} MiB"
        rows[name] = int(number)
        rescued[name] = int(of_them)
    assert list(rows) == [case.__name__ for case in CASES]
    assert {name for name, number in rows.items() if number == 1} == REFUSED
    assert rows["millions_of_messages"] == 1 << 22
    # Otherwise the memory of rescued rows would be measured, and not that of messages.
    assert {name: number for name, number in rescued.items() if number} == {
        **dict.fromkeys(REFUSED, 1),
        "a_header_in_each_rescued_row": 250,
    }
