"""Times that PySpark's ``collect()`` cannot give, as docs/limitations.md has them.

The values are certain, and 0001-01-01 and 9999-12-31 are usual for "no time" and "for ever", so
they are shown in SQL, and not NULL for the sake of ``collect()``.
"""

import time
from collections.abc import Iterator

import pytest
from pyspark.sql.types import TimestampType

from reader.model.columns import FIRST_MICROS, LAST_MICROS

HOUR = 3_600_000_000


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "first", "last"),
    [("UTC", 24, 0), ("JST-9", 15, 9), ("EST5", 29, 0)],
    indirect=["zone"],
)
def test_hours_that_collect_does_not_give(zone: str, first: int, last: int) -> None:
    """At the beginning of the year 1, and at the end of 9999."""
    read = TimestampType().fromInternal
    assert read(FIRST_MICROS + first * HOUR) and read(LAST_MICROS - last * HOUR)
    with pytest.raises(ValueError, match="is out of range"):
        read(FIRST_MICROS + (first - 1) * HOUR)
    if last:
        with pytest.raises(ValueError, match="is out of range"):
            read(LAST_MICROS - (last - 1) * HOUR)
