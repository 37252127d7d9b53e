"""A count is the number of rows that a read gives, whatever the headers of batches state."""

import pytest

from tests.simulation.rows.counted import count_and_read


def test_some_counts() -> None:
    for seed in range(9, 15):
        count_and_read(seed)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_many_counts() -> None:
    for seed in range(2_000):
        count_and_read(seed)
