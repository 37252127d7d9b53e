"""The command line in the test's own process."""

from __future__ import annotations

import sys

import pytest

from offloader.cli import app as cli

__all__ = ["run"]


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)."""
    monkeypatch.setattr(sys, "argv", ["pulsar-lake", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    found = capsys.readouterr()
    assert "Traceback" not in found.err
    return int(str(caught.value.code or 0)), found.out, found.err
