"""Peak memory of an offload task, for ledgers of 64 MB to 2 GB: does it stay flat?

The hardest form: a whole ledger is one task and one file (by default a task gets 128 MiB of it).
The command line offloads it in processes of its own; what is told is the largest resident memory
of its Python workers, as the kernel kept it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.case import Bench, Case
from benchmarks.data.topics import JSON, Published
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, take_turns
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.usage import PeakMemory

__all__ = ["CASES"]

_MB = 1_000_000
_SIZES, _QUICK_SIZES = (64, 512, 2048), (4, 16)
_ROW = 471  # bytes in BookKeeper of a row that is not compressed
_MOST = 700 * _MB
_FLAT = 1.25
_WORKER = "worker_daemon"


def _run(bench: Bench) -> list[Result]:
    world = bench.world
    sizes = _QUICK_SIZES if bench.quick else _SIZES
    specs = {
        f"ledger of {size:,} MB": world.resized(
            JSON,
            size * _MB // _ROW,
            name=f"ledger-{size}",
            compression="NONE",
            ledgers=1,
            quick_ledgers=1,
        )
        for size in sizes
    }
    peaks: dict[str, list[int]] = {name: [] for name in specs}
    contenders = {}
    for name, spec in specs.items():
        topic = world.topic(spec)
        bench.say(f"{name}: {world.stored_bytes(topic) / _MB:,.0f} MB, {topic.rows:,} rows")
        work = partial(_offload, bench, topic, peaks[name])
        contenders[name] = Contender(work, (topic.rows, 1))
    seconds = take_turns(contenders, bench.repeats, warm_ups=0)
    for spec in specs.values():
        world.drop(spec)
    megabytes = {name: [one / _MB for one in found] for name, found in peaks.items()}
    first, *_, last = megabytes.values()
    growth = [large / small for small, large in zip(first, last, strict=True)]
    return [
        *(
            bench.result(f"{name}: peak of a worker", "MB", found, at_most(_MOST / _MB))
            for name, found in megabytes.items()
        ),
        bench.result("largest ledger's peak over the smallest's", "x", growth, at_most(_FLAT)),
        *(
            bench.result(f"{name}: the whole command", "s", taken)
            for name, taken in seconds.items()
        ),
    ]


def _offload(bench: Bench, topic: Published, peaks: list[int]) -> tuple[int, int]:
    """Run the command line once; (rows, files) of the table that it made."""
    config = bench.world.config(
        f"memory-{topic.spec.name}-{len(peaks)}", offload={"split_bytes": 64 << 30}
    )
    settings = bench.world.directory / "memory.toml"
    sections: dict[str, dict[str, object]] = {
        "pulsar": {"service_url": config.pulsar.service_url, "admin_url": config.pulsar.admin_url},
        "storage": {"uri": config.storage.uri},
        "offload": {
            "grace": "0s",
            "split_bytes": int(config.offload.split_bytes),
            "subscription": config.offload.subscription,
        },
    }
    settings.write_text(
        "\n".join(
            f"[{name}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
            for name, keys in sections.items()
        )
    )
    words = ("offload", "--once", "--now", topic.name, "--config", str(settings))
    with PeakMemory(os.getpid(), _WORKER) as memory:
        program = Path(sys.executable).with_name("pulsar-lake")
        done = subprocess.run([program, *words])
    if done.returncode:
        raise BrokenCaseError(f"pulsar-lake offload exited with {done.returncode}")
    peaks.append(memory.bytes)
    table = TopicTable.open(open_storage(config.storage), Topic.parse(topic.name))
    assert table is not None
    found = table.dataset().count_rows(), table.data_files()[0]
    shutil.rmtree(config.storage.uri)
    return found


CASES = (Case("offload_memory", "peak memory of an offload task, a whole ledger each", _run),)
