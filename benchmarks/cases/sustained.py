"""An offloader that keeps up, or not, with producers on the same machine, for some minutes.

The load to plan for is 70,000 messages and 36 MB a second over 3,000 topics. Servers, producers
and the offloader share the machine here, so only a share of it is offered. Ledgers are small and
end often, which is harder than what a real installation does: what is measured is how far behind
the offloader is, and that nothing is missing.
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.case import Bench, Case
from benchmarks.measure import BrokenCaseError, Result, at_least
from benchmarks.offloading import offloader, running
from offloader.config import Config
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.usage import cpu_seconds

__all__ = ["CASES"]

_FULL = 70_000
_BYTES = 512
_NAMESPACE = "public/sustained"


def _run(bench: Bench) -> list[Result]:
    share, count, seconds = (0.02, 6, 15) if bench.quick else (0.15, 100, 180)
    world = bench.world
    topics = [Topic.parse(f"{_NAMESPACE}/t-{number}") for number in range(count)]
    directory = world.directory / "sustained"
    with (
        ProcessCluster(
            2,
            ensemble=2,
            directory=directory,
            log_level="WARN",
            short_lived=False,
            max_entries_per_ledger=20 if bench.quick else 100,
        ) as cluster,
        Admin(cluster.admin_url) as admin,
    ):
        admin.create_namespace(_NAMESPACE)
        config = world.config(
            "sustained",
            pulsar={"service_url": cluster.service_url, "admin_url": cluster.admin_url},
            offload={"max_age": "10s", "interval": "2s", "topics": [f"{_NAMESPACE}/*"]},
        )
        _ = world.jvm  # Spark's start is not measured
        with (
            offloader(world, config, config.offload.topics) as daemon,
            running(daemon),
        ):
            cpu = cpu_seconds(world.jvm)
            published = _publish(cluster, count, share, seconds)
            cpu = cpu_seconds(world.jvm) - cpu
            begun = time.perf_counter()
            behind = published - _rows(config, topics)
            for topic in topics:
                admin.seal(topic.full_name)
            while (rows := _rows(config, topics)) < published:
                if time.perf_counter() - begun > 300:
                    raise BrokenCaseError(f"{rows} rows of {published} messages after 300 s")
                time.sleep(0.5)
            caught_up = time.perf_counter() - begun
        if rows != published:
            raise BrokenCaseError(f"{rows} rows of {published} messages")
    rate = published / seconds
    bench.say(f"{count} topics, {seconds} s, messages of {_BYTES} B; open ledgers count as behind")
    return [
        bench.result("published, and offloaded in the end", "messages", [float(published)]),
        bench.result("published", "messages/s", [rate]),
        bench.result("share of 70,000 messages/s", "x", [rate / _FULL]),
        bench.result(
            "share of them in tables when producers stop",
            "x",
            [1 - behind / published],
            at_least(0.5),
        ),
        bench.result("all in tables after that, ledgers sealed", "s", [caught_up]),
        bench.result("CPU of the offloader and Spark, of one core", "x", [cpu / seconds]),
    ]


def _publish(cluster: ProcessCluster, count: int, share: float, seconds: int) -> int:
    command = [sys.executable, "-m", "benchmarks.data.load", cluster.service_url, f"{_NAMESPACE}/t"]
    command += ["--count", str(count), "--rate", str(_FULL * share)]
    command += ["--seconds", str(seconds), "--bytes", str(_BYTES)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def _rows(config: Config, topics: list[Topic]) -> int:
    found = 0
    for topic in topics:
        table = TopicTable.open(open_storage(config.storage), topic)
        found += sum(one.rows for one in table.ledgers()) if table else 0
    return found


CASES = (
    Case("sustained_load", "an offloader beside producers, for minutes: how far behind", _run),
)
