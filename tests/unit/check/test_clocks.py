"""How far clocks are apart, from times in whole seconds."""

import pytest

from offloader.check.clock_check import ahead_ms, check_clocks
from offloader.check.storage_check import StoredAt

S = 1000


@pytest.mark.parametrize(
    ("before", "there", "after", "ahead"),
    [
        (10_000, 10_000, 10_100, 0),
        (10_900, 10_000, 11_000, 0),  # whole seconds: it may have been 10.9 there
        (9_999, 10_000, 10_050, 0),  # within the request
        (12_000, 10_000, 12_100, 1_001),
        (8_000, 10_000, 8_100, -1_900),
        (8_000, 10_000, 10_100, 0),  # a slow answer tells nothing
        (10_000, None, 10_100, None),
    ],
)
def test_ahead(before: int, there: int | None, after: int, ahead: int | None) -> None:
    assert ahead_ms(StoredAt(before, there, after)) == ahead


def at(host_ahead_ms: int) -> StoredAt:
    """As a clock in whole seconds answers, at once."""
    host = 1_000_000_000
    there = (host - host_ahead_ms) // 1000 * 1000
    return StoredAt(host, there, host)


@pytest.mark.parametrize(
    ("broker", "storage", "state", "text"),
    [
        (0, 0, "ok", "this clock and that of the broker and the storage agree"),
        (1 * S, -1 * S, "ok", "agree"),
        (30 * S, 0, "warning", "this clock is 29 s ahead of that of the broker"),
        (0, -30 * S, "warning", "this clock is 30 s behind that of the storage"),
        (10 * S, -40 * S, "warning", "40 s behind that of the storage"),
        (-600 * S, 0, "failed", "this clock is 10 minutes behind that of the broker: maintenance"),
    ],
)
def test_findings(broker: int, storage: int, state: str, text: str) -> None:
    found = check_clocks({"the broker": at(broker), "the storage": at(storage)})
    assert found.state == state
    assert text in found.text
    assert ("NTP" in found.fix) is (state != "ok")


def test_nobody_says() -> None:
    assert check_clocks({}).state == "skipped"
    assert check_clocks({"the storage": StoredAt(1, None, 1)}).state == "skipped"
