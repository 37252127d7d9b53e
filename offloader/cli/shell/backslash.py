"""The shell's own commands, which begin with a backslash."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from offloader.cli.render import SqlFormat, say
from offloader.cli.results import ResultFile, format_of
from offloader.cli.shell.runner import explain, run_all
from offloader.cli.shell.state import Shell
from offloader.cli.shell.statements import read_sql, statements
from reader.background import in_thread
from reader.errors import ConfigurationError, NotFoundError

if TYPE_CHECKING:
    import pyarrow as pa


_PATH = re.compile(r"`?(?:persistent://)?([^/`]+/[^/`]+?)(?:/([^/`]+))?`?")


class Leave(Exception):  # noqa: N818 - no error: the user is done
    """The shell ends."""


def run_command(shell: Shell, line: str) -> None:
    """Run one command. Raises PulsarLakeError, and Leave."""
    command, _, argument = line.strip().partition(" ")
    argument = argument.strip().removesuffix(";").strip()
    command = command.removesuffix(";")  # as after a statement
    action = _ACTIONS.get(_SYNONYMS.get(command, command))
    if action is None:
        raise ConfigurationError(f"unknown command {command}", hint="\\? lists them")
    action(shell, argument)


def _help(shell: Shell, _: str) -> None:
    lines = ["A statement ends with a semicolon, on as many lines as it takes. Ctrl-C ends it."]
    lines += ["A topic is pulsar.`tenant/namespace`.`topic`; the Tab key completes names.", ""]
    lines += [f"{command:<10}{about}" for command, about in COMMANDS.items()]
    shell.screen.show("\n".join(lines) + "\n")


def _leave(_: Shell, __: str) -> None:
    raise Leave


def _describe(shell: Shell, argument: str) -> None:
    if path := _PATH.fullmatch(argument):
        namespace, topic = path.groups()
        below = f"pulsar.`{namespace}`"
        shell.run(f"DESCRIBE {below}.`{topic}`" if topic else f"SHOW TABLES IN {below}")
    elif argument:
        shell.run(f"DESCRIBE {argument}")
    elif shell.namespace:
        shell.run("SHOW TABLES")
    else:
        topics = in_thread(lambda: _all_topics(shell)).result()
        say(f"({shell.screen.write(topics.schema, iter(topics.to_batches()))})\n")


def _all_topics(shell: Shell) -> pa.Table:
    import pyarrow as pa

    lake, found = shell.session.lake, list[tuple[str, str]]()
    for namespace in lake.namespaces():
        with suppress(NotFoundError, ConfigurationError):  # deleted since then, or forbidden
            found += [(namespace, topic) for topic in lake.topics(namespace)]
    columns = [pa.array([row[at] for row in found], pa.string()) for at in (0, 1)]
    return pa.table(columns, ["namespace", "topic"])


def _namespaces(shell: Shell, _: str) -> None:
    shell.run("SHOW NAMESPACES IN pulsar")


def _explain(shell: Shell, query: str) -> None:
    if not query:
        raise ConfigurationError("\\explain needs a query")
    shell.screen.show(explain(shell.session, query).rstrip() + "\n")


def _format(shell: Shell, argument: str) -> None:
    if argument:
        if argument not in set(SqlFormat):
            raise ConfigurationError(
                f"unknown format {argument}", hint="table, json, csv or parquet"
            )
        kind = SqlFormat(argument)
        if kind is SqlFormat.parquet and shell.file is None:
            raise ConfigurationError("Parquet needs a file", hint="\\o FILE.parquet")
        if kind is not SqlFormat.parquet:
            shell.screen.kind = kind
        if shell.file is not None:
            shell.file = ResultFile(shell.file.path, kind)
    say(f"Format: {shell.file.kind if shell.file else shell.screen.kind}")


def _output(shell: Shell, argument: str) -> None:
    if not argument:
        shell.file = None
        say("Results go to the screen.")
        return
    path = _path(argument)
    kind = format_of(path)
    shell.file = ResultFile(path, shell.screen.kind if kind is SqlFormat.table else kind)
    say(f"Results go to {path}, as {shell.file.kind}.")


def _include(shell: Shell, argument: str) -> None:
    if not argument:
        raise ConfigurationError("\\i needs a file")
    path = _path(argument)
    run_all(shell.run, statements(read_sql(path)), str(path))


def _path(argument: str) -> Path:
    return Path(argument.strip("'\"")).expanduser()


def _rows(shell: Shell, argument: str) -> None:
    if argument == "all":
        shell.screen.rows = None
    elif argument:
        if not argument.isascii() or not argument.isdigit() or int(argument) < 1:
            raise ConfigurationError(f"{argument} is no number of rows", hint="a number, or all")
        shell.screen.rows = int(argument)
    shown = "all" if shell.screen.rows is None else f"{shell.screen.rows:,}"
    say(f"Rows shown of a result: {shown}")


def _switch(name: str) -> Callable[[Shell, str], None]:
    def action(shell: Shell, argument: str) -> None:
        if argument not in ("", "on", "off"):
            raise ConfigurationError(f"{argument} is neither on nor off")
        value = argument == "on" if argument else not getattr(shell.screen, name)
        setattr(shell.screen, name, value)
        say(f"{name.capitalize()}: {'on' if value else 'off'}")

    return action


COMMANDS = {
    "\\?": "this help",
    "\\d": "[NAME]  topics, those of a namespace, or the columns of one",
    "\\dn": "namespaces",
    "\\explain": "QUERY  what it would read: segments, tiers, Spark's plan",
    "\\f": "[table|json|csv|parquet]  how results are written",
    "\\i": "FILE  run the statements of a file",
    "\\o": "[FILE]  results to a file; without a name: to the screen",
    "\\pager": "[on|off]  a pager for results that are larger than the screen",
    "\\q": "leave (so do exit, quit and Ctrl-D)",
    "\\rows": "[NUMBER|all]  so many rows of a result are shown at most",
    "\\timing": "[on|off]  how long each statement took",
    "\\x": "[on|off]  one line for each column",
}
"""Each command, and what it does."""

_ACTIONS: dict[str, Callable[[Shell, str], None]] = {
    "\\?": _help,
    "\\d": _describe,
    "\\dn": _namespaces,
    "\\explain": _explain,
    "\\f": _format,
    "\\i": _include,
    "\\o": _output,
    "\\pager": _switch("pager"),
    "\\q": _leave,
    "\\rows": _rows,
    "\\timing": _switch("timing"),
    "\\x": _switch("expanded"),
}
_SYNONYMS = {"\\h": "\\?", "\\help": "\\?", "\\quit": "\\q", "\\dt": "\\d"}
