"""The text of a topic's view: the same columns from both halves, whatever they are called."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reader.clients import Clients, process_clients
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Position, Segment, Tier, Topic
from reader.model.columns import METADATA, METADATA_NAMES
from reader.model.reasons import Reason, TierReason
from reader.plan import CompactedPart
from reader.plan import snapshot_token as tokens
from reader.plan.snapshot import Snapshot
from reader.pulsar import CompactedLedger
from reader.pulsar.admin import AdminClient
from spark_ext.planner import relations
from spark_ext.planner.cold_tables import TableVersion
from spark_ext.planner.protocol import LoadFormat, LoadRelation, Relation, TopicView
from spark_ext.planner.relations import Relations, compacted_text, view_text
from spark_ext.session.handoff import load_settings

TOPIC = Topic("public", "de`fault", "or`ders")
VERSION = TableVersion(3, "1f-2e")
HOT = Segment(
    Partition(TOPIC, -1), 7, "sealed", Tier.BOOKKEEPER, TierReason(Reason.SEALED), 9, 10, 1000
)
META = ", ".join(f"`{name}`" for name in METADATA_NAMES)
SNAPSHOT = Snapshot(
    topic=TOPIC,
    uri="s3://bucket/public/orders",
    version=3,
    fields=pa.schema([("id", pa.int64()), ("new", pa.list_(pa.string()))]),
    cold_columns=pa.schema([("id", pa.int64()), *METADATA]),
    schemas=(),
    hot=(HOT,),
)
COLD = (
    f"SELECT `id`, CAST(NULL AS ARRAY<STRING>) AS `new`, {META}"
    " FROM `my cat`.`public/de``fault`.`or``ders$cold@3-1f-2e`"
)
ELSEWHERE = tokens.to_token(SNAPSHOT)
WARM = f"SELECT `id`, `new`, {META} FROM `my cat`.`public/de``fault`.`or``ders$hot@TOKEN`"


def test_both_halves() -> None:
    assert view_text(SNAPSHOT, "my cat", "TOKEN", VERSION) == f"{COLD} UNION ALL {WARM}"


def test_cold_alone() -> None:
    assert view_text(replace(SNAPSHOT, hot=()), "my cat", "TOKEN", VERSION) == COLD


def test_hot_alone() -> None:
    assert view_text(replace(SNAPSHOT, version=None), "my cat", "TOKEN", None) == WARM


def test_what_compaction_has_kept_is_with_the_hot_rows_and_in_no_others() -> None:
    partition = Partition(SNAPSHOT.topic, 3)
    ledger = CompactedLedger(90, 1, None, Position(35, 0))
    part = CompactedPart(partition, 7, 35, ledger, Position(35, 4))
    snapshot = replace(SNAPSHOT, hot=(), compacted=(part,))
    kept = "NOT (__partition = 3 AND __ledgerId >= 7 AND __ledgerId < 35)"
    assert (
        view_text(snapshot, "my cat", "TOKEN", VERSION) == f"{COLD} WHERE {kept} UNION ALL {WARM}"
    )
    nothing = replace(snapshot, compacted=(replace(part, first=35),))
    assert view_text(nothing, "my cat", "TOKEN", VERSION) == f"{COLD} UNION ALL {WARM}"


def test_members_that_only_hot_rows_have() -> None:
    old, new = pa.struct([("a", pa.int64())]), pa.struct([("a", pa.int64()), ("b", pa.string())])
    cold = pa.schema([("x", pa.list_(old)), ("y", pa.map_(pa.string(), old)), ("z", old)])
    fields = pa.schema([("x", pa.list_(new)), ("y", pa.map_(pa.string(), new)), ("z", new)])
    snapshot = replace(SNAPSHOT, hot=(), fields=fields, cold_columns=pa.schema([*cold, *METADATA]))
    inner = "CASE WHEN v IS NOT NULL THEN named_struct('a', v.`a`, 'b', CAST(NULL AS STRING)) END"
    assert view_text(snapshot, "c", "T", VERSION).startswith(
        f"SELECT CASE WHEN `x` IS NOT NULL THEN transform(`x`, v -> {inner}) END AS `x`, "
        f"CASE WHEN `y` IS NOT NULL THEN transform_values(`y`, (k, v) -> {inner}) END AS `y`, "
        f"{inner.replace('v', '`z`').replace('`z`alue', 'value')} AS `z`, "
    )


def test_neither_is_a_table_without_rows() -> None:
    text = view_text(replace(SNAPSHOT, version=None, hot=()), "my cat", "TOKEN", None)
    assert text.startswith("SELECT CAST(NULL AS BIGINT) AS `id`, ")
    assert text.endswith("AS `__error` WHERE false")


def _clients_of(config: str | None) -> Clients:
    return process_clients(load_settings(config))


def load(catalog: Relations, namespace: str, name: str) -> Relation:
    return catalog.load(None, LoadRelation("pulsar", namespace, name))


class Calls(list[str]):
    """What was asked of Pulsar."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    seen = Calls()
    monkeypatch.setenv("PULSAR_LAKE__STORAGE__URI", "s3://bucket")

    def take(clients: Any, topic: Topic, *, tiers: str | None, compacted: bool) -> Snapshot:
        seen.append(f"take {topic} {tiers}")
        return replace(SNAPSHOT, topic=topic)

    def resolve(admin: Any, topic: Topic, token: str) -> Snapshot:
        seen.append(f"resolve {topic}")
        return replace(SNAPSHOT, topic=topic, version=None)

    monkeypatch.setattr(relations, "take_snapshot", take)

    def require_consume(admin: AdminClient, topic: Topic) -> None:
        seen.append(f"permission {topic}")

    monkeypatch.setattr(relations, "from_token", resolve)
    monkeypatch.setattr(AdminClient, "require_consume", require_consume)
    return seen


