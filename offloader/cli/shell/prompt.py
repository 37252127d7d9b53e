"""The line editor: statements of several lines, history, completion, colours.

The history is a file for its user alone, beside what else is kept of this machine's past:
``$PULSAR_LAKE_STATE`` or ``~/.local/state/pulsar-lake``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.completion import Completion as Offered
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.patch_stdout import patch_stdout
from pygments.lexers.sql import SqlLexer

from offloader.cli.shell.completion import Names, complete
from offloader.cli.shell.names import CatalogNames
from offloader.cli.shell.statements import is_complete
from reader.printable import printable
from reader.private_directory import make_private, warn_once

if TYPE_CHECKING:
    from spark_ext import PulsarLake

__all__ = ["CatalogCompleter", "Prompt", "history_file", "runs"]

_PROMPT = "pulsar-lake> "
_MORE = "..> ".rjust(len(_PROMPT))
_TAKEN_AS_THEY_ARE = ("exit", "quit", "help")


class Prompt:
    """Reads what is typed on this terminal. ``namespace``: that of ``USE``, at the moment.

    ``lake`` answers what completion asks, in the background.
    """

    def __init__(self, lake: Callable[[], PulsarLake], namespace: Callable[[], str | None]) -> None:
        self._names = CatalogNames(lake)
        self._editor: PromptSession[str] = PromptSession(
            _PROMPT,
            multiline=True,
            prompt_continuation=_MORE,
            history=_history(),
            completer=CatalogCompleter(self._names, namespace),
            complete_while_typing=False,
            complete_in_thread=True,
            lexer=PygmentsLexer(SqlLexer),
            key_bindings=_keys(),
            enable_open_in_editor=True,
        )

    def read(self) -> str:
        """What was typed, until Enter at the end of a complete statement.

        Raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C.
        """
        with _between_statements(), patch_stdout(raw=True):  # Spark's lines appear above the prompt
            return self._editor.prompt()

    def forget(self) -> None:
        """Names may have changed."""
        self._names.forget()

    def close(self) -> None:
        """Nothing is asked any more."""
        self._names.forget()


class CatalogCompleter(Completer):
    """``completion.complete`` as prompt_toolkit asks for it."""

    def __init__(self, names: Names, namespace: Callable[[], str | None]) -> None:
        self._names = names
        self._namespace = namespace

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Offered]:
        cursor = document.cursor_position
        for one in complete(document.text, cursor, self._names, self._namespace()):
            yield Offered(
                one.text,
                start_position=one.start - cursor,
                display=printable(one.text),
                display_meta=printable(one.about),
            )


@contextmanager
def _between_statements() -> Iterator[None]:
    """Ctrl-C cancels nothing. The editor takes it as a key once it reads; what it sets up before
    is not made to be interrupted: asyncio leaves half a loop, and Python prints a traceback."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def runs(text: str) -> bool:
    """Whether Enter runs it; else it begins another line."""
    typed = text.strip()
    return not typed or typed.startswith("\\") or typed in _TAKEN_AS_THEY_ARE or is_complete(typed)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state and buffer.complete_state.current_completion:
            buffer.complete_state = None  # what is chosen stays; the menu goes
        elif runs(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys


def history_file() -> Path:
    """Where the history is kept, for its user alone. Raises OSError where it cannot be."""
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
