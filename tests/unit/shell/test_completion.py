"""What Tab offers, at ``|`` in a statement."""

from collections.abc import Sequence

import pytest

from offloader.cli.shell.backslash import COMMANDS
from offloader.cli.shell.completion import complete, named_topics, sql_name


class Small:
    """Two namespaces; the topics of one, and their columns."""

    def namespaces(self) -> Sequence[str]:
        return ["public/default", "shop"]

    def topics(self, namespace: str) -> Sequence[str]:
        return {"public/default": ["orders", "odd name", "events-1"]}.get(namespace, [])

    def columns(self, namespace: str, topic: str) -> Sequence[str]:
        known = {
            ("public/default", "orders"): ["id", "customer", "order", "key", "key\0id", "__key"],
            ("public/default", "events-1"): ["at", "item", "a b"],
        }
        return known.get((namespace, topic), [])


def offered(marked: str, namespace: str | None = None) -> list[str]:
    """The whole statement with each completion put in."""
    cursor = marked.index("|")
    text = marked.replace("|", "", 1)
    found = complete(text, cursor, Small(), namespace)
    return [text[: cursor + one.start_position] + one.text + text[cursor:] for one in found]


FROM = "FROM pulsar.`public/default`.orders"
BELOW = "SELECT 1 FROM pulsar.`public/default`."


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("sel|", "select"),
        ("SEL|", "SELECT"),
        ("SELECT 1 FROM pul|", "SELECT 1 FROM pulsar."),
        ("SELECT 1 FROM pulsar.|", "SELECT 1 FROM pulsar.`public/default`."),
        ("SELECT 1 FROM pulsar.pub|", "SELECT 1 FROM pulsar.`public/default`."),
        ("SELECT 1 FROM pulsar.`pub|", "SELECT 1 FROM pulsar.`public/default`."),
        ("SELECT 1 FROM pulsar.public/de|", "SELECT 1 FROM pulsar.`public/default`."),
        ("SELECT 1 FROM pulsar.`public/default`.events-|", f"{BELOW}`events-1`"),
        (f"SELECT o.id-cus| {FROM} o", f"SELECT o.id-customer {FROM} o"),
        ("SELECT 1 FROM pulsar.`sh|", "SELECT 1 FROM pulsar.`shop`."),
        ("SELECT 1 FROM pulsar.`public/default`.or|", f"SELECT 1 {FROM}"),
        ("SELECT 1 FROM pulsar.`public/default`.`or|", f"{BELOW}`orders`"),
        ("SELECT 1 FROM pulsar.`public/default`.odd|", f"{BELOW}`odd name`"),
        ("SELECT 1 FROM pulsar.`public/default`.ev|", f"{BELOW}`events-1`"),
        ("SELECT 1; SELECT 2 FROM pulsar.`public/default`.or|", f"SELECT 1; SELECT 2 {FROM}"),
        (f"SELECT cus| {FROM}", f"SELECT customer {FROM}"),
        (f"SELECT * {FROM} WHERE cus|", f"SELECT * {FROM} WHERE customer"),
        (f"SELECT * {FROM} WHERE id = 1 AND (CUS|", f"SELECT * {FROM} WHERE id = 1 AND (customer"),
        (f"SELECT * {FROM} WHERE __|", f"SELECT * {FROM} WHERE __key"),
        (f"SELECT o.cus| {FROM} AS o", f"SELECT o.customer {FROM} AS o"),
        (f"SELECT o.key.| {FROM} o", f"SELECT o.key.id {FROM} o"),
        (f"SELECT key.i| {FROM}", f"SELECT key.id {FROM}"),
        (
            f"SELECT {FROM}, pulsar.`public/default`.ev|",
            f"SELECT {FROM}, pulsar.`public/default`.`events-1`",
        ),
        ("DESCRIBE pulsar.`public/default`.or|", "DESCRIBE pulsar.`public/default`.orders"),
        ("USE pul|", "USE pulsar."),
        ("USE pulsar.p|", "USE pulsar.`public/default`."),
        ("\\d pulsar.`public/default`.or|", "\\d pulsar.`public/default`.orders"),
        ("\\d public/default/or|", "\\d public/default/orders"),
        ("\\explain sel|", "\\explain select"),
        ("\\tim|", "\\timing"),
        ("\\timing o|", "\\timing off"),
        ("\\f par|", "\\f parquet"),
    ],
)  # fmt: skip
def test_the_first_that_fits(marked: str, first: str) -> None:
    assert offered(marked)[:1] == [first]


@pytest.mark.parametrize(
    "marked",
    [
        "SELECT 'sel|",
        "-- sel|",
        "SELECT 1 /* sel|",
        "SELECT 1 FROM pulsar.nowhere.or|",
        "SELECT 1 FROM pulsar.`public/default`.zz|",
        f"SELECT x.cus| {FROM} AS o",
        "\\zz|",
        "\\rows |",
    ],
)
def test_nothing_fits(marked: str) -> None:
    assert offered(marked) == []


def test_columns_of_each_topic_come_before_keywords() -> None:
    found = complete(
        "SELECT i FROM pulsar.`public/default`.orders a JOIN pulsar.`public/default`.`events-1` b",
        8,
        Small(),
    )
    assert [one.text for one in found[:2]] == ["id", "item"]
    assert found[2].display_meta_text == "keyword"


def test_after_use_topics_need_no_path() -> None:
    assert offered("SELECT 1 FROM or|", "public/default") == ["SELECT 1 FROM orders"]
    assert offered("SELECT o.cus| FROM orders o JOIN `events-1`", "public/default") == [
        "SELECT o.customer FROM orders o JOIN `events-1`"
    ]
    assert offered("SELECT cus| FROM orders", "public/default")[0] == "SELECT customer FROM orders"


def test_the_topics_of_a_statement() -> None:
    text = (
        "WITH x AS (SELECT 1) SELECT * FROM pulsar.`public/default`.orders AS o, "
        "pulsar.`a/b`.`c``d` WHERE 'pulsar.x.y' = 1 -- pulsar.no.no\n"
    )
    assert named_topics(text) == {"o": ("public/default", "orders"), "c`d": ("a/b", "c`d")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("orders", "orders"), ("a/b", "`a/b`"), ("1a", "`1a`"), ("a`b", "`a``b`"), ("Ä", "`Ä`")],
)
def test_a_name_is_quoted_where_sql_needs_it(name: str, expected: str) -> None:
    assert sql_name(name) == expected


def test_each_command_is_offered() -> None:
    assert {one.text for one in complete("\\", 1, Small())} == set(COMMANDS)
