"""Directories that hold what is believed or run."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from reader.private_directory import NotPrivateError, check_private, make_private, warn_once


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """As some systems have it: what a user makes, the group may write."""
    before = os.umask(0o002)
    yield
    os.umask(before)


def mode(directory: Path) -> int:
    return stat.S_IMODE(directory.stat().st_mode)


def test_what_is_made_is_private(tmp_path: Path) -> None:
    make_private(tmp_path / "a" / "b" / "c")
    assert mode(tmp_path / "a" / "b" / "c") == 0o700
    assert mode(tmp_path / "a" / "b") == mode(tmp_path / "a") == 0o755
    make_private(tmp_path / "a" / "b" / "c")
    make_private(tmp_path / "code", 0o755)
    assert mode(tmp_path / "code") == 0o755


@pytest.mark.parametrize("others", [0o020, 0o002])
def test_where_others_may_write_is_refused(tmp_path: Path, others: int) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o700 | others)
    for refuse in (check_private, make_private):
        with pytest.raises(NotPrivateError):
            refuse(tmp_path / "shared")
    with pytest.raises(NotPrivateError):
        check_private(tmp_path / "shared", shown=True)
    (tmp_path / "shared").chmod(0o755)
    check_private(tmp_path / "shared")


def test_what_is_anothers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_private(tmp_path / "mine")
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    if uid == 0:
        check_private(tmp_path / "mine")  # root's
        os.chown(tmp_path / "mine", 4711, -1)
    for shown in (False, True):
        with pytest.raises(NotPrivateError):
            check_private(tmp_path / "mine", shown=shown)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    check_private(tmp_path / "mine", shown=True)  # root may look, but does not believe
    if uid == 0:
        with pytest.raises(NotPrivateError):
            check_private(tmp_path / "mine")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a directory away")
def test_what_lies_below_anothers_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "theirs" / "below" / "mine"
    make_private(mine)
    (tmp_path / "link").symlink_to(mine)
    (tmp_path / "theirs").chmod(0o1777)  # an owner may remove what is in it, sticky or not
    check_private(mine)
    os.chown(tmp_path / "theirs", 4711, -1)
    for directory in (mine, tmp_path / "link"):
        for refuse in (check_private, make_private):
            with pytest.raises(NotPrivateError, match="theirs, above it, belongs to another user"):
                refuse(directory)
    check_private(mine, shown=True)
    (tmp_path / "theirs" / "back").symlink_to(tmp_path)
    with pytest.raises(NotPrivateError):  # they may point it elsewhere
        check_private(tmp_path / "theirs" / "back")


def test_what_is_not_there_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "nothing")


def test_a_warning_is_given_once(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    for _ in range(2):
        warn_once(f"100% of {tmp_path}")
    assert caplog.messages == [f"100% of {tmp_path}"]
