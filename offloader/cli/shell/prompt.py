"""The line editor: statements of several lines, history, completion, colours.

The history is a file for its user alone, beside what else is kept of this machine's past:
``$PULSAR_LAKE_STATE`` or ``~/.local/state/pulsar-lake``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition, completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.patch_stdout import patch_stdout
from pygments.lexers.sql import SqlLexer

from offloader.cli.shell.completion import SqlCompleter
from offloader.cli.shell.statements import is_complete
from reader.background import in_thread
from reader.errors import PulsarLakeError
from reader.private_directory import make_private, warn_once

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_ext import PulsarLake

_PROMPT = "pulsar-lake> "
_MORE = "..> ".rjust(len(_PROMPT))
_WAIT_SECONDS = 1.5


class Prompt:
    """Reads statements on this terminal. ``namespace``: that of ``USE``, at the moment.

    ``lake`` answers what completion asks, in the background.
    """

    def __init__(self, lake: Callable[[], PulsarLake], namespace: Callable[[], str | None]) -> None:
        self._names = CatalogNames(lake)
        self._editor: PromptSession[str] = PromptSession(
            _PROMPT,
            multiline=Condition(lambda: not runs(self._editor.default_buffer.text)),
            prompt_continuation=_MORE,
            history=_history(),
            completer=SqlCompleter(self._names, namespace),
            complete_while_typing=False,
            complete_in_thread=True,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_keys(),
            enable_open_in_editor=True,
        )

    def read(self) -> str:
        """Return what is typed until Enter at the end of a complete statement.

        Raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C.
        """
        self._names.forget()  # the last statement may have changed them
        with _between_statements(), patch_stdout(raw=True):  # Spark's lines appear above the prompt
            return self._editor.prompt()


def runs(text: str) -> bool:
    """Return whether Enter runs the text. Else it begins another line."""
    typed = text.strip()
    return typed.startswith("\\") or typed in ("exit", "quit", "help") or is_complete(typed)


@contextmanager
def _between_statements() -> Iterator[None]:
    """Let Ctrl-C cancel nothing. The editor takes it as a key once it reads; what it sets up before
    is not made to be interrupted: asyncio leaves half a loop, and Python prints a traceback."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=completion_is_selected)
    def _close_the_menu(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # the chosen text stays

    return keys


def history_file() -> Path:
    """Return where the history is kept, for its user alone. Raises OSError if it cannot be."""
    root = os.environ.get("PULSAR_LAKE_STATE") or "~/.local/state/pulsar-lake"
    directory = Path(root).expanduser()
    make_private(directory)
    path = directory / "sql-history"
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    path.chmod(0o600)
    return path


def _history() -> History:
    try:
        return FileHistory(str(history_file()))
    except OSError as error:
        warn_once(f"pulsar-lake: the history is not kept: {error.strerror}")
        return InMemoryHistory()


class CatalogNames:
    """The names of the catalog (``completion.Names``), each list asked for once.

    Pulsar's admin is asked, because Spark may still be starting. A list that is not there after
    ``wait_seconds`` is empty for now: a completion that comes later is of no use.
    """

    def __init__(
        self, lake: Callable[[], PulsarLake], *, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        self._lake = lake
        self._wait_seconds = wait_seconds
        self._kept: dict[str, Future[Sequence[str]]] = {}

    def namespaces(self) -> Sequence[str]:
        """Return all ``tenant/namespace`` that the client may see."""
        return self._get("", lambda: self._lake().namespaces())

    def topics(self, namespace: str) -> Sequence[str]:
        """Return the names of a namespace's topics."""
        return self._get(namespace, lambda: self._lake().topics(namespace))

    def columns(self, namespace: str, topic: str) -> Sequence[str]:
        """Return a topic's columns, and the paths to members of structs, joined by NUL."""
        path = f"{namespace}/{topic.partition('$')[0]}"
        return self._get(path, lambda: _paths(self._lake().columns(path)))

    def forget(self) -> None:
        """Ask anew from now on."""
        self._kept.clear()

    def _get(self, key: str, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        answer = self._kept.get(key)
        if answer is None or (answer.done() and answer.exception() is not None):
            answer = self._kept[key] = in_thread(ask)
        try:
            return answer.result(self._wait_seconds)
        except (PulsarLakeError, TimeoutError, OSError):
            return ()  # the query will raise the error


def _paths(fields: Iterable[pa.Field], above: str = "") -> list[str]:
    import pyarrow as pa

    found = []
    for field in fields:
        found.append(above + field.name)
        if pa.types.is_struct(field.type):
            found += _paths(field.type, f"{above}{field.name}\0")
    return found
