"""Programs as a person uses them: on a terminal of their own, with keys; or in this process."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from offloader.cli import app as cli

CTRL_C, CTRL_D, TAB = "\x03", "\x04", "\t"

_SEQUENCE = re.compile(
    rb"\r\x1b\[K"  # a line of progress is erased
    rb"|\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>()][AB0]?"
)
_WHERE_IS_THE_CURSOR = b"\x1b[6n"


class Terminal:
    """Runs `command` in a session of its own, on a terminal of `lines` times `columns`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: Path,
        lines: int = 40,
        columns: int = 120,
    ) -> None:
        self._ours, theirs = pty.openpty()
        size = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            env={**environment, "TERM": "xterm"},
            preexec_fn=own_terminal,
        )
        os.close(theirs)
        self._raw = b""
        self._read_to = 0

    @property
    def text(self) -> str:
        """All that was written so far, without what moves the cursor or sets colours."""
        return _SEQUENCE.sub(b"", self._raw).decode(errors="replace").replace("\r\n", "\n")

    def press(self, keys: str) -> None:
        """Type them."""
        os.write(self._ours, keys.encode())

    def expect(self, pattern: str, seconds: float = 240) -> str:
        """Wait for it in what comes after the last thing expected; the text up to its end."""
        deadline = time.monotonic() + seconds
        while True:
            fresh = self.text[self._read_to :]
            found = re.search(pattern, fresh)
            if found:
                self._read_to += found.end()
                return fresh[: found.end()]
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"no {pattern!r} in: …{fresh[-3000:]!r}")

    def end(self, seconds: float = 240) -> int:
        """Wait until it ends by itself; its exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(0.1, deadline - time.monotonic()))

    def hang_up(self) -> None:
        """The terminal is gone, as when its window is closed."""
        os.close(self._ours)
        self._ours = -1

    def _read(self, seconds: float) -> bool:
        """Take what comes next; False once nothing comes any more."""
        if not select.select([self._ours], [], [], max(0, seconds))[0]:
            return False
        try:
            data = os.read(self._ours, 1 << 16)
        except OSError:  # the program has closed its side
            return False
        self._raw += data
        for _ in range(data.count(_WHERE_IS_THE_CURSOR)):
            os.write(self._ours, b"\x1b[30;1R")
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ours >= 0:
            self.hang_up()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)


Run = Callable[..., tuple[int, str, str]]
"""Runs ``pulsar-lake`` with arguments; returns its exit code, standard output and error."""


def run_in_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Run ``pulsar-lake``; return its exit code, standard output and standard error."""
    monkeypatch.setattr(sys, "argv", ["pulsar-lake", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    found = capsys.readouterr()
    assert "Traceback" not in found.err
    return int(str(caught.value.code or 0)), found.out, found.err
