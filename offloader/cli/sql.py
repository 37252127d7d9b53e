"""``pulsar-lake sql``: queries over topics, one, a file of them, or a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from offloader.cli.options import ConfigOption, settings
from offloader.cli.render import SqlFormat, say
from reader.errors import ConfigurationError

if TYPE_CHECKING:
    from offloader.cli.shell.runner import Output
    from offloader.cli.shell.statements import SqlStatement
    from offloader.config import Config
    from spark_ext import PulsarLake


def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="Spark SQL; a topic is pulsar.`tenant/namespace`.`topic`. Without one: a shell, "
            "or the statements of standard input.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Run the statements of a file; -: standard input."
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print what would be read instead.")
    ] = False,
    kind: Annotated[
        SqlFormat | None,
        typer.Option("--format", help="How to print.  [default: by the output's name, or table]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write results to a file.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Run queries; each topic in a query is one snapshot of all its messages."""
    from offloader.cli.results import format_of

    if query is not None and file is not None:
        raise typer.BadParameter("a query and --file exclude each other")
    kind = kind or format_of(output)
    if kind is SqlFormat.parquet and output is None:
        raise typer.BadParameter("Parquet needs a file: --output FILE")
    found = settings(config)
    interactive = query is None and file is None and _on_terminal()
    if interactive and explain:
        raise typer.BadParameter("--explain needs a query")
    if interactive:
        from offloader.cli.shell.loop import run_shell

        run_shell(lambda: _lake(config or found), kind, output)
        return
    from offloader.cli.shell.execution import Session
    from offloader.cli.shell.runner import explain as explained
    from offloader.cli.shell.runner import run_all, run_statement

    statements = _statements(query, file)
    with _lake(config or found) as lake:
        session = Session(lambda: lake)
        if explain:
            for one in statements:
                say(explained(session, one.text))
            return
        target = _output(kind, output)
        run_all(lambda text: run_statement(session, text, target), statements, _name(query, file))


def _lake(config: Path | Config) -> PulsarLake:
    from spark_ext import PulsarLake

    return PulsarLake(config)


def _on_terminal() -> bool:
    # Without standard input there is no such stream.
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _standard_input() -> str:
    if sys.stdin is None:
        raise ConfigurationError("there is no query, and standard input is closed")
    try:
        return sys.stdin.read().removeprefix("\ufeff")
    except UnicodeError as error:
        raise ConfigurationError("cannot read standard input: it is not UTF-8") from error


def _statements(query: str | None, file: Path | None) -> list[SqlStatement]:
    from offloader.cli.shell.statements import SqlStatement, read_sql, statements

    if query is not None:
        # Spark says what is wrong with a query that is none.
        return statements(query) or [SqlStatement(query, 1, 0, len(query), True)]
    if file is None or str(file) == "-":
        return statements(_standard_input())
    return statements(read_sql(file))


def _name(query: str | None, file: Path | None) -> str | None:
    if query is not None:
        return None
    return "standard input" if file is None or str(file) == "-" else str(file)


def _output(kind: SqlFormat, path: Path | None) -> Output:
    from offloader.cli.results import ResultFile
    from offloader.cli.shell.screen import StandardOutput

    return StandardOutput(kind) if path is None else ResultFile(path, kind)
