"""A thousand ledgers of fifty messages: what each of them costs beside its bytes."""

from __future__ import annotations

import operator
import time
from functools import partial

import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader
from benchmarks.contenders.queries import collected, topic_table
from benchmarks.contenders.source import arrow_batches
from benchmarks.data.layouts import ROLLING
from benchmarks.data.topics import FEW_LEDGERS, MANY_LEDGERS, Published
from benchmarks.measure import (
    Contender,
    Result,
    at_least,
    at_most,
    clocked_turns,
    paired,
)
from offloader.config import Config

__all__ = ["CASES"]

OURS, PYTHON = "BookKeeper to Arrow", "pulsar-client, not decoded"


def _run(bench: Bench) -> list[Result]:
    return [*_arrow(bench), *_queries(bench)]


def _arrow(bench: Bench) -> list[Result]:
    topic = bench.topic(MANY_LEDGERS)
    servers, config = bench.world.servers(ROLLING), bench.world.config("none", ROLLING)
    client = servers.client
    contenders = {
        OURS: Contender(lambda: _read(config, topic), (topic.rows, topic.sum_of_ids)),
        PYTHON: Contender(lambda: python_reader(client, topic), (topic.rows, topic.payload_bytes)),
    }
    clocks = [time.perf_counter, time.process_time, servers.servers_cpu]
    wall, own, of_servers = clocked_turns(contenders, bench.repeats, clocks)

    def a_ledger(seconds: list[float]) -> list[float]:
        return [one / topic.ledgers * 1e3 for one in seconds]

    faster = paired(wall[PYTHON], wall[OURS], operator.truediv)
    return [
        *(bench.result(name, "ms/ledger", a_ledger(taken)) for name, taken in wall.items()),
        bench.result("ours, CPU", "ms/ledger", a_ledger(own[OURS]), at_most(1)),
        *(
            bench.result(f"CPU of servers, {name}", "ms/ledger", a_ledger(taken))
            for name, taken in of_servers.items()
        ),
        bench.result("faster than pulsar-client", "x", faster, at_least(5)),
    ]


def _read(config: Config, topic: Published) -> tuple[int, int]:
    rows = ids = 0
    for batch in arrow_batches(config, topic):
        rows += batch.num_rows
        ids += pc.sum(batch["id"]).as_py()
    return rows, ids


def _queries(bench: Bench) -> list[Result]:
    """One SQL query over all rows, warm, against the same rows in a few ledgers."""
    contenders = {}
    for spec in (MANY_LEDGERS, FEW_LEDGERS):
        topic = bench.topic(spec)
        spark = bench.world.lake(bench.world.config("none", spec.layout)).spark
        query = f"SELECT count(*), sum(id), sum(cents) FROM {topic_table(topic)}"
        expected = [(topic.rows, topic.sum_of_ids, topic.total("cents"))]
        name = f"query over {topic.ledgers:,} ledgers"
        contenders[name] = Contender(partial(collected, spark, query), expected)
    clocks = [time.perf_counter, bench.world.cpu]
    wall, cpu = clocked_turns(contenders, bench.repeats, clocks)
    many, few = wall.values()
    return [
        *(bench.result(name, "s", taken) for name, taken in wall.items()),
        *(bench.result(f"{name}: CPU", "s", taken) for name, taken in cpu.items()),
        bench.result(
            f"query: slower than over {FEW_LEDGERS.ledgers} ledgers",
            "x",
            paired(many, few, operator.truediv),
            at_most(2),
        ),
    ]


CASES = (
    Case(
        "small_ledgers",
        "a thousand ledgers of fifty messages: to Arrow, and a hot query",
        _run,
        (MANY_LEDGERS, FEW_LEDGERS),
    ),
)
