"""Minutes of the run that takes an hour by hand (`make faults`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import run

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


def test_everything_fails_for_minutes(tmp_path: Path) -> None:
    report = run(seed=7, seconds=150, directory=tmp_path, say=print)
    print(report.text())
    assert not report.bugs
    # How many there are depends on how busy the machine is: these only say that it was a run.
    assert report.offloader_killed >= 1
    assert sum(report.faults.values()) >= 10
    assert report.messages >= 5_000
    assert sum(report.answers.values()) >= 3
    first, last = report.files["offloader"]
    assert last <= first + 50, "the offloader's open files grow"
