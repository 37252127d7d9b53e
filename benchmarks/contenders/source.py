"""The product's reader without Spark: a topic's rows as Arrow, in this process."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.data.topics import Published
from offloader.config import Config
from reader.clients import Clients
from reader.model import Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat


def arrow_batches(
    config: Config, topic: Published, *names: str, tier: str = "bookkeeper"
) -> Iterator[pa.RecordBatch]:
    """All rows of a topic from one tier, ledger after ledger; all columns, or those named."""
    with Clients(config) as clients:
        snapshot = take_snapshot(clients, Topic.parse(topic.name), tiers=tier)
    columns = snapshot.columns
    wanted = pa.schema([columns.field(name) for name in names]) if names else columns
    rows = RowFormat(snapshot.fields, snapshot.schemas, wanted)
    splits = plan_snapshot(snapshot, columns=rows.columns.names).splits
    with Clients(config) as clients:
        yield from read_rows(clients, SplitsRead(splits), rows)


def values_given(config: Config, topic: Published, tier: str) -> Counter[str]:
    """In how many rows each column has a value when they are read from the tier."""
    given: Counter[str] = Counter()
    for batch in arrow_batches(config, topic, tier=tier):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            given[name] += len(column) - column.null_count
    return given


@dataclass(frozen=True, slots=True)
class OnePercent:
    """Publish times (µs, both inclusive) around the middle that one row in a hundred has.

    rows, ids: how many they really are, and the sum of their ids; first, last: of all rows.
    """

    low: int
    high: int
    rows: int
    ids: int
    first: int
    last: int

    @property
    def where(self) -> str:
        return (
            f"__publishTime BETWEEN timestamp_micros({self.low}) AND timestamp_micros({self.high})"
        )


def one_percent(config: Config, topic: Published) -> OnePercent:
    table = pa.Table.from_batches(arrow_batches(config, topic, "id", "__publishTime"))
    times = np.asarray(table["__publishTime"].cast(pa.timestamp("us")).cast(pa.int64()))
    ids = np.asarray(table["id"])
    low, high = np.percentile(times, [49.5, 50.5], method="nearest")
    inside = (times >= low) & (times <= high)
    return OnePercent(
        int(low),
        int(high),
        int(inside.sum()),
        int(ids[inside].sum()),
        int(times.min()),
        int(times.max()),
    )
