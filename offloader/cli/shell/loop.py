"""The shell: reads, runs and shows, until its user leaves. It has one session."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from offloader.cli.render import SqlFormat, say, say_error
from offloader.cli.results import ResultFile
from offloader.cli.shell.backslash import Leave, run_command
from offloader.cli.shell.execution import Session
from offloader.cli.shell.screen import Screen
from offloader.cli.shell.state import Shell
from offloader.cli.shell.statements import statements

if TYPE_CHECKING:
    from spark_ext import PulsarLake


def take(shell: Shell, text: str) -> None:
    """Run a command, or statements until one fails. Errors are lines. Raises Leave."""
    typed = text.strip()
    if typed.rstrip("; ").lower() in ("exit", "quit"):
        raise Leave
    begun = time.monotonic()
    try:
        if typed.startswith("\\") or typed == "help":
            run_command(shell, "\\?" if typed == "help" else typed)
        else:
            for one in statements(text):
                begun = time.monotonic()
                shell.run(one.text)
    except Leave:
        raise
    except Exception as error:  # noqa: BLE001 - any error leaves the session and its views
        say_error(error)
    except KeyboardInterrupt:
        say(f"\ncancelled after {time.monotonic() - begun:.1f} s", err=True)


def run_shell(open_lake: Callable[[], PulsarLake], kind: SqlFormat, output: Path | None) -> None:
    """Run a shell on this terminal. Spark starts while the first statement is typed."""
    file = ResultFile(output, kind) if output else None
    session = Session(open_lake)
    shell = Shell(session, Screen(SqlFormat.table if kind is SqlFormat.parquet else kind), file)
    session.start()
    from offloader.cli.shell.prompt import Prompt  # while Spark starts

    say(f"pulsar-lake {version('pulsar-lake')}: Spark SQL over Pulsar's topics. \\? is help.")
    prompt = Prompt(lambda: session.lake, lambda: shell.namespace)
    try:
        while True:
            try:
                take(shell, prompt.read())
            except KeyboardInterrupt:
                continue
            except (EOFError, Leave):
                return
    finally:
        sys.stdout.flush()
        session.close()
