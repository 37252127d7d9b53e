"""One per cent of the time range, cold and hot: bytes read, and time, against everything.

A file, and a ledger, holds about one per cent of the rows, as in a topic of some 10 GB with the
settings as they come. Bytes are what Spark's JVM reads from the files (log included), and what
the bookies send, counted by a proxy in front of each.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.contenders.queries import scanned, topic_table
from benchmarks.contenders.source import OnePercent, one_percent
from benchmarks.data.topics import LONG, Published
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, paired, take_turns
from testbed.proxy import TcpProxy
from testbed.usage import bytes_read

__all__ = ["CASES"]

ALL, PART = "everything", "1 % of the time"
_BYTES, _TIME = 0.03, 0.10


def _run(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(LONG)
    ledgers = len(world.admin.ledgers(topic.name)) - 1  # without the open one, which is empty
    split = world.stored_bytes(topic) * 5 // 4 // ledgers
    cold = world.offloaded(world.config("fine", offload={"split_bytes": split}), topic).spark
    hot = world.lake(world.config("learned")).spark
    range_ = one_percent(world.config("learned"), topic)  # learns the ledgers' ranges
    contenders = _contenders(cold, topic, range_, "cold") | _contenders(hot, topic, range_, "hot")
    seconds = take_turns(contenders, bench.repeats)
    with ExitStack() as stack:
        # One by one: proxies take time, so that they are not there while it is measured.
        proxies = [stack.enter_context(TcpProxy(b.address)) for b in world.cluster.bookies]
        bookies = {
            bookie.address: proxy.address
            for bookie, proxy in zip(world.cluster.bookies, proxies, strict=True)
        }
        counted = world.config("learned", pulsar={"bookies": bookies})
        through = world.lake(counted).spark
        read = _bytes(
            _contenders(cold, topic, range_, "cold"), lambda: bytes_read(world.jvm)
        ) | _bytes(
            _contenders(through, topic, range_, "hot"),
            lambda: sum(proxy.bytes_down for proxy in proxies),
        )
    results = [bench.result(name, "s", taken) for name, taken in seconds.items()]
    results += [
        bench.result(f"{name}: read", "MB", [one / 1e6 for one in taken])
        for name, taken in read.items()
    ]
    for state in ("cold", "hot"):
        for what, measured, most in (("bytes", read, _BYTES), ("time", seconds, _TIME)):
            ratio = paired(
                measured[f"{state}, {PART}"], measured[f"{state}, {ALL}"], operator.truediv
            )
            results.append(bench.result(f"{state}: share of the {what}", "x", ratio, at_most(most)))
    return results


def _contenders(
    spark: Any, topic: Published, range_: OnePercent, state: str
) -> dict[str, Contender]:
    text = f"SELECT * FROM {topic_table(topic)}"
    return {
        f"{state}, {ALL}": Contender(lambda: scanned(spark, text), (topic.rows, topic.sum_of_ids)),
        f"{state}, {PART}": Contender(
            lambda: scanned(spark, f"{text} WHERE {range_.where}"), (range_.rows, range_.ids)
        ),
    }


def _bytes(contenders: dict[str, Contender], count: Callable[[], int]) -> dict[str, list[float]]:
    # Twice is enough for what does not depend on the machine's load.
    found = take_turns(contenders, 2, clock=count)
    if not all(min(taken) > 0 for taken in found.values()):
        raise BrokenCaseError("a query read nothing where its bytes are counted")
    return found


_ABOUT = "1 % of the publish times, cold, and hot with learned publish times, against everything"
CASES = (Case("time_range", _ABOUT, _run, (LONG,)),)
