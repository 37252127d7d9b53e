"""Standard error whose reader has gone: ``pulsar-lake offload 2>&1 | head -1``."""

import errno
import io
import logging
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from offloader.cli import app as cli
from offloader.model import Release, listener
from offloader.service.console import Console
from offloader.service.unbreakable import Unbreakable
from reader.model import Partition, Position, Topic
from testbed.serving import Asked, HttpAnswer, answering

TOPIC = Topic("public", "default", "orders")
_MAIN = "from offloader.cli.app import main; main()"


@contextmanager
def closed_pipe() -> Iterator[int]:
    """The end to write to, of which the other one is closed."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        yield write_end
    finally:
        os.close(write_end)


def say_all(console: Console) -> None:
    with console:
        console.tasks(TOPIC, 1, 3)
        console.released((Release(Partition(TOPIC, 1), Position(3, 0), Position(5, 0)),))
        console.failed(TOPIC, "broken")


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_that_nobody_reads(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with closed_pipe() as end, os.fdopen(os.dup(end), "w") as stream:
        if terminal:
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        say_all(Console(stream))
        stream.write("what is left at the end of the process")
    with pytest.raises(ValueError, match="closed"):
        stream.write("x")
    say_all(Console(stream))


def test_a_console_without_any_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say_all(Console())


def test_a_console_that_is_read_says_all_the_same() -> None:
    stream = io.StringIO()
    say_all(Console(stream))
    assert len(stream.getvalue().splitlines()) == 2


def test_a_console_that_nobody_reads_for_a_while() -> None:
    """Its writers wait once, and no more; what is too much is dropped, and said."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, os.fdopen(write_end, "w") as stream:
        console = Console(stream)

        def write() -> None:
            for number in range(25_000):  # twice as many as may wait, and the pipe's
                console.log(f"line {number} " + "x" * 50)

        writer = threading.Thread(target=write)
        writer.start()
        writer.join(60)
        assert not writer.is_alive()
        found = reader.readline()
        while b"more, which nobody read" not in found:
            found = reader.readline()
        console.log("again")
        assert b"again" in reader.readline()


def test_a_pipe_that_does_not_block_loses_no_line() -> None:
    """However it got that way: whoever started the process may share it."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    lines = [f"line {number} " + "x" * 1000 for number in range(500)]
    found = b""
    with os.fdopen(read_end, "rb", 0) as reader, os.fdopen(write_end, "w") as stream:
        log = Unbreakable(stream)

        def write() -> None:
            for line in lines:
                log.write(f"{line}\n")
                log.flush()

        writer = threading.Thread(target=write)
        writer.start()
        writer.join(60)
        assert not writer.is_alive(), "it waits for nobody"
        log.write("last\n")
        while not found.endswith(b"last\n") and select.select([reader], [], [], 60)[0]:
            found += reader.read(4096)
    assert found.decode().splitlines() == [*lines, "last"]


def test_a_pipe_that_does_not_block_and_is_closed() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with os.fdopen(write_end, "w") as stream:
        log = Unbreakable(stream)
        log.write("x" * 1_000_000)
        assert os.read(read_end, 1), "the other thread has begun"
        os.close(read_end)
        log.flush()
        stream.write("what is left at the end of the process")


def test_a_full_disk_is_not_for_ever() -> None:
    class Full(io.StringIO):
        full = True

        def write(self, text: str) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, "no space left on device")
            return super().write(text)

    stream = Full()
    console = Console(stream)
    console.log("lost")
    stream.full = False
    console.log("there")
    assert [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()] == ["there"]


def test_a_listener_of_which_not_even_the_log_can_hear(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    def nowhere(*_: object, **__: object) -> None:
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(logging.Logger, "error", nowhere)
    listener(fail)()


def test_what_a_listener_fails_with_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []

    def hear(number: int, *, times: int = 1) -> None:
        heard.append(number // times)

    tell = listener(hear)
    with caplog.at_level(logging.ERROR):
        tell(4, times=2)
        tell(4, times=0)
    assert heard == [2]
    [line] = caplog.messages
    assert "ZeroDivisionError" in line


@contextmanager
def pulsar() -> Iterator[tuple[str, threading.Semaphore]]:
    """An admin REST without topics; of each round it gives one permit."""
    rounds = threading.Semaphore(0)

    def answer(asked: Asked) -> HttpAnswer:
        if asked.path.startswith("/admin/v2/brokers"):
            rounds.release()
        return 200, {} if "broker-stats" in asked.path else [], {}

    with answering(answer) as url:
        yield url, rounds


def settings_file(tmp_path: Path, url: str) -> Path:
    settings = tmp_path / "lake.toml"
    settings.write_text(
        f'[pulsar]\nadmin_url = "{url}"\n[storage]\nuri = "{tmp_path}"\n'
        '[offload]\ninterval = "100ms"\n[http]\naddress = "127.0.0.1:0"\n'
    )
    return settings


@contextmanager
def offloading(tmp_path: Path, url: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    config = str(settings_file(tmp_path, url))
    command = [sys.executable, "-c", _MAIN, "offload", *arguments, "--config", config]
    with closed_pipe() as end:
        environment = os.environ | {"PULSAR_LAKE_STATE": str(tmp_path / "state")}
        process = subprocess.Popen(command, stdout=end, stderr=end, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_once_ends_well(tmp_path: Path) -> None:
    with pulsar() as (url, _), offloading(tmp_path, url, "--once", "public/default/*") as process:
        assert process.wait(120) == 0


def test_once_ends_with_the_exit_code_of_a_failed_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = str(settings_file(tmp_path, "http://127.0.0.1:1"))
    topic = "public/default/orders"
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(
        sys, "argv", ["pulsar-lake", "offload", "--once", topic, "--config", config]
    )
    with closed_pipe() as end, os.fdopen(os.dup(end), "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert caught.value.code == 1
    kept = (file.read_text() for file in (tmp_path / "state").rglob("*") if file.is_file())
    assert "no answer" in "".join(kept)


def test_the_daemon_goes_on(tmp_path: Path) -> None:
    with pulsar() as (url, rounds), offloading(tmp_path, url, "public/default/*") as process:
        for _ in range(3):
            assert rounds.acquire(timeout=120)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
