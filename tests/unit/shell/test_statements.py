"""Where Spark's SQL ends a statement."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offloader.cli.shell.statements import is_complete, statements, tokens

PARTS: list[tuple[str, list[str]]] = [
    ("", []),
    (" ; ;\n", []),
    ("-- only; a comment", []),
    ("SELECT 1", ["SELECT 1"]),
    ("SELECT 1;", ["SELECT 1"]),
    ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
    ("SELECT ';';SELECT \";\"", ["SELECT ';'", 'SELECT ";"']),
    (r"SELECT 'it\'s;', 2;", [r"SELECT 'it\'s;', 2"]),
    ("SELECT 'it''s;';", ["SELECT 'it''s;'"]),
    (r"SELECT r'\'; SELECT 2", [r"SELECT r'\'", "SELECT 2"]),
    ("SELECT 'for'; SELECT 2", ["SELECT 'for'", "SELECT 2"]),
    ("SELECT `a;``b` FROM t;", ["SELECT `a;``b` FROM t"]),
    ("SELECT 1 -- ; not yet\n+ 2;", ["SELECT 1 -- ; not yet\n+ 2"]),
    ("SELECT 1 -- goes on \\\n; still\n;", ["SELECT 1 -- goes on \\\n; still"]),
    ("SELECT /* ; /* ; */ ; */ 1;", ["SELECT /* ; /* ; */ ; */ 1"]),
    ("SELECT /*+ BROADCAST(a) */ 1; SELECT 2", ["SELECT /*+ BROADCAST(a) */ 1", "SELECT 2"]),
    ("SELECT $$ ; $$, $x$ ; $$ ; $x$;", ["SELECT $$ ; $$, $x$ ; $$ ; $x$"]),
    ("SELECT 1 / 2 - -3; SELECT 4", ["SELECT 1 / 2 - -3", "SELECT 4"]),
    ("SELECT CASE WHEN a THEN 1 END; SELECT 2", ["SELECT CASE WHEN a THEN 1 END", "SELECT 2"]),
    (
        "BEGIN SELECT 1; IF true THEN SELECT CASE WHEN a THEN 2 END; END IF; END; SELECT 2",
        ["BEGIN SELECT 1; IF true THEN SELECT CASE WHEN a THEN 2 END; END IF; END", "SELECT 2"],
    ),
    (
        "l: BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END l; SELECT 2",
        ["l: BEGIN CASE x WHEN 1 THEN SELECT 1; END CASE; END l", "SELECT 2"],
    ),
    (
        "BEGIN SELECT t.end, begin, 1 AS end, 2 AS case; BEGIN END; END; SELECT 2",
        ["BEGIN SELECT t.end, begin, 1 AS end, 2 AS case; BEGIN END; END", "SELECT 2"],
    ),
    ("SELECT /*+ a */*/* /*+ */ 1; SELECT 2", ["SELECT /*+ a */*/* /*+ */ 1", "SELECT 2"]),
    ("TABLE file://a--b; SELECT 2", ["TABLE file://a--b", "SELECT 2"]),
]


@pytest.mark.parametrize(("text", "expected"), PARTS, ids=[text for text, _ in PARTS])
def test_a_text_is_parted_as_spark_parts_it(text: str, expected: list[str]) -> None:
    assert [one.text for one in statements(text)] == expected


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- said", True),
        ("SELECT 1; SELECT", False),
        ("SELECT 'a;", False),
        ("SELECT `a;", False),
        ('SELECT "a;', False),
        ("SELECT /* a;", False),
        ("SELECT 1; /* a", False),
        ("SELECT $$ a;", False),
        ("SELECT r'a;", False),
        ("SELECT '\\", False),
        ("BEGIN SELECT 1;", False),
        ("BEGIN SELECT 1; END;", True),
    ],
)
def test_a_shell_waits_for_the_end_of_a_statement(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_a_statement_knows_its_line() -> None:
    text = "-- first\n\nSELECT\n 1;\n/* a\nb */ SELECT 2;\n;;\n SELECT 3"
    assert [(one.text[-1], one.line) for one in statements(text)] == [("1", 3), ("2", 6), ("3", 8)]


@given(st.text(alphabet="ab ;'\"`\\-/*+$r\n:.") | st.text())
def test_any_text_is_taken_apart_without_loss(text: str) -> None:
    found = list(tokens(text))
    assert "".join(one.text for one in found) == text
    assert [one.start for one in found] == [one.end for one in [*found][:-1]][:0] + [
        sum(len(other.text) for other in found[:number]) for number in range(len(found))
    ]
    parts = statements(text)
    assert all(one.text and one.text in text for one in parts)
    assert all(one.complete for one in parts[:-1])


@given(st.lists(st.sampled_from([text for text, parts in PARTS if len(parts) == 1]), max_size=4))
def test_statements_one_behind_the_other_are_the_same_statements(texts: list[str]) -> None:
    closed = [text if text.endswith(";") else f"{text};" for text in texts]
    alone = [one.text for text in closed for one in statements(text)]
    assert [one.text for one in statements("\n".join(closed))] == alone
