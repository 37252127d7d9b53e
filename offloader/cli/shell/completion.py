"""What Tab offers in a half-typed statement: pure, over what a ``Names`` knows."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from offloader.cli.shell.backslash import COMMANDS
from offloader.cli.shell.keywords import FUNCTIONS, KEYWORDS
from offloader.cli.shell.statements import Token, TokenKind, statements, tokens, without_space
from reader.printable import printable

_CATALOG = "pulsar"
_BEFORE_TABLES = ("FROM", "JOIN", "TABLE", "DESCRIBE", "DESC", "INTO")
_NAME = r"`(?:``|[^`])*`|\w+"
_TOPIC = re.compile(
    rf"(?:\b{_CATALOG}`? \. ({_NAME}) \. |\b(?:{'|'.join(_BEFORE_TABLES)}) )({_NAME})"
    rf"(?!\w| \.)(?:(?= (?:AS )?({_NAME})))?",
    re.IGNORECASE,
)
"""A topic and its alias, in tokens that are joined by one space each."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENTS = {"\\f": ("csv", "json", "parquet", "table")} | dict.fromkeys(
    ("\\x", "\\timing", "\\pager"), ("off", "on")
)


class Names(Protocol):
    """What the catalog has, as far as it is known at once. A list that is not known is empty."""

    def namespaces(self) -> Sequence[str]: ...
    def topics(self, namespace: str) -> Sequence[str]: ...
    def columns(self, namespace: str, topic: str) -> Sequence[str]:
        """Members of structs as the path to them, joined by NUL."""
        ...


class SqlCompleter(Completer):
    """Completions for prompt_toolkit. ``namespace``: that of ``USE``, at the moment."""

    def __init__(self, names: Names, namespace: Callable[[], str | None]) -> None:
        self._names = names
        self._namespace = namespace

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        return complete(document.text, document.cursor_position, self._names, self._namespace())


def sql_name(name: str) -> str:
    """Return a name as SQL takes it: in backticks, unless it is a plain one."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def complete(
    text: str, cursor: int, names: Names, namespace: str | None = None
) -> list[Completion]:
    """Return the completions at ``cursor`` of ``text``, the likely ones first."""
    if text.lstrip().startswith("\\"):
        return _of_command(text[:cursor].lstrip(), names, namespace)
    begin = 0
    for before in statements(text[:cursor])[-1:]:
        begin = before.end if before.complete else before.start
    whole = next((one.text for one in statements(text[begin:])), "")
    return _of_sql(text[begin:cursor], whole, names, namespace)


def _of_sql(text: str, statement: str, names: Names, namespace: str | None) -> list[Completion]:
    """Complete ``text``, which is the part of the statement before the cursor."""
    before = list(tokens(text))
    last = before[-1] if before else Token(TokenKind.space, "", 0)
    if (last.kind is TokenKind.open and last.text[0] != "`") or last.text.startswith("--"):
        return []
    path, parts = _typed(before)
    typed = "".join(one.text for one in parts)
    start, is_quoted = Token(TokenKind.word, typed, 0).name.lower(), typed.startswith("`")
    found: dict[str, str] = {}

    def add(name: str, about: str, after: str = "") -> None:
        if name.lower().startswith(start):
            text = sql_name(name)
            found.setdefault((f"`{text}`" if is_quoted and text[0] != "`" else text) + after, about)

    def add_members(topic: tuple[str, str], path: list[str]) -> None:
        above = "".join(f"{name}\0" for name in path)
        for name in sorted(names.columns(*topic), key=str.lower):
            if name.startswith(above) and "\0" not in name[len(above) :]:
                add(name[len(above) :], f"column of {topic[1]}")

    topics = named_topics(statement, namespace)
    if path == [_CATALOG]:
        for name in names.namespaces():
            add(name, "namespace", ".")
    elif path[:1] == [_CATALOG] and len(path) == 2:
        for name in names.topics(path[1]):
            add(name, "topic")
    elif path:
        inner = path[1:] if path[0] in topics else path
        for topic in [topics[path[0]]] if path[0] in topics else topics.values():
            add_members(topic, inner)
    else:
        said = without_space(before[: len(before) - len(parts)])
        is_table = said and said[-1].text.upper() in _BEFORE_TABLES
        for alias, topic in {} if is_table else topics.items():
            add_members(topic, [])
            if alias != topic[1]:
                add(alias, f"alias of {topic[1]}", ".")
        for name in names.topics(namespace) if namespace else ():
            add(name, "topic")
        add(_CATALOG, "catalog", ".")
        for word in (*KEYWORDS, *FUNCTIONS) if start and not is_quoted and not is_table else ():
            if word.lower().startswith(start):  # upper case or lower, as it is typed
                about = "keyword" if word in KEYWORDS else "function"
                found.setdefault(word.lower() if typed[-1].islower() else word.upper(), about)
    return [_completion(text, typed, about) for text, about in found.items()]


def _completion(text: str, typed: str, about: str) -> Completion:
    return Completion(text, -len(typed), printable(text), display_meta=printable(about))


def _typed(before: list[Token]) -> tuple[list[str], list[Token]]:
    """Return the names before the last dot, and the tokens that are typed of the next name.

    Below the catalog a name may be typed without the backticks that it needs: ``pulsar.a/b-c``.
    """
    size = 0
    while size < len(before):
        token = before[-1 - size]
        if token.kind is not TokenKind.word and token.text not in ("/", "-"):
            break
        size += 1
    last = before[-1].kind if before else None
    for count in (size, 1 if last in (TokenKind.word, TokenKind.open) else 0):
        path, at = list[str](), len(before) - count
        while at >= 2 and before[at - 1].text == "." and before[at - 2].is_name:
            path.insert(0, before[at - 2].name)
            at -= 2
        if path[:1] and path[0].lower() == _CATALOG:
            path[0] = _CATALOG
            break
    return path, before[len(before) - count :]


def named_topics(text: str, namespace: str | None = None) -> dict[str, tuple[str, str]]:
    """Return the topics that a statement names: (namespace, name) by alias, or else by name."""
    said = " ".join(
        "''" if one.kind is TokenKind.string else one.text for one in without_space(tokens(text))
    )
    found: dict[str, tuple[str, str]] = {}
    for match in _TOPIC.finditer(said):
        below, topic, alias = (one and Token(TokenKind.word, one, 0).name for one in match.groups())
        if where := below or namespace:
            plain = match[3] or topic
            found[alias if alias and plain.upper() not in KEYWORDS else topic] = (where, topic)
    return found


def _of_command(text: str, names: Names, namespace: str | None) -> list[Completion]:
    command, space, argument = text.partition(" ")
    if not space:
        return [_completion(a, text, about) for a, about in COMMANDS.items() if a.startswith(text)]
    if command == "\\explain":
        return _of_sql(argument, argument, names, namespace)
    if command == "\\d" and "/" in argument and "`" not in argument:
        there = (f"{one}/{topic}" for one in names.namespaces() for topic in names.topics(one))
        return [_completion(one, argument, "topic") for one in there if one.startswith(argument)]
    if command == "\\d":
        return _of_sql(f"TABLE {argument}", f"TABLE {argument}", names, namespace)
    fitting = [one for one in _ARGUMENTS.get(command, ()) if one.startswith(argument)]
    return [_completion(one, argument, "") for one in fitting]
