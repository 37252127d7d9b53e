"""The size of the table against the topic's in BookKeeper."""

from __future__ import annotations

from benchmarks.case import Bench, Case
from benchmarks.data.topics import JSON
from benchmarks.measure import BrokenCaseError, Result, at_most
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

__all__ = ["CASES"]


def _run(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(JSON)
    config = world.config("cold")
    world.offloaded(config, topic)
    table = TopicTable.open(open_storage(config.storage), Topic.parse(topic.name))
    if table is None or table.dataset().count_rows() != topic.rows:
        raise BrokenCaseError("the table does not have the topic's rows")
    files, size = table.data_files()
    stored = world.stored_bytes(topic)
    bench.say(f"{files} files; payload {topic.payload_bytes / 1e6:,.1f} MB; one number, no repeats")
    return [
        bench.result("table", "MB", [size / 1e6]),
        bench.result("BookKeeper, LZ4, one replica", "MB", [stored / 1e6]),
        bench.result("share of BookKeeper's size", "x", [size / stored], at_most(0.5)),
    ]


CASES = (Case("table_size", "the table's files against the ledgers, LZ4 JSON", _run, (JSON,)),)
