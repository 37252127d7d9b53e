"""The entries of an open ledger: from the bookies, or from the broker's cache.

What docs/decisions/0005 rests on. Clients are kept, as a process of Spark's keeps them; the plan is
made before, as it is the same for both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.case import Bench, Case
from benchmarks.measure import Contender, Result, paired, take_turns
from benchmarks.servers import NAMESPACE
from reader.clients import Clients
from reader.model import Split, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.sources import RowFormat, read_rows
from testbed.publish import publish
from testbed.usage import process_seconds

_LENGTHS = (1, 30, 300, 3_000, 30_000)
_QUICK_LENGTHS = (1, 30)
_BYTES = 200
_TOGETHER = 20
"""Reads that one measurement takes together: some are as short as the clock's grain."""

BOOKIES, BROKER = "bookies", "broker"


def _run(bench: Bench) -> list[Result]:
    found: list[Result] = []
    for length in _QUICK_LENGTHS if bench.quick else _LENGTHS:
        found += _tail(bench, length)
    return found


def _tail(bench: Bench, length: int) -> list[Result]:
    cluster = bench.world.cluster
    topic = f"{NAMESPACE}/tail-{length}"
    bench.world.admin.create_topic(topic)
    publish(cluster.service_url, topic, (b"x" * _BYTES for _ in range(length)))
    times = 1 if length > 1_000 else _TOGETHER
    with Clients(bench.world.config("tails")) as clients:
        contenders = {}
        for name, tier in ((BOOKIES, "bookkeeper"), (BROKER, "broker")):
            snapshot = take_snapshot(clients, Topic.parse(topic), tiers=tier)
            rows = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
            splits = [replace(one, whole=False) for one in plan_snapshot(snapshot).splits]
            work = partial(_rows, clients, splits, rows, times)
            contenders[name] = Contender(work, length * times)
        took = take_turns(contenders, bench.repeats)
        processes = {
            "bookies": [one.pid for one in cluster.bookies],
            "broker": [cluster.broker.pid],
        }
        spent = {
            server: take_turns(
                contenders, bench.repeats, clock=partial(process_seconds, *pids), warm_ups=0
            )
            for server, pids in processes.items()
        }
    what = f"{length:,} entries"
    results = [
        bench.result(f"{what} from the {name}", "ms", [1e3 * one / times for one in took[name]])
        for name in contenders
    ]
    results += [
        bench.result(
            f"{what} from the {name}: CPU of the {server}",
            "ms",
            [1e3 * one / times for one in runs[name]],
        )
        for server, runs in spent.items()
        for name in contenders
    ]
    ratio = paired(took[BROKER], took[BOOKIES], lambda broker, bookies: broker / bookies)
    return [*results, bench.result(f"{what}: broker's time, of the bookies'", "x", ratio)]


def _rows(clients: Clients, splits: list[Split], rows: RowFormat, times: int) -> int:
    read = SplitsRead(tuple(splits))
    return sum(batch.num_rows for _ in range(times) for batch in read_rows(clients, read, rows))


CASES = (Case("open_tails", "open ledgers of 1 to 30,000 entries: bookies or broker", _run),)
