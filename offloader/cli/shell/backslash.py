"""The shell's own commands: what begins with a backslash."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from offloader.cli.render import SqlFormat, print_rows
from offloader.cli.results import ResultFile, format_of
from offloader.cli.shell.completion import COMMANDS, named_topics
from offloader.cli.shell.screen import Screen
from offloader.cli.shell.state import Shell
from offloader.cli.shell.statements import read_sql, statements
from reader.background import in_thread
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError

__all__ = ["Leave", "run_command"]


_TYPE_OR_NAME = re.compile(r"`((?:``|[^`])*)`|[A-Z_]+")


class Leave(Exception):  # noqa: N818 - no error: the user is done
    """The shell ends."""


def run_command(shell: Shell, line: str) -> None:
    """Do what a line asks for. Raises PulsarLakeError, and Leave."""
    command, _, argument = line.strip().partition(" ")
    argument = argument.strip().removesuffix(";").strip()
    command = command.removesuffix(";")  # as after a statement
    action = _ACTIONS.get(command)
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
    lake = shell.session.lake
    if not argument:
        named = [shell.namespace] if shell.namespace else shell.wait(in_thread(lake.namespaces))
        rows = shell.wait(
            in_thread(
                lambda: [
                    {"namespace": one, "topic": topic}
                    for one in named
                    for topic in _topics(shell, one)
                ]
            )
        )
        _print(shell, ["namespace", "topic"], rows)
        return
    if argument.count("/") == 1 and "." not in argument:
        topics = shell.wait(in_thread(lambda: lake.topics(argument.strip("`"))))
        _print(shell, ["topic"], [{"topic": one} for one in topics])
        return
    from spark_ext.ddl import type_ddl

    columns = shell.wait(in_thread(lambda: lake.columns(_topic_name(argument, shell.namespace))))
    _print(
        shell,
        ["column", "type"],
        [{"column": one.name, "type": _type_text(type_ddl(one.type))} for one in columns],
    )


def _type_text(ddl: str) -> str:
    """A type as Spark's DESCRIBE has it: small letters, but for the names in it."""
    plain = _TYPE_OR_NAME.sub(lambda one: one[1] if one[1] else one[0].lower(), ddl)
    return plain.replace("timestamp_ltz", "timestamp").replace(": ", ":")


def _topics(shell: Shell, namespace: str) -> list[str]:
    try:
        return shell.session.lake.topics(namespace)
    except (NotFoundError, ConfigurationError):
        return []  # deleted since it was listed, or not ours


def _topic_name(text: str, namespace: str | None) -> str:
    """``tenant/namespace/topic``, from that or from how SQL names it."""
    for found in named_topics(f"TABLE {text}", namespace).values():
        return "/".join(found)
    return text.strip("`")


def _namespaces(shell: Shell, _: str) -> None:
    found = shell.wait(in_thread(shell.session.lake.namespaces))
    _print(shell, ["namespace"], [{"namespace": one} for one in found])


def _print(shell: Shell, columns: list[str], rows: list[dict[str, Any]]) -> None:
    text = io.StringIO()
    print_rows(columns, rows, SqlFormat.table, text)
    shell.screen.show(text.getvalue())


def _explain(shell: Shell, query: str) -> None:
    if not query:
        raise ConfigurationError("\\explain needs a query")

    def explain() -> str:
        shell.session.start().result()
        plans, by_spark = shell.session.lake.explain_query(query)
        return "\n".join([*map(str, plans), by_spark])

    shell.screen.show(shell.wait(in_thread(explain)).rstrip() + "\n")


def _format(shell: Shell, argument: str) -> None:
    screen: Screen = shell.screen
    if argument:
        if argument not in set(SqlFormat):
            raise ConfigurationError(
                f"unknown format {argument}", hint="table, json, csv or parquet"
            )
        if argument == SqlFormat.parquet:
            if shell.file is None:
                raise ConfigurationError("Parquet needs a file", hint="\\o FILE.parquet")
        else:
            screen.kind = SqlFormat(argument)
        if shell.file is not None:
            shell.file = ResultFile(shell.file.path, SqlFormat(argument))
    shell.say(f"Format: {shell.file.kind if shell.file else screen.kind}")


def _output(shell: Shell, argument: str) -> None:
    if not argument:
        shell.file = None
        shell.say("Results go to the screen.")
        return
    path = Path(argument.strip("'\"")).expanduser()
    kind = format_of(path)
    shell.file = ResultFile(path, shell.screen.kind if kind is SqlFormat.table else kind)
    shell.say(f"Results go to {path}, as {shell.file.kind}.")


def _include(shell: Shell, argument: str) -> None:
    if not argument:
        raise ConfigurationError("\\i needs a file")
    path = Path(argument.strip("'\"")).expanduser()
    for one in statements(read_sql(path)):
        try:
            shell.run(one.text)
        except PulsarLakeError as error:
            error.message = f"{path}:{one.line}: {error.message}"
            raise


def _rows(shell: Shell, argument: str) -> None:
    if argument == "all":
        shell.screen.rows = None
    elif argument:
        if not argument.isascii() or not argument.isdigit() or int(argument) < 1:
            raise ConfigurationError(f"{argument} is no number of rows", hint="a number, or all")
        shell.screen.rows = int(argument)
    shown = "all" if shell.screen.rows is None else f"{shell.screen.rows:,}"
    shell.say(f"Rows shown of a result: {shown}")


def _switch(what: str, get: Callable[[Shell], bool], put: Callable[[Shell, bool], None]) -> _Action:
    def action(shell: Shell, argument: str) -> None:
        if argument not in ("", "on", "off"):
            raise ConfigurationError(f"{argument} is neither on nor off")
        put(shell, argument == "on" if argument else not get(shell))
        shell.say(f"{what}: {'on' if get(shell) else 'off'}")

    return action


def _put_timing(shell: Shell, value: bool) -> None:
    shell.timing = value


def _put_expanded(shell: Shell, value: bool) -> None:
    shell.screen.expanded = value


def _put_pager(shell: Shell, value: bool) -> None:
    shell.screen.pager = value


_Action = Callable[["Shell", str], None]

_ACTIONS: dict[str, _Action] = {
    "\\?": _help,
    "\\h": _help,
    "\\help": _help,
    "\\q": _leave,
    "\\quit": _leave,
    "\\d": _describe,
    "\\dt": _describe,
    "\\dn": _namespaces,
    "\\explain": _explain,
    "\\f": _format,
    "\\i": _include,
    "\\o": _output,
    "\\rows": _rows,
    "\\pager": _switch("Pager", lambda shell: shell.screen.pager, _put_pager),
    "\\timing": _switch("Timing", lambda shell: shell.timing, _put_timing),
    "\\x": _switch("Expanded", lambda shell: shell.screen.expanded, _put_expanded),
}
