"""The contract: each topic of the corpus, read from each tier, gives what was published."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.model import Tier, Topic
from reader.model.columns import METADATA_NAMES
from reader.plan.plan import plan_snapshot
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from reader.sources.rows import RowFormat
from reader.sources.split_reader import read_splits
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message
from tests.contract.corpus import CORPUS, Case, publish_case

Row = dict[str, Any]
Key = tuple[int, int, int, int]

READ_ORDER = (Tier.BOOKKEEPER, Tier.BROKER, Tier.PARQUET)
assert {*READ_ORDER, Tier.TIERED} == set(Tier)
"""Parquet last: it needs the topic offloaded, and the other two are read before that.

What Pulsar's own tiered storage has taken has topics of its own: `tests.contract.tiered`."""


@pytest.fixture(scope="module")
def published(
    cluster: Cluster, admin: Admin, lake_namespace: str
) -> Callable[[Case], tuple[str, list[Message]]]:
    """Publishes a case once: two sealed ledgers, messages alternating between them in order."""
    done: dict[str, tuple[str, list[Message]]] = {}

    def make(case: Case) -> tuple[str, list[Message]]:
        if case.name not in done:
            topic = f"{lake_namespace}/{case.name}"
            done[case.name] = topic, publish_case(cluster, admin, topic, case)
        return done[case.name]

    return make


def key_of(row: Row) -> Key:
    return row["__partition"], row["__ledgerId"], row["__entryId"], row["__batchIndex"]


def plain(value: Any) -> Any:
    """Spark's and Python's values in one form."""
    if isinstance(value, dict):
        return sorted((name, plain(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(value, float):
        return repr(value)
    return value


def rows_of(config: Config, topic: str, tier: str) -> dict[Key, Row]:
    """All rows of one tier through the reader alone, without Spark."""
    parsed = Topic.parse(topic)
    with AdminClient(config.pulsar) as client:
        snapshot = take_snapshot(Clients(config, admin=client), parsed, tiers=tier)
    batches: list[pa.RecordBatch] = []
    if tier == "parquet":
        table = TopicTable.open(open_storage(config.storage), parsed, snapshot.version)
        assert table is not None
        batches += table.batches(snapshot.columns.names)
    wanted = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    splits = plan_snapshot(snapshot, columns=snapshot.columns.names).splits
    assert all(split.tier == tier for split in splits)
    with Clients(config) as clients:
        batches += read_splits(clients, splits, wanted, fall_back=False)
    return keyed([row for batch in batches for row in batch.to_pylist()])


def keyed(rows: list[Row]) -> dict[Key, Row]:
    found = {}
    for row in rows:
        flat = {name: plain(value) for name, value in row.items()}
        assert key_of(flat) not in found, "a row came twice"
        found[key_of(flat)] = flat
    return found


def expected_rows(case: Case, topic: str, sent: list[Message]) -> dict[Key, Row]:
    found = {}
    for message in sent:
        assert message.message_id is not None
        ledger, entry, partition, batch = message.message_id
        row = {
            **case.row(message),
            "__topic": Topic.parse(topic).full_name,
            "__partition": partition,
            "__ledgerId": ledger,
            "__entryId": entry,
            "__batchIndex": batch,
            "__key": message.key,
            "__orderingKey": message.ordering_key.encode() if message.ordering_key else None,
            "__messageProperties": list(message.properties.items()),
            "__eventTime": message.event_time * 1000 if message.event_time else None,
            "__producerName": f"of {case.name}",
            "__rescued": None,
            "__error": None,
        }
        found[partition, ledger, entry, batch] = {k: plain(v) for k, v in row.items()}
    return found


@pytest.fixture(scope="module")
def offloaded(
    offload: Callable[[str], None],
) -> Callable[[str], None]:
    done: set[str] = set()

    def once(topic: str) -> None:
        if topic not in done:
            offload(topic)
            done.add(topic)

    return once


@pytest.mark.parametrize("tier", READ_ORDER)
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_each_tier_gives_what_was_published(
    case: Case,
    tier: str,
    published: Callable[[Case], tuple[str, list[Message]]],
    offloaded: Callable[[str], None],
    lake_config: Config,
) -> None:
    topic, sent = published(case)
    if tier == "parquet":
        offloaded(topic)
    rows = rows_of(lake_config, topic, tier)
    expected = expected_rows(case, topic, sent)
    assert rows.keys() == expected.keys()
    for key, row in expected.items():
        assert {name: rows[key][name] for name in row} == row, key


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_the_tiers_agree_in_every_column(
    case: Case,
    published: Callable[[Case], tuple[str, list[Message]]],
    offloaded: Callable[[str], None],
    lake_config: Config,
) -> None:
    topic, _ = published(case)
    offloaded(topic)
    direct = rows_of(lake_config, topic, "bookkeeper")
    assert rows_of(lake_config, topic, "parquet") == direct
    assert rows_of(lake_config, topic, "broker") == direct
    some = next(iter(direct.values()))
    assert [name for name in some if name in METADATA_NAMES] == list(METADATA_NAMES)
    assert all(row["__index"] is not None for row in direct.values())


@pytest.mark.parametrize("tier", [*READ_ORDER, None])
@pytest.mark.parametrize("name", ["avro-orders", "avro-partitioned", "json-orders", "avro-exact"])
def test_spark_gives_the_same_rows(
    name: str,
    tier: str | None,
    published: Callable[[Case], tuple[str, list[Message]]],
    offloaded: Callable[[str], None],
    lake_config: Config,
    lake: PulsarLake,
) -> None:
    topic, _ = published(next(case for case in CORPUS if case.name == name))
    offloaded(topic)
    rows = keyed(lake.table(topic, tiers=tier).toArrow().to_pylist())
    expected = rows_of(lake_config, topic, tier or "parquet")
    assert rows == expected
