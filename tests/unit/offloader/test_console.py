"""What the daemon says, in a log and on a terminal; and what it keeps for ``status``."""

import io
import os
import re
from pathlib import Path

import pytest

from offloader.model.turn import Committed, Release
from offloader.service.console import Console
from offloader.service.last_errors import LastErrors, key_of
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic

TOPIC = Topic("public", "default", "orders")
DONE = Committed(version=7, ledgers=2, files=1, rows=30, bytes=2048, seconds=1.25, reason="old")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(stream: io.StringIO) -> str:
    with Console(stream) as console:
        console.tasks(TOPIC, 0, 3)
        console.tasks(TOPIC, 2, 3)
        console.committed(TOPIC, DONE)
        console.released((Release(Partition(TOPIC, 1), Position(3, 0), Position(5, 0)),))
        console.failed(TOPIC, "it\nbroke [red]badly[/red]")
    return stream.getvalue()


def test_a_log_has_one_line_an_event() -> None:
    lines = told(io.StringIO()).splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == [
        "public/default/orders: 2 ledgers, 30 rows in 1 files (2.0 KiB) committed as version 7 "
        "in 1.2 s; old",
        "public/default/orders-partition-1: hold moved from 3:0 to 5:0",
        "error: public/default/orders: it broke [red]badly[/red]",
    ]


def test_a_terminal_has_a_bar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    text = told(Terminal())
    assert "committed as version 7" in text
    assert "2/3" in text
    assert "[red]badly[/red]" in text, "what others wrote is not markup"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_others_wrote_steers_no_terminal(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    topic = Topic("public", "default", "[bold]\x1b]0;owned\x07\u202e")
    with Console(stream) as console:
        console.tasks(topic, 1, 3)
        console.failed(topic, "\x9b2J\r\x1b[31m")
    text = stream.getvalue()
    assert "error: public/default/[bold]\\x1b]0;owned\\x07\\u202e: \\x9b2J \\x1b[31m" in text
    assert not {"\x1b]", "\x07", "\x9b", "\u202e"} & set(
        re.findall(r"\x1b\]|[\x07\x9b\u202e]", text)
    )
    if stream.isatty():
        assert "[bold]" in text.rpartition("1/3")[0], "nor markup of the bar"


def test_failures_are_kept_until_a_turn_goes_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "deep" / "down"))
    where = "http://localhost:8080"
    state = LastErrors(where, "lake")
    assert state.failures() == {}
    state.failed(TOPIC, "one", 0.0)
    state.failed(TOPIC, "two", 7.0)
    state.failed(Topic("a", "b", "c"), "other", 0.0)
    again = LastErrors(where, "lake").failures()
    failure = again[str(TOPIC)]
    assert (failure.error, failure.times, failure.next_try) == ("two", 2, 7.0)
    state.failed(TOPIC, "its maintenance", 0.0, work="maintenance")
    state.succeeded(TOPIC)
    assert list(state.failures()) == ["a/b/c", key_of(TOPIC, "maintenance")]
    state.succeeded(TOPIC, work="maintenance")
    assert list(state.failures()) == ["a/b/c"]
    assert LastErrors(where, "another").failures() == {}
    assert LastErrors("http://localhost:8081", "lake").failures() == {}
    assert (tmp_path / "deep" / "down").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o2770, 0o777])  # the first as Kubernetes' fsGroup makes it
def test_a_state_that_others_may_write_is_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "state"))
    state = LastErrors("http://localhost:8080", "lake")
    state.failed(TOPIC, "one", 0.0)
    (tmp_path / "state").chmod(mode)
    with pytest.raises(ConfigurationError):
        state.read()
    assert state.failures() == {}
    assert not caplog.messages
    for _ in range(2):
        state.failed(TOPIC, "two", 0.0)
    [said] = caplog.messages
    assert str(tmp_path / "state") in said, "it is not kept, and the log says so"


def test_root_sees_the_state_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``sudo pulsar-lake status`` beside a service; who is neither is told so."""
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    state = LastErrors("http://localhost:8080", "lake")
    state.failed(TOPIC, "one", 0.0)
    [file] = tmp_path.iterdir()
    owner = os.geteuid()
    if owner == 0:
        owner = 4711
        os.chown(tmp_path, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigurationError):
        state.read()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert list(state.read()) == [str(TOPIC)]
    # Nor does the other user choose what root reads, or that it waits.
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError):
        state.read()
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(ConfigurationError):
        state.read()
    file.unlink()
    file.write_text("{")
    with pytest.raises(ConfigurationError):
        state.read()
    file.unlink()
    assert state.read() == {}


@pytest.mark.parametrize(
    "entry",
    [
        '"next_try":1e999',
        '"next_try":-1e999',
        '"next_try":NaN',
        '"next_try":1e17',
        '"next_try":253402300800',
        '"next_try":' + "9" * 400,
        '"next_try":"x"',
        '"next_try":null',
        '"at":"x"',
        '"at":1e17',
        '"times":"many"',
        '"times":1.5',
        '"error":["x"]',
        '"more":1',
    ],
)
def test_what_another_user_has_written_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    state = LastErrors("http://localhost:8080", "lake")
    state.failed(TOPIC, "one", 0.0)
    [file] = tmp_path.iterdir()
    whole = f'"error":"e","at":0,"times":1,"next_try":0,{entry}'
    for text in (f'{{"{TOPIC}":{{{whole}}}}}', "[" * 200_000, "1", '{"x":1}', '{"x":[]}', "\0"):
        file.write_text(text)
        with pytest.raises(ConfigurationError, match="are not whole"):
            state.read()
        assert state.failures() == {}
    state.failed(TOPIC, "two", 1.5)
    assert state.read()[str(TOPIC)].times == 1


def test_a_state_that_cannot_be_kept_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "file"))
    state = LastErrors("http://localhost:8080", "lake")
    state.failed(TOPIC, "one", 0.0)
    state.succeeded(TOPIC)
    assert state.failures() == {}
