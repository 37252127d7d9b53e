"""How long a bookie may take on a machine that is busy with something else."""

from __future__ import annotations

import pytest


@pytest.fixture
def nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of which bookie is asked for what: one that is slow by chance changes nothing."""
    monkeypatch.setattr("reader.bookkeeper.pool.LATE_SECONDS", 60.0)
