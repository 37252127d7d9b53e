"""Offloading, read to commit, against pyarrow writing the same Arrow data; the table's size."""

import itertools
import operator
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.contenders.peers import write_parquet
from benchmarks.contenders.source import arrow_batches
from benchmarks.data.topics import AVRO, JSON, TopicSpec
from benchmarks.measure import (
    BrokenCaseError,
    Contender,
    Result,
    Target,
    at_least,
    at_most,
    paired,
    take_turns,
)
from benchmarks.offload_process import OffloadProcess
from offloader.config import Config, load_config
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.usage import cpu_seconds

_MIB = 1 << 20
_PEER = 5.0  # MiB/s a core: the best published figure of a peer
OURS, ALONE = "offload", "pyarrow alone"


def _run(spec: TopicSpec, of_pyarrow: Target, of_peer: Target, bench: Bench) -> list[Result]:
    with OffloadProcess(bench.world.directory / "offloader.log") as offloader:
        return _take_turns(spec, of_pyarrow, of_peer, bench, offloader)


def _take_turns(
    spec: TopicSpec, of_pyarrow: Target, of_peer: Target, bench: Bench, offloader: OffloadProcess
) -> list[Result]:
    world, topic = bench.world, bench.topic(spec)
    data = pa.Table.from_batches(arrow_batches(world.config("none"), topic))
    plain = world.directory / "plain.parquet"
    numbers = itertools.count()
    stores: list[dict[str, Any]] = []
    wall: list[float] = []

    def prepare() -> None:
        if stores:
            shutil.rmtree(stores[-1]["storage"]["uri"])
        stores.append(world.settings(f"offload-{spec.name}-{next(numbers)}"))

    def offload() -> int:
        begun = time.perf_counter()
        committed = offloader.turn(stores[-1], topic.name)
        wall.append(time.perf_counter() - begun)
        return int(committed["rows"])

    contenders = {
        OURS: Contender(offload, topic.rows, prepare),
        ALONE: Contender(partial(write_parquet, data, plain), topic.rows),
    }
    seconds = take_turns(
        contenders, bench.repeats, clock=lambda: cpu_seconds() + offloader.cpu().all
    )
    config = load_config(stores[-1])
    table = TopicTable.open(open_storage(config.storage), Topic.parse(topic.name))
    found = table.dataset().to_table(["id"]) if table else pa.table({"id": []})
    if (found.num_rows, pc.sum(found["id"]).as_py()) != (topic.rows, topic.sum_of_ids):
        raise BrokenCaseError("the offloaded table holds other rows")
    _remove(config, plain)
    size = topic.payload_bytes / _MIB
    return [
        *(
            bench.result(f"{name}: a CPU second", "rows/s", [topic.rows / one for one in taken])
            for name, taken in seconds.items()
        ),
        bench.result(
            "rate of pyarrow alone that is reached",
            "x",
            paired(seconds[ALONE], seconds[OURS], operator.truediv),
            of_pyarrow,
        ),
        bench.result("payload a CPU second", "MiB/s", [size / one for one in seconds[OURS]]),
        bench.result(
            f"payload a CPU second, in {_PEER:.0f} MiB/s",
            "x",
            [size / one / _PEER for one in seconds[OURS]],
            of_peer,
        ),
        bench.result("offload: by the clock", "s", wall[-bench.repeats :]),
    ]


def _remove(store: Config, plain: Path) -> None:
    shutil.rmtree(store.storage.uri)
    plain.unlink()


def _case(spec: TopicSpec, of_pyarrow: Target, of_peer: Target) -> Case:
    about = f"sealed ledgers of topic {spec.name} to committed Parquet, per CPU second"
    return Case(f"offload_{spec.name}", about, partial(_run, spec, of_pyarrow, of_peer), (spec,))


def _size(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(JSON)
    config = world.config("cold")
    world.offloaded(config, topic)
    table = TopicTable.open(open_storage(config.storage), Topic.parse(topic.name))
    if table is None or table.dataset().count_rows() != topic.rows:
        raise BrokenCaseError("the table does not have the topic's rows")
    sizes = table.files().column("size_bytes").to_pylist()
    size = sum(sizes)
    stored = world.stored_bytes(topic)
    bench.say(
        f"{len(sizes)} files; payload {topic.payload_bytes / 1e6:,.1f} MB; one number, no repeats"
    )
    return [
        bench.result("table", "MB", [size / 1e6]),
        bench.result("BookKeeper, LZ4, one replica", "MB", [stored / 1e6]),
        bench.result("share of BookKeeper's size", "x", [size / stored], at_most(0.5)),
    ]


CASES = (
    _case(JSON, at_least(0.30), at_least(30)),
    _case(AVRO, at_least(0.45), at_least(40)),
    Case("table_size", "the table's files against the ledgers, LZ4 JSON", _size, (JSON,)),
)
