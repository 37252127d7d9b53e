"""Rows that are written by position are read in the columns that they were written to."""

import pytest

from tests.simulation.rows.written import write_and_read


def test_some_rows() -> None:
    for seed in range(60):
        write_and_read(seed)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_many_rows() -> None:
    for seed in range(20_000):
        write_and_read(seed)
