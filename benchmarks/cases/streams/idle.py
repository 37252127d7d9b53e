"""A stream where nothing comes: one look, and what a hundred partitions cost.

Looks are Spark's own numbers, of triggers so far apart that each asks the brokers. Requests are
counted in this process, by the clients that the planner has as well, asked as often as Spark does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.case import Bench, Case
from benchmarks.cases.streams.batches import wait_until_idle
from benchmarks.contenders.streams import progress, streaming
from benchmarks.measure import BrokenCaseError, Result, at_most
from benchmarks.servers import NAMESPACE
from reader.clients import Clients
from reader.model import Partition, Position
from reader.pulsar import AdminClient
from reader.pulsar.http import AdminHttp
from reader.stream import StreamOptions, Tails, TopicStream
from testbed.publish import publish
from testbed.usage import descendants, process_seconds

__all__ = ["CASES"]

_EACH_LOOK, _EACH_PROGRESS = "600 milliseconds", "spark.sql.streaming.noDataProgressEventInterval"
_SETTLED = 8.0
_POLL = 0.01  # spark.sql.streaming.pollingDelay


def _run(bench: Bench) -> list[Result]:
    looks, seconds = (5, 3.0) if bench.quick else (20, 10.0)
    results = []
    for count in (1, 100):
        topic = f"{NAMESPACE}/stream-idle-{count}"
        bench.world.admin.create_topic(topic, partitions=count)
        publish(bench.world.client, topic, [b"value"] * count)
        frame = (
            bench.world.bare.spark.readStream.format("pulsar")
            .option("topic", topic)
            .option("startingPosition", "latest")
            .load()
        )
        few = "1 partition" if count == 1 else f"{count} partitions"
        most = at_most(10) if count == 1 else None
        taken = _looks(bench, frame, looks)
        results.append(bench.result(f"a look, {few}", "ms", taken, most))
        alone = _shares(bench, seconds)
        with streaming(frame.writeStream.format("noop")) as query:
            wait_until_idle(query)
            time.sleep(_SETTLED)
            beside = _shares(bench, seconds)
        results += [
            bench.result(f"CPU, {what}, {few}", "%", [100 * (with_it - without)])
            for what, with_it, without in zip(
                ("Spark's JVM", "planner"), beside, alone, strict=True
            )
        ]
        results += _requests(bench, topic, few, seconds)
    return results


def _looks(bench: Bench, frame: Any, count: int) -> list[float]:
    spark = bench.world.bare.spark
    spark.conf.set(_EACH_PROGRESS, "0")
    try:
        writer = frame.writeStream.format("noop").trigger(processingTime=_EACH_LOOK)
        with streaming(writer) as query:
            while len(progress(query)) < count + 3:
                if not query.isActive:
                    raise BrokenCaseError(str(query.exception()))
                time.sleep(0.5)
            found = progress(query)[3:]
    finally:
        spark.conf.unset(_EACH_PROGRESS)
    return [float(one["durationMs"]["latestOffset"]) for one in found]


def _shares(bench: Bench, seconds: float) -> tuple[float, float]:
    """Of a core: what Spark's JVM takes, and its children, of which one is the planner."""
    jvm = bench.world.jvm
    children = descendants(jvm)
    before, begun = _spent(jvm, *children), time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - begun
    # Workers that nobody needed for a while may have ended.
    after = _spent(jvm, *(one for one in children if Path(f"/proc/{one}").exists()))
    taken = {one: (after[one] - before[one]) / passed for one in after}
    return taken.pop(jvm), sum(taken.values())


def _spent(*pids: int) -> dict[int, float]:
    return {one: process_seconds(one) for one in pids}


# -- requests --------------------------------------------------------------------------------------


class _CountingHttp(AdminHttp):
    requests = 0

    def request(self, method: str, path: str, **kwargs: Any) -> Any:
        self.requests += 1
        return super().request(method, path, **kwargs)


class _CountingClients(Clients):
    """What the brokers are asked: how many times, and requests in all."""

    asked = requests = 0

    @contextmanager
    def broker(self) -> Iterator[Any]:
        with super().broker() as client:
            yield _Broker(self, client)


class _Broker:
    def __init__(self, counts: _CountingClients, client: Any) -> None:
        self._counts, self._client = counts, client

    def last_positions(self, partitions: Sequence[Partition]) -> dict[Partition, Position]:
        self._counts.asked += 1
        self._counts.requests += len(partitions)
        found: dict[Partition, Position] = self._client.last_positions(partitions)
        return found


def _requests(bench: Bench, topic: str, few: str, seconds: float) -> list[Result]:
    config = bench.world.config("none")
    options = StreamOptions.of({"topic": topic, "startingPosition": "latest"})
    with ExitStack() as stack:
        http = stack.enter_context(_CountingHttp(config.pulsar))
        admin = AdminClient(config.pulsar, http=http)
        clients = stack.enter_context(_CountingClients(config, admin=admin))
        stream = TopicStream(clients, options, stack.enter_context(Tails(clients)), warn=print)
        start, _ = stream.bounds()

        def poll() -> tuple[int, int, int]:
            _, latest = stream.next(start)
            stream.lag(start, latest)
            time.sleep(_POLL)
            return clients.asked, clients.requests, http.requests

        settled = time.monotonic() + _SETTLED
        while time.monotonic() < settled:
            before = poll()
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds:
            after = poll()
    whats = ("looks that ask the brokers", "requests to the brokers", "admin requests")
    return [
        bench.result(f"{what}, {few}", "1/s", [(then - first) / passed])
        for what, first, then in zip(whats, before, after, strict=True)
    ]


CASES = (Case("stream_idle", "a stream where nothing comes: a look, CPU, requests", _run),)
