"""What may stand at the cursor of a half-typed statement: pure, over what a ``Names`` knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from offloader.cli.shell.keywords import FUNCTIONS, KEYWORDS
from offloader.cli.shell.statements import Token, TokenKind, statements, tokens

__all__ = ["COMMANDS", "Completion", "Names", "complete", "named_topics", "sql_name"]

_CATALOG = "pulsar"
_BEFORE_TABLES = ("FROM", "JOIN", "TABLE", "DESCRIBE", "DESC", "INTO")
_BEFORE_NAMESPACES = ("USE", "IN", "NAMESPACE", "DATABASE", "SCHEMA")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

COMMANDS = {
    "\\?": "this help",
    "\\d": "[TOPIC]  topics, or the columns of one",
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
"""The shell's own commands, and what each does."""

_FORMATS = ("csv", "json", "parquet", "table")
_SWITCH = ("off", "on")


class Names(Protocol):
    """What the catalog has, as far as it is known at once; empty where it is not."""

    def namespaces(self) -> Sequence[str]: ...
    def topics(self, namespace: str) -> Sequence[str]: ...
    def columns(self, namespace: str, topic: str) -> Sequence[str]:
        """Those of a struct as ``key.id``."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """``text`` may stand where the text from ``start`` to the cursor is. ``about``: what it is."""

    text: str
    start: int
    about: str


def sql_name(name: str) -> str:
    """A name as SQL takes it: in backticks, unless it is a plain one."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def complete(
    text: str, cursor: int, names: Names, namespace: str | None = None
) -> list[Completion]:
    """What fits at ``cursor`` of ``text``, sorted; ``namespace``: that of ``USE``, if any."""
    if text.lstrip().startswith("\\"):
        return _of_command(text, cursor, names, namespace)
    part = next((one for one in statements(text) if one.start <= cursor <= one.end), None)
    begin, end = (part.start, part.end) if part else (0, len(text))
    if part and part.complete and cursor == part.end:
        begin = end = cursor
    return _of_sql(text[begin:end], begin, cursor - begin, names, namespace)


def _of_sql(
    text: str, offset: int, cursor: int, names: Names, namespace: str | None
) -> list[Completion]:
    before = list(tokens(text[:cursor]))
    if before and before[-1].kind in (TokenKind.string, TokenKind.comment):
        last = before[-1]
        if not last.closed or last.text.startswith("--"):
            return []
    path, typed, start = _path(before)
    previous = _word_before(before, start)
    found = _Found(typed, start + offset)
    topics = named_topics(text, namespace)
    if path:
        _add_below(found, path, topics, names)
    elif previous in _BEFORE_TABLES or (previous == "," and _in_from(before)):
        _add_tables(found, names, namespace)
    elif previous in _BEFORE_NAMESPACES and not topics:
        found.add([_CATALOG], "catalog", ".")
    else:
        for alias, topic in topics.items():
            found.add(_top(names.columns(*topic)), f"column of {topic[1]}")
            if alias != topic[1]:
                found.add([alias], f"alias of {topic[1]}", ".")
        found.add_words(KEYWORDS, "keyword")
        found.add_words(FUNCTIONS, "function")
        found.add([_CATALOG], "catalog", ".")
    return found.sorted()


def _add_tables(found: _Found, names: Names, namespace: str | None) -> None:
    found.add([_CATALOG], "catalog", ".")
    if namespace is not None:
        found.add(names.topics(namespace), "topic")


def _add_below(
    found: _Found, path: list[str], topics: dict[str, tuple[str, str]], names: Names
) -> None:
    if path[0].lower() == _CATALOG and len(path) == 1:
        found.add(names.namespaces(), "namespace", ".")
    elif path[0].lower() == _CATALOG and len(path) == 2:
        found.add(names.topics(path[1]), "topic")
    else:
        for topic in [topics[path[0]]] if path[0] in topics else topics.values():
            inner = path[1:] if path[0] in topics else path
            found.add(_inside(names.columns(*topic), inner), f"column of {topic[1]}")


def _top(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if "\0" not in name]


def _inside(columns: Iterable[str], path: list[str]) -> list[str]:
    """The members of a struct, whose names are the path to them, joined by NUL."""
    prefix = "".join(f"{name}\0" for name in path)
    return [
        rest
        for name in columns
        if name.startswith(prefix) and "\0" not in (rest := name[len(prefix) :])
    ]


class _Found:
    """What fits so far: only what begins with what was typed."""

    def __init__(self, typed: Token | None, start: int) -> None:
        self._typed = typed.name if typed else ""
        self._quoted = typed is not None and typed.kind is TokenKind.quoted
        self._start = start
        self._found: dict[str, Completion] = {}

    def add(self, names: Iterable[str], about: str, after: str = "") -> None:
        for name in names:
            if name.lower().startswith(self._typed.lower()):
                text = sql_name(name)
                if self._quoted and not text.startswith("`"):
                    text = f"`{name}`"
                self._found.setdefault(text, Completion(text + after, self._start, about))

    def add_words(self, words: Iterable[str], about: str) -> None:
        """Once something was typed: upper case or lower, as it was typed."""
        if not self._typed or self._quoted:
            return
        for word in words:
            if word.lower().startswith(self._typed.lower()):
                text = word.lower() if self._typed[-1].islower() else word.upper()
                self._found.setdefault(text, Completion(text, self._start, about))

    def sorted(self) -> list[Completion]:
        order = ("column", "alias", "topic", "namespace", "catalog", "keyword", "function")
        return sorted(
            self._found.values(),
            key=lambda one: (order.index(one.about.split()[0]), one.text.lower()),
        )


