"""A backlog of sealed ledgers of many topics, drained beside the bookies on the same machine.

The offloader is a process with Spark started, which has offloaded a small topic before. What is
drained are whole ledgers with messages of 512 B, half of each random, 100 to a batch, LZ4.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import _pulsar
import pulsar
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.measure import BrokenCaseError, Result, at_least
from benchmarks.offload_process import OffloadProcess
from offloader.config import Config, load_config
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable

_RATE = 70_000  # messages/s
_PAYLOAD = 36.0  # MB/s
_BYTES = 512
_DIGITS = 10
_PRODUCERS = 8
_BATCH = 100
_NAMESPACE = "public/drain"
_FIRST = "public/default/drain-first"


def _run(bench: Bench) -> list[Result]:
    topics, ledgers, messages = (6, 2, 1_000) if bench.quick else (100, 2, 30_000)
    world = bench.world
    world.admin.create_namespace(_NAMESPACE)
    world.admin.set_retention(_NAMESPACE, -1, -1)
    names = [f"{_NAMESPACE}/t-{number}" for number in range(topics)]
    begun = time.perf_counter()
    _publish(bench, _FIRST, 1, messages)
    with ThreadPoolExecutor(_PRODUCERS) as pool:  # to seal a ledger is mostly waiting
        list(pool.map(lambda name: _publish(bench, name, ledgers, messages), names))
    rows = topics * ledgers * messages
    bench.say(
        f"{topics} topics of {ledgers} ledgers, {rows:,} messages, published in "
        f"{time.perf_counter() - begun:.0f} s: {rows / _RATE:.0f} s of the full rate"
    )
    servers = world.servers()
    settings = world.settings("drain")
    with OffloadProcess(world.directory / "offloader.log") as offloader:
        offloader.turn(world.settings("drain-first"), _FIRST)
        before, theirs = offloader.cpu(), servers.servers_cpu()
        begun = time.perf_counter()
        jobs = offloader.once(settings, f"{_NAMESPACE}/t-*")["jobs"]
        seconds = time.perf_counter() - begun
        cpu, theirs = offloader.cpu() - before, servers.servers_cpu() - theirs
    _check(load_config(settings), names, ledgers * messages)
    million = rows / 1e6
    megabytes = rows * _BYTES / 1e6
    of_ours = (
        ("the offloader", cpu.own),
        ("Spark's JVM", cpu.jvm),
        ("Python workers", cpu.workers),
    )
    return [
        bench.result("drained", "messages/s", [rows / seconds], at_least(_RATE)),
        bench.result("drained, payload", "MB/s", [megabytes / seconds], at_least(_PAYLOAD)),
        bench.result("from the first request to the last release", "s", [seconds]),
        bench.result("Spark jobs", "jobs", [float(jobs)]),
        bench.result("CPU of ours, a million rows", "s", [cpu.all / million]),
        *(bench.result(f"of that {name}", "s", [one / million]) for name, one in of_ours),
        bench.result("CPU of the servers, a million rows", "s", [theirs / million]),
    ]


def _publish(bench: Bench, name: str, ledgers: int, messages: int) -> None:
    """Messages that begin with their number."""
    world = bench.world
    world.admin.create_topic(name)
    producer = world.client.create_producer(
        name,
        batching_max_messages=_BATCH,
        batching_max_publish_delay_ms=60_000,
        compression_type=pulsar.CompressionType.LZ4,
        block_if_queue_full=True,
        max_pending_messages=20_000,
        send_timeout_millis=0,
    )
    # Straight to the extension, as ``benchmarks.data.topics`` does.
    send, build = producer._producer.send_async, _pulsar.MessageBuilder
    half = _BYTES // 2
    tails = [os.urandom(half) + b"x" * (_BYTES - half - _DIGITS) for _ in range(97)]
    numbers = count()
    for _ in range(ledgers):
        for number in islice(numbers, messages):
            builder = build()
            builder.content(b"%0*d" % (_DIGITS, number) + tails[number % len(tails)])
            send(builder.build(), None)
        producer.flush()
        world.admin.seal(name)
    producer.close()


def _check(config: Config, names: list[str], messages: int) -> None:
    """Each table has each message once."""
    for name in names:
        table = TopicTable.open(open_storage(config.storage), Topic.parse(name))
        found = table.dataset().to_table(["value"])["value"] if table else pa.array([], pa.binary())
        numbers = pc.cast(pc.cast(pc.binary_slice(found, 0, _DIGITS), pa.string()), pa.int64())
        if len(numbers) != messages or len(pc.unique(numbers)) != messages:
            raise BrokenCaseError(f"the table of {name} has {len(numbers)} rows")
        if (pc.min(numbers).as_py(), pc.max(numbers).as_py()) != (0, messages - 1):
            raise BrokenCaseError(f"the table of {name} has other rows")


CASES = (Case("drain", "a backlog of ledgers of many topics, beside the bookies", _run),)
