"""Thousands of topics: what an idle round costs, and how fast hundreds of small ones are offloaded.

*Idle* is simulated: admin answers come at once, no topic has a table, nothing is due. The clock is
simulated, so that an hour of rounds, with the observations that are spread over it, takes seconds.
*Backlog* is real: each topic has one sealed ledger of a few messages, and everything is due.
"""

from __future__ import annotations

import time
from statistics import mean

from benchmarks.case import Bench, Case
from benchmarks.data.simulated import Many, SimulatedAdmin
from benchmarks.measure import BrokenCaseError, Result, at_most
from benchmarks.offloading import offloader, running
from offloader.config import Config, load_config
from offloader.service.daemon import Daemon
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.publish import publish

__all__ = ["CASES"]

_NAMESPACE = "public/many"
_MESSAGES = 50


def _idle(bench: Bench) -> list[Result]:
    many = Many(
        namespaces=5 if bench.quick else 50,
        topics=150 if bench.quick else 3_000,
        ledgers=5_000 if bench.quick else 100_000,
        closed_at=int(time.time() * 1000),
        subscription="pulsar-lake",
    )
    step = 10 if bench.quick else 5  # minutes between rounds of the hour
    clock = _Clock()
    with SimulatedAdmin(many) as simulated:
        config = load_config(
            {
                "pulsar": {"admin_url": simulated.url},
                "storage": {"uri": str(bench.world.directory / "tables" / "many-idle")},
                "offload": {"max_age": "1d"},
            }
        )
        with offloader(bench.world, config, ["simulated/*/*"], clock=clock) as daemon:
            begun = time.perf_counter()
            with running(daemon):
                clock.wait_idle(daemon, many.topics)
                first = time.perf_counter() - begun
                observed = simulated.requests
                rounds, asked = [], []
                for _ in range(bench.repeats):
                    before, begun = simulated.requests, time.perf_counter()
                    daemon.scheduler.round()
                    rounds.append(time.perf_counter() - begun)
                    asked.append(float(simulated.requests - before))
                minute = []
                for _ in range(60 // step):
                    before = simulated.requests
                    clock.ahead += 60 * step
                    while simulated.requests == before:
                        time.sleep(0.01)
                    clock.wait_idle(daemon, many.topics)
                    minute.append((simulated.requests - before) / step)
    bench.say(f"{many.topics:,} topics, {many.ledgers:,} ledgers, {many.namespaces} namespaces")
    return [
        bench.result("an idle round", "s", rounds, at_most(5)),
        bench.result("an idle round: admin requests", "requests", asked, at_most(200)),
        bench.result("observations included, a minute: admin requests", "requests", [mean(minute)]),
        bench.result("the first observation of each topic, in all", "s", [first]),
        bench.result("the same: admin requests", "requests", [float(observed)]),
    ]


class _Clock:
    """The time, plus ``ahead`` seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead

    def wait_idle(self, daemon: Daemon, topics: int) -> None:
        """Until every topic has been observed and none is due."""
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            states = daemon.scheduler.states()
            if len(states) == topics and not any(
                one.running or one.share is None or (one.next_at or 0) <= self() for one in states
            ):
                return
            time.sleep(0.3)  # states() of thousands of topics takes time
        raise BrokenCaseError("the scheduler does not become idle")


def _backlog(bench: Bench) -> list[Result]:
    count = 12 if bench.quick else 200
    world = bench.world
    world.admin.create_namespace(_NAMESPACE)
    topics = [Topic.parse(f"{_NAMESPACE}/t-{n}") for n in range(count)]
    begun = time.perf_counter()
    for topic in topics:
        world.admin.create_topic(topic.full_name)
        values = [f"{topic}-{n}".encode() for n in range(_MESSAGES)]
        publish(world.client, topic.full_name, values, batch=10)
        world.admin.seal(topic.full_name)
    bench.say(f"{count} topics of {_MESSAGES} messages, published in {_since(begun):.0f} s")
    bench.say(f"Spark runs as process {world.jvm}")  # its start is not measured
    seconds, jobs = [], []
    for number in range(1 if bench.quick else 2):  # the first warms Spark's workers
        config = world.config(f"many-{number}")
        with offloader(world, config, [f"{_NAMESPACE}/*"], now=True) as daemon:
            begun = time.perf_counter()
            failures = daemon.run_once()
            seconds.append(_since(begun))
            jobs.append(float(daemon.jobs))
        if failures:
            raise BrokenCaseError(failures[0])
        _check(config, topics)
    taken = seconds[-1]
    return [
        bench.result("all committed after", "s", [taken]),
        bench.result("topics a second", "topics/s", [count / taken]),
        bench.result("Spark jobs", "jobs", [jobs[-1]], at_most(count / 4)),
    ]


def _check(config: Config, topics: list[Topic]) -> None:
    for topic in topics:
        table = TopicTable.open(open_storage(config.storage), topic)
        rows = sum(one.rows for one in table.ledgers()) if table else 0
        if rows != _MESSAGES:
            raise BrokenCaseError(f"{topic} has {rows} rows instead of {_MESSAGES}")


def _since(begun: float) -> float:
    return time.perf_counter() - begun


CASES = (
    Case("many_topics_idle", "rounds over 3,000 topics with nothing due, a simulated admin", _idle),
    Case("many_topics_backlog", "hundreds of small topics, all due, on the real cluster", _backlog),
)
