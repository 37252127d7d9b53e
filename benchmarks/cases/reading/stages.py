"""CPU time per row of each stage of the reader and the offloader, one after the other.

The same steps as ``reader.sources.entry_rows`` and ``offloader.convert.pack_task`` take, without
their threads and without Spark, so that each can be measured by itself. Not compared with anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import pyarrow as pa
import pyarrow.fs as pafs

from benchmarks.case import Bench, Case
from benchmarks.data.topics import AVRO, JSON, UNBATCHED, Published, TopicSpec
from benchmarks.measure import BrokenCaseError, Result
from offloader.config import Config
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import write_file
from reader.clients import Clients
from reader.model import Position, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.snapshot import take_snapshot
from reader.sources.lookback import Lookback
from reader.sources.rows import RowBuilder, RowFormat
from reader.sources.stored import StoredEntries

__all__ = ["CASES"]

FETCH, DECODE = "fetch", "headers, decompress, walk"
PAYLOADS, PARQUET = "payloads, rows", "Parquet, statistics"

T = TypeVar("T")


def _run(spec: TopicSpec, bench: Bench) -> list[Result]:
    topic, config = bench.topic(spec), bench.world.config("none")
    directory = str(bench.world.directory / "stages")
    runs = [_spent(config, topic, directory) for _ in range(1 + bench.repeats)][1:]
    return [
        bench.result(stage, "CPU ns/row", [run[stage] / topic.rows * 1e9 for run in runs])
        for stage in (FETCH, DECODE, PAYLOADS, PARQUET)
    ]


def _spent(config: Config, topic: Published, directory: str) -> dict[str, float]:
    """CPU seconds by stage."""
    spent = dict.fromkeys((FETCH, DECODE, PAYLOADS, PARQUET), 0.0)
    with Clients(config) as clients:
        snapshot = take_snapshot(clients, Topic.parse(topic.name), tiers="bookkeeper")
    rows = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    columns = statistics_columns(snapshot.columns, ())
    found = 0
    for split in plan_snapshot(snapshot).splits:
        start = Position(split.ledger_id, split.first_entry)
        builder = RowBuilder(split.partition, rows)
        batches: list[tuple[int, pa.RecordBatch]] = []
        with Clients(config) as clients:
            entries = StoredEntries.of_splits(clients, [split])
            lookback = Lookback(entries, split.partition, end=start, first=start)
            decoder = builder.entry_decoder(lookback, decryption=None)
            blocks = entries.read(split.ledger_id, split.first_entry, split.last_entry)
            for block in _timed(blocks, FETCH, spent):
                for messages in _timed(decoder.decode(block), DECODE, spent):
                    begun = time.process_time()
                    batches += [(split.ledger_id, one) for one in builder.build(messages)]
                    spent[PAYLOADS] += time.process_time() - begun
        begun = time.process_time()
        local = pafs.LocalFileSystem()
        file = write_file(
            local, directory, f"{split.ledger_id}.parquet", rows.columns, batches, columns
        )
        spent[PARQUET] += time.process_time() - begun
        assert file is not None
        local.delete_file(f"{directory}/{file.path}")
        found += file.rows
    if found != topic.rows:
        raise BrokenCaseError(f"{found} rows instead of {topic.rows}")
    return spent


def _timed(items: Iterator[T], stage: str, spent: dict[str, float]) -> Iterator[T]:
    """The same items; making each counts for the stage."""
    while True:
        begun = time.process_time()
        item = next(items, None)
        spent[stage] += time.process_time() - begun
        if item is None:
            return
        yield item


def _case(spec: TopicSpec) -> Case:
    about = f"CPU a row of each stage of reading and offloading topic {spec.name}"
    return Case(f"stages_{spec.name}", about, partial(_run, spec), (spec,))


CASES = tuple(_case(spec) for spec in (JSON, AVRO, UNBATCHED))
