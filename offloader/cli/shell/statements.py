"""SQL text taken apart by Spark's own rules: tokens, and statements that end at a ``;``.

Only what decides where a statement ends is looked at: strings (with backslash escapes, or raw, as
``r'…'``), names in backticks, comments (``--`` to the end of the line, brackets that nest), texts
between ``$tag$`` and ``$tag$``, and the blocks of SQL scripts (``BEGIN … END``).
Source: Spark 4.2's ``SqlBaseLexer.g4``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from reader.errors import ConfigurationError

__all__ = [
    "SqlStatement",
    "Token",
    "TokenKind",
    "is_complete",
    "read_sql",
    "statements",
    "tokens",
]


class TokenKind(Enum):
    """What a piece of SQL is."""

    space = "space"
    comment = "comment"
    string = "string"
    quoted = "name in backticks"
    word = "word"
    symbol = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, from ``start`` up to ``end``; ``closed``: its closing mark is there."""

    kind: TokenKind
    text: str
    start: int
    closed: bool = True

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def name(self) -> str:
        """Of a word or a name in backticks: what it names."""
        if self.kind is not TokenKind.quoted:
            return self.text
        inner = self.text[1:-1] if self.closed else self.text[1:]
        return inner.replace("``", "`")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement, without its ``;``; ``line``: of its first word, from 1.

    ``start``, ``end``: where it lies in the text, the ``;`` included; ``complete``: it has one.
    """

    text: str
    line: int
    start: int
    end: int
    complete: bool


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--(?:\\\n|[^\r\n])*)
    | (?P<bracket>/\*)
    | (?P<string>[rR](?:'[^']*(?P<raw_end>')?|"[^"]*(?P<raw_end_2>")?)
        | '(?:\\.|[^'\\])*(?P<end>')? | "(?:\\.|[^"\\])*(?P<end_2>")?)
    | (?P<quoted>`(?:``|[^`])*(?P<end_3>`(?!`))?)
    | (?P<dollar>\$[A-Za-z]*\$)
    | (?P<word>\w+)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_BLOCKS_WITH_A_NAMED_END = ("IF", "WHILE", "REPEAT", "LOOP", "FOR")


def tokens(text: str) -> Iterator[Token]:
    """All pieces of the text, in order; put together they are the text."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # a backslash at the very end of a string
            yield Token(TokenKind.string, text[at:], at, closed=False)
            return
        kind = match.lastgroup or ""
        for one in ("space", "comment", "bracket", "string", "quoted", "dollar", "word", "symbol"):
            if match[one] is not None:
                kind = one
        token = _token(text, at, match, kind)
        yield token
        at = token.end


def _token(text: str, at: int, match: re.Match[str], kind: str) -> Token:
    found = match[0]
    if kind == "bracket":
        end, closed = _end_of_comment(text, at)
        return Token(TokenKind.comment, text[at:end], at, closed)
    if kind == "dollar":
        end = text.find(found, match.end())
        closed = end >= 0
        return Token(
            TokenKind.string, text[at : end + len(found) if closed else len(text)], at, closed
        )
    closed = True
    if kind == "string":
        closed = any(match[one] for one in ("end", "end_2", "raw_end", "raw_end_2"))
    elif kind == "quoted":
        closed = match["end_3"] is not None
    return Token(TokenKind[kind], found, at, closed)


def _end_of_comment(text: str, at: int) -> tuple[int, bool]:
    depth = 0
    for mark in _BRACKETS.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end(), True
    return len(text), False


def read_sql(path: Path) -> str:
    """A file's text. Raises ConfigurationError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")  # a mark of byte order is no SQL
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"cannot read {path}: {why}") from error


def statements(text: str) -> list[SqlStatement]:
    """The statements of a text; what is nothing but space and comments is none."""
    found: list[SqlStatement] = []
    current: list[Token] = []
    blocks = _Blocks()
    for token in tokens(text):
        if token.text == ";" and not blocks.depth:
            found += _statement(text, current, token)
            current, blocks = [], _Blocks()
            continue
        current.append(token)
        blocks.see(token)
    return found + _statement(text, current, None)


def _statement(text: str, parts: list[Token], end: Token | None) -> list[SqlStatement]:
    said = [one for one in parts if one.kind not in (TokenKind.space, TokenKind.comment)]
    if not said:
        return []
    line = text.count("\n", 0, said[0].start) + 1
    inner = text[parts[0].start : parts[-1].end].strip()
    last = end.end if end else parts[-1].end
    return [SqlStatement(inner, line, parts[0].start, last, end is not None)]


def is_complete(text: str) -> bool:
    """Whether its last statement has its ``;``: then a shell need not wait for more lines.

    True for a text without any statement, unless a comment in it is open.
    """
    if any(not one.closed for one in tokens(text)):
        return False
    found = statements(text)
    return not found or found[-1].complete


class _Blocks:
    """How deep in the blocks of a script a statement is; 0 for all others.

    A script begins with BEGIN, perhaps behind a label. In it, CASE and BEGIN have an END of their
    own; END IF, END WHILE and so on belong to what is not counted.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._seen: list[str] = []  # the words so far, at most three
        self._after_end = False

    def see(self, token: Token) -> None:
        if token.kind in (TokenKind.space, TokenKind.comment):
            return
        word = token.text.upper() if token.kind is TokenKind.word else token.text[:1]
        if len(self._seen) < 3:
            self._seen.append(word)
        begins = word == "BEGIN" and (len(self._seen) == 1 or self._seen[1:] == [":", "BEGIN"])
        if self._after_end:
            self._after_end = False
            if word in _BLOCKS_WITH_A_NAMED_END:
                self.depth += 1  # its END closed none of those that are counted
                return
            if word == "CASE":
                return
        if begins and not self.depth:
            self.depth = 1
        elif self.depth and word in ("BEGIN", "CASE"):
            self.depth += 1
        elif self.depth and word == "END":
            self.depth -= 1
            self._after_end = True
