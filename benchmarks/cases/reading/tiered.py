"""A topic whose ledgers Pulsar has offloaded: its objects to Arrow, against a client's loop."""

from __future__ import annotations

import operator
import time

import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import python_reader
from benchmarks.contenders.source import arrow_batches
from benchmarks.data.layouts import OFFLOADING
from benchmarks.data.topics import TIERED_JSON, TIERED_UNBATCHED, Published
from benchmarks.measure import Contender, Result, at_least, at_most, clocked_turns, paired
from benchmarks.world import NAMESPACE
from offloader.config import Config, load_config
from testbed.s3 import S3
from testbed.tiered import TieredStorage
from testbed.usage import process_seconds

__all__ = ["CASES"]

OURS, PYTHON = "objects to Arrow", "pulsar-client through the broker, not decoded"


def _run(bench: Bench) -> list[Result]:
    servers = bench.world.servers(OFFLOADING)
    with S3() as s3:
        folder = bench.world.directory / "tiered"
        tiered = TieredStorage(servers.cluster, servers.admin, s3, folder)
        settings = bench.world.settings("none", OFFLOADING)
        config = load_config({**settings, "tiered": tiered.places[:1]})
        results = []
        for spec, prefix in ((TIERED_JSON, ""), (TIERED_UNBATCHED, "unbatched: ")):
            topic = bench.topic(spec)
            _move(bench, tiered, topic)
            results += _compared(bench, config, topic, s3, prefix)
        return results


def _compared(bench: Bench, config: Config, topic: Published, s3: S3, prefix: str) -> list[Result]:
    servers = bench.world.servers(OFFLOADING)
    client = servers.client
    contenders = {
        OURS: Contender(lambda: _read(config, topic), (topic.rows, topic.sum_of_ids)),
        PYTHON: Contender(lambda: python_reader(client, topic), (topic.rows, topic.payload_bytes)),
    }

    def everything() -> float:
        return servers.cpu() + process_seconds(s3.pid)

    clocks = [time.perf_counter, time.process_time, everything]
    wall, own, cpu = clocked_turns(contenders, bench.repeats, clocks)
    faster = paired(wall[PYTHON], wall[OURS], operator.truediv)
    share = paired(cpu[OURS], cpu[PYTHON], operator.truediv)
    millions = topic.rows / 1e6
    return [
        *(
            bench.result(f"{prefix}{name}", "rows/s", [topic.rows / one for one in taken])
            for name, taken in wall.items()
        ),
        bench.result(
            f"{prefix}ours, a CPU second", "rows/s", [topic.rows / one for one in own[OURS]]
        ),
        *(
            bench.result(
                f"{prefix}CPU of all, {name}", "s/M rows", [one / millions for one in taken]
            )
            for name, taken in cpu.items()
        ),
        bench.result(f"{prefix}faster than pulsar-client", "x", faster, at_least(8)),
        bench.result(f"{prefix}CPU of all against pulsar-client", "x", share, at_most(0.15)),
    ]


def _move(bench: Bench, tiered: TieredStorage, topic: Published) -> None:
    """Offloaded by Pulsar, in blocks of its default size."""
    tiered.use(NAMESPACE, block_bytes=64 << 20)
    servers = bench.world.servers(OFFLOADING)
    servers.admin.unload(topic.name)  # the policy holds from the next load on
    tiered.offload(topic.name)


def _read(config: Config, topic: Published) -> tuple[int, int]:
    rows = ids = 0
    for batch in arrow_batches(config, topic, tier="tiered"):
        rows += batch.num_rows
        ids += pc.sum(batch["id"]).as_py()
    return rows, ids


CASES = (
    Case(
        "reader_tiered",
        "what Pulsar's own tiered storage has taken, from its objects to Arrow, one process",
        _run,
        (TIERED_JSON, TIERED_UNBATCHED),
    ),
)
