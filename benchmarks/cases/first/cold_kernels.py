"""The first hot query of a new process, without any compiled kernel, against the same query warm.

Each run is a process of its own, with Spark started: the query once, and three times more. On a
"fresh machine" numba's cache is an empty folder; else it is what the process before left there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.case import Bench, Case
from benchmarks.contenders.queries import topic_table
from benchmarks.data.topics import JSON
from benchmarks.measure import BrokenCaseError, Contender, Result, at_most, take_turns
from spark_ext.session.handoff import settings_file

__all__ = ["CASES"]

_TIMES = 4
_MOST = 5.0


def _run(bench: Bench) -> list[Result]:
    world, topic = bench.world, bench.topic(JSON)
    settings = settings_file(world.config("kernels", query={"learn_publish_times": False}))
    assert settings is not None
    query = f"SELECT count(*), sum(id), sum(cents), count(agent) FROM {topic_table(topic)}"
    more: dict[str, list[float]] = {"fresh machine": [], "kernels on disk": []}
    first: dict[str, list[float]] = {name: [] for name in more}
    cache = world.directory / "numba"

    def query_in(name: str) -> tuple[int, ...]:
        seconds, row = _in_new_process(settings, query, cache)
        first[name].append(seconds[0])
        more[name].append(seconds[0] - median(seconds[1:]))
        return tuple(row[:3])

    expected = (topic.rows, topic.sum_of_ids, topic.total("cents"))
    forget = partial(shutil.rmtree, cache, ignore_errors=True)
    contenders = {
        "fresh machine": Contender(partial(query_in, "fresh machine"), expected, forget),
        "kernels on disk": Contender(partial(query_in, "kernels on disk"), expected),
    }
    # Processes take long, and are new each time: nothing to warm up.
    take_turns(contenders, 1 if bench.quick else bench.repeats, warm_ups=0)
    results = [bench.result(f"{name}: first query", "s", found) for name, found in first.items()]
    fresh, known = more.values()
    results.append(bench.result("fresh machine: more than warm", "s", fresh, at_most(_MOST)))
    results.append(bench.result("kernels on disk: more than warm", "s", known))
    return results


def _in_new_process(settings: str, query: str, cache: Path) -> tuple[list[float], list[int]]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.contenders.new_process",
        settings,
        query,
        str(_TIMES),
    ]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise BrokenCaseError(f"the new process exited with {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["seconds"], answer["rows"][0]


CASES = (
    Case(
        "cold_kernels", "first hot query on a fresh machine, against the same warm", _run, (JSON,)
    ),
)
