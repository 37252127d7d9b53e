"""Minutes of the run that takes an hour by hand (`make faults`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import run

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


def test_everything_fails_for_minutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(seed=7, seconds=150, directory=tmp_path, say=print)
    with capsys.disabled():
        print(f"\n{report.text()}")
    assert sum(report.faults.values()) >= 20
    assert report.requests_hit >= 10
    assert report.offloader_killed >= 1
    assert report.messages >= 20_000
    assert sum(report.answers.values()) >= 8
    assert len(report.answers) >= 3, "of all kinds of questions, most were answered"
    assert not report.bugs
    first, last = report.files["offloader"]
    assert last <= first + 50, "the offloader's open files grow"
