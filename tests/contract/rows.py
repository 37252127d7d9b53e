"""The rows of a topic by their keys, as one tier or one query gives them without Spark."""

import datetime as dt
from typing import Any

import pyarrow as pa

from offloader.config import Config
from reader import open_topic
from reader.clients import Clients
from reader.model import Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from reader.table import TopicTable

Row = dict[str, Any]
Key = tuple[int, int, int, int]
"""Partition, ledger, entry, index in the batch."""

KEY_COLUMNS = ("__partition", "__ledgerId", "__entryId", "__batchIndex")


def key_of(row: Row) -> Key:
    partition, ledger, entry, batch = (row[name] for name in KEY_COLUMNS)
    return partition, ledger, entry, batch


def plain(value: Any) -> Any:
    """Return Spark's and Python's values in one form."""
    if isinstance(value, dict):
        return sorted((name, plain(member)) for name, member in value.items())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    if isinstance(value, float):
        return repr(value)
    return value


def keyed(rows: list[Row]) -> dict[Key, Row]:
    """Return plain rows by their keys, each of which comes once."""
    found = {}
    for row in rows:
        flat = {name: plain(value) for name, value in row.items()}
        assert key_of(flat) not in found, "a row came twice"
        found[key_of(flat)] = flat
    return found


def tier_table(clients: Clients, topic: str, tier: str) -> pa.Table:
    """Return all rows of one tier through the reader alone."""
    parsed = Topic.parse(topic)
    snapshot = take_snapshot(clients, parsed, tiers=tier)
    batches: list[pa.RecordBatch] = []
    if tier == "parquet":
        table = TopicTable.open(clients.storage, parsed, snapshot.version)
        assert table is not None
        batches += table.batches(snapshot.columns.names)
    wanted = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    splits = plan_snapshot(snapshot, columns=snapshot.columns.names).splits
    assert all(split.tier == tier for split in splits)
    batches += read_rows(clients, SplitsRead(tuple(splits), fall_back=False), wanted)
    return pa.Table.from_batches(batches, None if batches else snapshot.columns)


def rows_of(config: Config, topic: str, tier: str) -> dict[Key, Row]:
    """Return all rows of one tier by their keys."""
    with Clients(config) as clients:
        return keyed(tier_table(clients, topic, tier).to_pylist())


def query_rows(config: Config, topic: str) -> dict[Key, Row]:
    """Return what a query sees that forces no tier."""
    with open_topic(config, topic) as opened:
        return keyed(opened.scan().read_all().to_pylist())