def test_the_hot_table_right_after_its_view_asks_for_permission_alone(calls: Calls) -> None:
    catalog = Relations(_clients_of)
    view = load(catalog, "public/default", "orders")
    token = tokens.to_token(replace(SNAPSHOT, topic=Topic("public", "default", "orders")))
    assert view.view is not None
    assert f"orders$hot@{token}`" in view.view.text
    hot = load(catalog, "public/default", f"orders$hot@{token}").table
    assert calls == ["take public/default/orders None", "permission public/default/orders"]
    assert hot is not None
    assert (hot.cold, hot.rows, hot.bytes) == (False, 10, 1000)
    assert hot.schema == view.view.schema
    assert view.view.tables == (hot,), "so that Spark's catalog need not ask for it"


def test_a_token_of_another_life_is_resolved(calls: Calls) -> None:
    catalog = Relations(_clients_of)
    for _ in range(2):
        load(catalog, "public/default", f"orders$hot@{ELSEWHERE}")
    assert calls == ["resolve public/default/orders", "permission public/default/orders"]
    load(catalog, "public/default", f"others$hot@{ELSEWHERE}")
    assert calls[2:] == ["resolve public/default/others"], "what was kept is another topic's"


def test_a_long_token_of_another_life_is_not_kept(calls: Calls) -> None:
    token = tokens.to_token(replace(SNAPSHOT, hot=(HOT,) * 100_000))
    assert len(token) < 10_000
    catalog = Relations(_clients_of)
    for _ in range(2):
        load(catalog, "public/default", f"orders$hot@{token}")
    assert calls == ["resolve public/default/orders"] * 2


def test_what_is_kept_has_so_many_segments_in_all(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"a": 100_000, "b": 100_000, "c": 100_000, "d": 300_000}

    def take(clients: Any, topic: Topic, *, tiers: str | None, compacted: bool) -> Snapshot:
        return replace(SNAPSHOT, topic=topic, hot=(HOT,) * sizes[topic.name])

    monkeypatch.setattr(relations, "take_snapshot", take)
    catalog = Relations(_clients_of)

    def view(name: str) -> str:
        view = load(catalog, "public/default", name).view
        assert view is not None
        return view.text.rpartition("`.`")[2].rstrip("`")

    def asked(hot: str) -> str:
        calls.clear()
        load(catalog, "public/default", hot)
        return " ".join(calls)

    a, b, c = (view(name) for name in "abc")
    assert asked(a) == "resolve public/default/a", "the oldest made room"
    assert asked(b) == "permission public/default/b"
    assert asked(c) == "permission public/default/c"
    assert asked(view("d")) == "permission public/default/d", "the newest, however many it has"
    assert asked(c) == "resolve public/default/c"


def test_forced_tiers_are_part_of_the_name(calls: Calls) -> None:
    load(Relations(_clients_of), "", "orders$tiers=broker")
    assert calls == ["take public/default/orders broker"]


def by_format(config: str | None, /, **options: str) -> TopicView:
    return Relations(_clients_of).load_format(config, LoadFormat("pulsar", options))


def test_a_format_reads_the_topic_that_its_option_names(calls: Calls) -> None:
    view = by_format(None, TOPIC="a/b/orders$compacted", tiers="broker")
    assert calls == ["take a/b/orders$compacted broker"]
    assert view.namespace == "a/b"
    assert "`pulsar`.`a/b`.`orders$compacted$" in view.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, 'format\\("pulsar"\\) needs a topic'),
        ({"topic": ""}, 'format\\("pulsar"\\) needs a topic'),
        ({"topic": "a/b"}, "is not a topic name"),
        ({"topic": "a/b/c", "subscription": "s"}, "a query has no option subscription"),
        ({"topic": "a/b/c", "config": "evil.toml"}, "cannot be chosen by an option"),
        ({"topic": "a/b/c", "CONFIG": "evil.toml"}, "cannot be chosen by an option"),
    ],
)
def test_options_of_a_format(options: dict[str, str], message: str, calls: Calls) -> None:
    for config in (None, "lake.toml"):
        with pytest.raises(ConfigurationError, match=message) as caught:
            by_format(config, **options)
        assert caught.value.hint
    assert calls == []


def test_a_format_may_repeat_the_settings_of_its_catalog(calls: Calls, tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text("")
    by_format(str(tmp_path / "lake.toml"), topic="a/b/c", config=str(tmp_path / "lake.toml"))
    assert calls == ["take a/b/c None"]
    with pytest.raises(ConfigurationError, match="cannot be chosen by an option"):
        by_format(None, topic="a/b/c", config=str(tmp_path / "lake.toml"))


@pytest.mark.parametrize("namespace", ["nope", "a/b/c", "/x", "x/"])
def test_a_namespace_has_two_parts(namespace: str, calls: Calls) -> None:
    with pytest.raises(NotFoundError):
        load(Relations(_clients_of), namespace, "orders")
    assert calls == []


@pytest.mark.parametrize(
    ("retains", "condition"),
    [(True, ""), (False, " WHERE __key IS NOT NULL OR __error IS NOT NULL")],
)
def test_rows_whose_key_cannot_be_told_stay_in_a_compacted_view(
    retains: bool, condition: str
) -> None:
    """Each alone, and by the same scan as all others."""
    text = compacted_text("SELECT 1", SNAPSHOT.columns, retains)
    assert text.count("SELECT 1") == 1
    assert f" FROM (SELECT 1){condition}) WHERE " in text
    assert text.endswith(" = 1 AND (__key IS NULL OR __tombstone IS NOT TRUE)")
