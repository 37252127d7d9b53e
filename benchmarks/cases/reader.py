"""Without Spark, in one thread: bookies to Arrow columns, against a plain `pulsar-client` loop."""

from __future__ import annotations

import json
from statistics import median

import pulsar
import pyarrow as pa

from benchmarks.bench import Bench, Result, take_turns
from reader.admin import AdminClient
from reader.model import Topic
from reader.read import read_split
from reader.rows import RowFormat
from reader.snapshot import take_snapshot
from reader.splits import plan_splits
from tests.cluster.publish import quiet_client

__all__ = ["NAME", "run"]

NAME = "Reader without Spark"


def run(bench: Bench) -> list[Result]:
    contenders = {
        "bookkeeper, all columns": lambda: _columns(bench),
        "bookkeeper, two columns": lambda: _columns(bench, "cents", "user"),
        "pulsar-client, json.loads": lambda: _loop(bench),
    }
    seconds = take_turns(NAME, contenders, bench.repeats)
    slowest = max(median(times) for times in seconds.values())
    rows = []
    results = []
    for name, times in seconds.items():
        typical = median(times)
        rows.append(
            [
                name,
                f"{typical:.2f}",
                f"{min(times):.2f} to {max(times):.2f}",
                f"{bench.rows / typical:,.0f}",
                f"{slowest / typical:.1f} x",
            ]
        )
        results.append(Result.of(NAME, name, "s", times))
        rates = [bench.rows / time for time in times]
        results.append(Result.of(NAME, f"{name}: rate", "rows/s", rates))
    header = ["one thread", "seconds", "min to max", "rows/s", "faster"]
    bench.screen.table(header, rows)
    return results


def _columns(bench: Bench, *names: str) -> int:
    """Read the whole topic from the bookies; the number of rows."""
    config = bench.lake.config
    topic = Topic.parse(bench.stage.topic)
    with AdminClient(config.pulsar) as admin:
        snapshot = take_snapshot(config, admin, topic, tiers="bookkeeper")
    wanted = [snapshot.columns.field(name) for name in names or snapshot.columns.names]
    rows = RowFormat(snapshot.fields, snapshot.schemas, pa.schema(wanted))
    count = 0
    for split in plan_splits(snapshot, columns=rows.columns.names):
        count += sum(batch.num_rows for batch in read_split(config, split, rows))
    return count


def _loop(bench: Bench) -> int:
    """What one writes without this project: a reader a partition, a dict a message."""
    count = 0
    with quiet_client(bench.stage.cluster.service_url) as client:
        for partition in bench.stage.admin.partitions(bench.stage.topic):
            reader = client.create_reader(
                partition, pulsar.MessageId.earliest, receiver_queue_size=10_000
            )
            while reader.has_message_available():
                event = json.loads(reader.read_next(10_000).data())
                count += 1 if "id" in event else 0
            reader.close()
    return count
