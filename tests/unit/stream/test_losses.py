"""What a stream says of losses."""

from __future__ import annotations

from reader.stream.losses import warn_once


def test_a_loss_is_warned_of_once() -> None:
    """A stream with limits plans a micro-batch twice."""
    warnings: list[str] = []
    warn = warn_once(warnings.append)
    for text in ("ledger 1", "ledger 2", "ledger 1", "ledger 2"):
        warn(text)
    assert warnings == ["ledger 1", "ledger 2"]
    for number in range(3, 3_000):
        warn(f"ledger {number}")
    warn("ledger 2999")
    assert len(warnings) == 2_999
