"""Split SQL text into tokens, and into statements that end at a ``;``, by Spark's own rules.

Strings have backslash escapes, or are raw (``r'…'``), or lie between ``$tag$`` and ``$tag$``.
Comments in brackets nest. SQL scripts have blocks (``BEGIN … END``). No SQL lexer of pygments has
all of these. Source: Spark 4.2's ``SqlBaseLexer.g4``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from reader.errors import ConfigurationError


class TokenKind(Enum):
    """The kind of a piece of SQL."""

    space = "space"
    comment = "comment"
    string = "string"
    quoted = "name in backticks"
    open = "string, name or comment without its end"
    word = "word"
    symbol = "symbol"


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, from ``start`` up to ``end``."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def is_name(self) -> bool:
        return self.kind in (TokenKind.word, TokenKind.quoted)

    @property
    def name(self) -> str:
        """The name that a word, or a name in backticks, stands for."""
        if not self.text.startswith("`"):
            return self.text
        return self.text[1:].removesuffix("`").replace("``", "`")


@dataclass(frozen=True, slots=True)
class SqlStatement:
    """One statement, without its ``;``; ``line``: line of its first word, from 1.

    ``start``, ``end``: its place in the text, with the ``;``; ``complete``: it has a ``;``.
    """

    text: str
    line: int
    start: int
    end: int
    complete: bool


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
    | (?P<comment>--(?:\\\n|[^\r\n])*|(?P<bracket>/\*(?!\+)))
    | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"
        |\$(?P<tag>[A-Za-z]*)\$.*?\$(?P=tag)\$)
    | (?P<quoted>`(?:``|[^`])*`(?!`))
    | (?P<open>(?:[rR]?['"]|`|\$[A-Za-z]*\$).*)
    | (?P<word>[^\W\d_]+://[\w/.?=&\#%-]+|\w+)
    | (?P<symbol>\*/|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*(?!\+)|\*/")
_NAMED_ENDS = ("IF", "WHILE", "REPEAT", "LOOP", "FOR")
_BEFORE_NAMES = {"CASE": ("END", ".", "AS"), "BEGIN": ("END", ".", "AS", ",", "(", "SELECT")}
"""What two words of blocks follow where they begin none: they are names there."""


def tokens(text: str) -> Iterator[Token]:
    """Yield all pieces of the text, in order. Joined, they are the text."""
    at = 0
    while match := _TOKEN.match(text, at):
        kind, end = TokenKind[match.lastgroup or ""], match.end()
        if match["bracket"]:
            end = _end_of_comment(text, at)
            kind, end = (TokenKind.comment, end) if end else (TokenKind.open, len(text))
        yield Token(kind, text[at:end], at)
        at = end


def _end_of_comment(text: str, at: int) -> int:
    """Return the end of a comment in brackets, which may have others in it; 0 without an end."""
    depth = 0
    for mark in _BRACKETS.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return 0


def without_space(parts: Iterator[Token] | list[Token]) -> list[Token]:
    """Return the tokens that are neither space nor comments."""
    return [one for one in parts if one.kind not in (TokenKind.space, TokenKind.comment)]


def read_sql(path: Path) -> str:
    """Return a file's text. Raises ConfigurationError if the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")  # a mark of byte order is no SQL
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationError(f"cannot read {path}: {why}") from error


def statements(text: str) -> list[SqlStatement]:
    """Return the statements of a text. Space and comments alone are no statement."""
    found: list[SqlStatement] = []
    begin, words = 0, list[Token]()
    for token in (*tokens(text), Token(TokenKind.symbol, "", len(text))):
        ends = token.text in (";", "") and not (token.text and _is_open_script(words))
        if ends and words:
            line = text.count("\n", 0, words[0].start) + 1
            part = text[begin : token.start].strip()
            found.append(SqlStatement(part, line, begin, token.end, token.text == ";"))
        if ends:
            begin, words = token.end, []
        elif token.kind not in (TokenKind.space, TokenKind.comment):
            words.append(token)
    return found


def is_complete(text: str) -> bool:
    """Return whether the last statement has its ``;``, so that a shell need not wait for more.

    True for a text without any statement, unless a comment in it is open.
    """
    if any(one.kind is TokenKind.open for one in tokens(text)):
        return False
    found = statements(text)
    return not found or found[-1].complete


def _is_open_script(said: list[Token]) -> bool:
    """Return whether the tokens are a script (``BEGIN … END``) whose last END is missing.

    A script begins with BEGIN, perhaps behind a label. In it, BEGIN and CASE have an END of their
    own. Each END of a block follows a ``;``: so ``AS end`` is a name.
    """
    words = [one.text.upper() for one in said]
    if "BEGIN" not in (words[:1] if words[1:2] != [":"] else words[2:3]):
        return False
    blocks: list[str] = []
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        if word in _BEFORE_NAMES and before not in _BEFORE_NAMES[word]:
            blocks.append(word)
        elif word == "END" and blocks:
            at_begin = before in (";", "BEGIN")
            if after not in _NAMED_ENDS if at_begin else blocks[-1] == "CASE":
                blocks.pop()
    return bool(blocks)
