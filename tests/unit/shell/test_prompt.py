"""The line editor, with keys from a pipe."""

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from offloader.cli.shell.prompt import CatalogNames, Prompt, history_file, runs
from reader.errors import UnavailableError
from spark_ext import PulsarLake

COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("list", pa.list_(pa.int64())),
        ("key", pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))])),
    ]
)


class Lake:
    """Answers as a lake with one topic; counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False

    def namespaces(self) -> list[str]:
        self.asked.append("namespaces")
        if self.fails:
            raise UnavailableError("no answer")
        return ["public/default"]

    def topics(self, namespace: str) -> list[str]:
        self.asked.append(namespace)
        return ["orders"]

    def columns(self, topic: str) -> pa.Schema:
        self.asked.append(topic)
        return COLUMNS


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PipeInput]:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "state"))
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def prompt(lake: Lake) -> Prompt:
    return Prompt(lambda: cast(PulsarLake, lake), lambda: None)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("SELECT 1;\r", "SELECT 1;"),
        ("SELECT\r1\r;\r", "SELECT\n1\n;"),
        ("SELECT ';\r';\r", "SELECT ';\n';"),
        ("\\d\r", "\\d"),
        ("quit\r", "quit"),
        ("\r", ""),
    ],
)
def test_enter_runs_what_is_complete(keys: PipeInput, typed: str, text: str) -> None:
    keys.send_text(typed)
    assert prompt(Lake()).read() == text


def test_ctrl_c_and_ctrl_d(keys: PipeInput) -> None:
    editor = prompt(Lake())
    keys.send_text("SELECT\x03")
    with pytest.raises(KeyboardInterrupt):
        editor.read()
    keys.send_text("\x04")
    with pytest.raises(EOFError):
        editor.read()


def test_what_was_typed_is_kept_for_its_user_alone(keys: PipeInput, tmp_path: Path) -> None:
    keys.send_text("SELECT\r7;\r")
    prompt(Lake()).read()
    kept = tmp_path / "state" / "sql-history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert list(FileHistory(str(kept)).load_history_strings()) == ["SELECT\n7;"]


def test_a_history_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    tmp_path.chmod(0o777)
    with pytest.raises(PermissionError):
        history_file()
    tmp_path.chmod(0o700)
    (tmp_path / "sql-history").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        history_file()


def test_a_command_needs_no_semicolon() -> None:
    assert [runs(text) for text in ("\\d", "help", "SELECT 1", "SELECT 1;", "exit")] == [
        True,
        True,
        False,
        True,
        True,
    ]


# -- names -----------------------------------------------------------------------------------------


def names(lake: Lake) -> CatalogNames:
    return CatalogNames(lambda: cast(PulsarLake, lake), wait_seconds=60.0)


def test_a_list_is_asked_for_once_until_it_is_forgotten() -> None:
    lake = Lake()
    found = names(lake)
    assert [found.topics("public/default") for _ in range(2)] == [["orders"]] * 2
    assert lake.asked == ["public/default"]
    found.forget()
    assert found.topics("public/default") == ["orders"]
    assert lake.asked == ["public/default"] * 2


def test_an_answer_that_failed_is_empty_and_asked_for_again() -> None:
    lake = Lake()
    lake.fails = True
    found = names(lake)
    assert found.namespaces() == ()
    lake.fails = False
    assert found.namespaces() == ["public/default"]


def test_an_answer_that_is_late_is_not_waited_for() -> None:
    never: Future[Any] = Future()
    found = CatalogNames(never.result, wait_seconds=0.1)
    assert found.namespaces() == ()
    never.set_exception(UnavailableError("over"))


def test_the_columns_of_a_view_of_a_topic_are_the_topics() -> None:
    lake = Lake()
    assert names(lake).columns("a/b", "orders$compacted") == [
        "id", "list", "key", "key\0a", "key\0b", "key\0b\0c",
    ]  # fmt: skip
    assert lake.asked == ["a/b/orders"]


def test_ctrl_c_does_not_interrupt_how_the_editor_starts(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, handler = asyncio.events.new_event_loop, signal.getsignal(signal.SIGINT)

    def interrupted() -> asyncio.AbstractEventLoop:
        os.kill(os.getpid(), signal.SIGINT)
        return made()

    monkeypatch.setattr("asyncio.events.new_event_loop", interrupted)
    keys.send_text("SELECT 1;\r")
    assert prompt(Lake()).read() == "SELECT 1;"
    assert signal.getsignal(signal.SIGINT) is handler