def _path(before: list[Token]) -> tuple[list[str], Token | None, int]:
    """The names before the cursor that are joined by dots, what is typed of the next, its start."""
    rest = list(before)
    typed = None
    end = rest[-1].end if rest else 0
    if (bare := _bare_name(rest)) is not None:
        typed = bare
        rest = [one for one in rest if one.end <= bare.start]
    elif rest and (rest[-1].kind is TokenKind.word or _is_open_name(rest[-1])):
        typed = rest.pop()
    path: list[str] = []
    while len(rest) >= 2 and rest[-1].text == "." and _is_name(rest[-2]):
        path.insert(0, rest[-2].name)
        rest = rest[:-2]
    return path, typed, typed.start if typed else end


def _bare_name(before: list[Token]) -> Token | None:
    """A name below the catalog that is typed without the backticks it needs: ``pulsar.a/b-c``."""
    run: list[Token] = []
    for one in reversed(before):
        if one.kind is not TokenKind.word and one.text not in ("/", "-"):
            break
        run.insert(0, one)
    above = before[: len(before) - len(run)]
    while len(above) >= 2 and above[-1].text == "." and _is_name(above[-2]):
        if above[-2].name.lower() == _CATALOG and len(run) > 1:
            return Token(TokenKind.word, "".join(one.text for one in run), run[0].start)
        above = above[:-2]
    return None


def _is_name(token: Token) -> bool:
    return token.kind in (TokenKind.word, TokenKind.quoted)


def _is_open_name(token: Token) -> bool:
    return token.kind is TokenKind.quoted and not token.closed


def _word_before(before: list[Token], start: int) -> str:
    """The word, or the sign, before what is typed at ``start``; upper case."""
    said = [
        one
        for one in before
        if one.start < start and one.kind not in (TokenKind.space, TokenKind.comment)
    ]
    return said[-1].text.upper() if said else ""


def _in_from(before: list[Token]) -> bool:
    """Whether a comma at the end parts tables: the clause it is in began with FROM."""
    clauses = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "ON", "HAVING", "BY")
    words = [one.text.upper() for one in before if one.kind is TokenKind.word]
    return next((word for word in reversed(words) if word in clauses), "") == "FROM"


def named_topics(text: str, namespace: str | None = None) -> dict[str, tuple[str, str]]:
    """The topics that a statement names: (namespace, name) by alias, or by name without one."""
    said = [one for one in tokens(text) if one.kind not in (TokenKind.space, TokenKind.comment)]
    found: dict[str, tuple[str, str]] = {}
    at = 0
    while at < len(said):
        names, after = _dotted(said, at)
        topic = None
        if len(names) == 3 and names[0].lower() == _CATALOG:
            topic = (names[1], names[2])
        elif len(names) == 1 and namespace and at and said[at - 1].text.upper() in _BEFORE_TABLES:
            topic = (namespace, names[0])
        if topic:
            found[_alias(said, after) or topic[1]] = topic
        at = max(after, at + 1)
    return found


def _dotted(said: list[Token], at: int) -> tuple[list[str], int]:
    names: list[str] = []
    while at < len(said) and _is_name(said[at]):
        names.append(said[at].name)
        if at + 1 >= len(said) or said[at + 1].text != ".":
            return names, at + 1
        at += 2
    return names, at


def _alias(said: list[Token], at: int) -> str | None:
    if at < len(said) and said[at].text.upper() == "AS":
        at += 1
    if at >= len(said) or not _is_name(said[at]):
        return None
    known = said[at].kind is TokenKind.word and said[at].text.upper() in KEYWORDS
    return None if known else said[at].name


# -- the shell's own commands ----------------------------------------------------------------------


def _of_command(text: str, cursor: int, names: Names, namespace: str | None) -> list[Completion]:
    begin = len(text) - len(text.lstrip())
    command, space, argument = text[begin:cursor].partition(" ")
    if not space:
        return [
            Completion(one, begin, about)
            for one, about in COMMANDS.items()
            if one.startswith(command)
        ]
    start = begin + len(command) + 1
    if command == "\\explain":
        return _of_sql(text[start:], start, cursor - start, names, namespace)
    if command == "\\d" and "/" in argument and "`" not in argument:
        there = (f"{one}/{topic}" for one in names.namespaces() for topic in names.topics(one))
        return [Completion(one, start, "topic") for one in there if one.startswith(argument)]
    if command == "\\d":
        return _of_sql(f"TABLE {argument}", start - 6, len(argument) + 6, names, namespace)
    words = {"\\f": _FORMATS, "\\x": _SWITCH, "\\timing": _SWITCH, "\\pager": _SWITCH}
    fitting = [one for one in words.get(command, ()) if one.startswith(argument)]
    return [Completion(one, start, "") for one in fitting]
