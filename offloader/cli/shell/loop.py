"""The shell: reads, runs and shows, until one leaves. One session for all of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from offloader.cli.render import SqlFormat, say, say_error
from offloader.cli.results import ResultFile
from offloader.cli.shell.backslash import Leave, run_command
from offloader.cli.shell.execution import Session
from offloader.cli.shell.screen import Screen
from offloader.cli.shell.state import Shell
from offloader.cli.shell.statements import statements

if TYPE_CHECKING:
    from spark_ext import PulsarLake

__all__ = ["Reader", "loop", "run_shell", "take"]

_LEAVE = ("exit", "quit")


class Reader(Protocol):
    """Where a shell's input comes from."""

    def read(self) -> str:
        """What was typed, until it was complete. Raises EOFError at the end, KeyboardInterrupt."""
        ...

    def forget(self) -> None:
        """Names may have changed."""
        ...


def loop(shell: Shell, reader: Reader) -> None:
    """Until the input ends, or one leaves. Errors are lines; the shell goes on."""
    while True:
        try:
            take(shell, reader.read())
            reader.forget()
        except KeyboardInterrupt:
            continue
        except (EOFError, Leave):
            return


def take(shell: Shell, text: str) -> None:
    """Run what was typed: a command, or statements until one fails. Raises Leave."""
    typed = text.strip()
    if typed.rstrip("; ").lower() in _LEAVE:
        raise Leave
    if typed == "help":
        typed = "\\?"
    begun = time.monotonic()
    try:
        if typed.startswith("\\"):
            run_command(shell, typed)
        else:
            for one in statements(text):
                begun = time.monotonic()
                shell.run(one.text)
    except Leave:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the session and its views stay
        say_error(error)
    except KeyboardInterrupt:
        say(f"\ncancelled after {time.monotonic() - begun:.1f} s", err=True)


def run_shell(open_lake: Callable[[], PulsarLake], kind: SqlFormat, output: Path | None) -> None:
    """A shell on this terminal. Spark starts while the first statement is typed."""
    file = ResultFile(output, kind) if output else None
    session = Session(open_lake)
    screen = Screen(SqlFormat.table if kind is SqlFormat.parquet else kind)
    shell = Shell(session, screen, file)
    session.start()
    from offloader.cli.shell.prompt import Prompt  # while Spark starts

    say(f"pulsar-lake {version('pulsar-lake')}: Spark SQL over Pulsar's topics. \\? is help.")
    prompt = Prompt(lambda: session.lake, lambda: shell.namespace)
    try:
        loop(shell, prompt)
    finally:
        prompt.close()
        sys.stdout.flush()
        session.close()
