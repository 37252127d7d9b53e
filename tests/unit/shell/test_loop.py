"""What a shell takes: commands as they are typed, and errors that end nothing."""

from pathlib import Path
from typing import Any, cast

import pytest

from offloader.cli.shell.backslash import Leave
from offloader.cli.shell.execution import Session
from offloader.cli.shell.loop import take
from offloader.cli.shell.screen import Screen
from offloader.cli.shell.state import Shell


def shell() -> Shell:
    return Shell(Session(lambda: cast(Any, None)), Screen())


@pytest.mark.parametrize("typed", ["\\q", "\\q;", " \\quit ;", "exit", "EXIT;"])
def test_leaves_with_or_without_a_semicolon(typed: str) -> None:
    with pytest.raises(Leave):
        take(shell(), typed)


@pytest.mark.parametrize(
    "typed", ["\\i ~nobody-has-this-name/a.sql", "\\o ~nobody-has-this-name/a"]
)
def test_any_error_is_a_line(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    take(shell(), typed)
    err = capsys.readouterr().err
    assert err.startswith("error: RuntimeError: ")
    assert err.count("\n") == 1


def test_a_file_may_begin_with_a_mark_of_byte_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(Shell, "run", lambda self, text: ran.append(text))
    path = tmp_path / "windows.sql"
    path.write_text("SELECT 1;\nSELECT 2;\n", encoding="utf-8-sig")
    take(shell(), f"\\i {path}")
    assert ran == ["SELECT 1", "SELECT 2"]
