"""BookKeeper to decoded Arrow in one process, against clients that go through the broker."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from functools import partial

import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader
from benchmarks.contenders.source import arrow_batches
from benchmarks.data.topics import AVRO, JSON, UNBATCHED, Published, TopicSpec
from benchmarks.measure import Contender, Result, Target, at_least, paired, take_turns
from offloader.config import Config

__all__ = ["CASES"]

OURS, PYTHON, JAVA = "BookKeeper to Arrow", "pulsar-client, not decoded", "Java client, decoded"


def _run(
    spec: TopicSpec, over_python: Target, over_java: Target | None, bench: Bench
) -> list[Result]:
    topic, world = bench.topic(spec), bench.world
    config = world.config("none")
    answer = (topic.rows, topic.sum_of_ids)
    cents = () if over_java is None else (topic.total("cents"),)
    cpu: list[float] = []
    contenders = {
        OURS: Contender(
            lambda: _timed(cpu, partial(_arrow, config, topic, bool(cents))), answer + cents
        ),
        PYTHON: Contender(
            lambda: python_reader(world.client, topic), (topic.rows, topic.payload_bytes)
        ),
    }
    if over_java is not None:
        contenders[JAVA] = Contender(lambda: world.java.read(topic), answer + cents)
    seconds = take_turns(contenders, bench.repeats)
    rate = [
        bench.result(name, "rows/s", [topic.rows / time for time in taken])
        for name, taken in seconds.items()
    ]
    results = [
        *rate,
        bench.result(
            f"{OURS}: a CPU second", "rows/s", [topic.rows / one for one in cpu[-bench.repeats :]]
        ),
        bench.result(
            "faster than pulsar-client",
            "x",
            paired(seconds[PYTHON], seconds[OURS], operator.truediv),
            over_python,
        ),
    ]
    if over_java is not None:
        ratio = paired(seconds[JAVA], seconds[OURS], operator.truediv)
        results.append(bench.result("faster than the Java client", "x", ratio, over_java))
    return results


def _timed(cpu: list[float], work: Callable[[], object]) -> object:
    begun = time.process_time()
    answer = work()
    cpu.append(time.process_time() - begun)
    return answer


def _arrow(config: Config, topic: Published, with_cents: bool) -> tuple[int, ...]:
    """Decode every column of every row: (rows, sum of ids, sum of cents)."""
    rows = ids = cents = 0
    for batch in arrow_batches(config, topic):
        rows += batch.num_rows
        ids += pc.sum(batch["id"]).as_py()
        cents += pc.sum(batch["cents"]).as_py() if with_cents else 0
    return (rows, ids, cents) if with_cents else (rows, ids)


def _case(spec: TopicSpec, over_python: Target, over_java: Target | None = None) -> Case:
    about = f"BookKeeper to Arrow, one process, topic {spec.name}, beside clients"
    run = partial(_run, spec, over_python, over_java)
    return Case(f"reader_{spec.name}", about, run, (spec,))


CASES = (
    _case(JSON, at_least(6), at_least(3)),
    _case(AVRO, at_least(9), at_least(6)),
    _case(UNBATCHED, at_least(20)),
)
