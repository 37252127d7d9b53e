"""Steps of the offloader's work at which a test kills it, lets it fail, or lets another go first.

A step is before or after a call of one of the product's functions, which is wrapped for it.
``python -m tests.support.steps STEP …`` runs ``pulsar-lake …`` in a process that kills itself at
the step (SIGKILL: no handler, no clean-up), as a machine may die.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import Any, Literal
from unittest.mock import patch

Step = Literal[
    "tasks-running",
    "files-written",
    "committed",
    "maintenance-written",
    "maintenance-committed",
    "iceberg-written",
    "iceberg-committed",
]

_COLLECT = "offloader.convert.spark_job", "collect"
_ICEBERG = "offloader.iceberg.catalogs.sql_catalog", "DatabaseCatalog.commit_table"
_BEFORE = {"tasks-running": _COLLECT, "iceberg-written": _ICEBERG}
_AFTER = {
    "files-written": _COLLECT,
    "committed": ("offloader.commit.delta_committer", "DeltaCommitter.commit"),
    "maintenance-written": ("offloader.maintenance.table_maintainer", "rewrite"),
    "maintenance-committed": ("offloader.commit.delta_committer", "DeltaCommitter.replace"),
    "iceberg-committed": _ICEBERG,
}


@contextmanager
def at_step(step: str, act: Callable[..., object]) -> Iterator[None]:
    """While the block runs, call ``act`` at each such step; what it raises, the step raises.

    ``act`` has the arguments of the step's function.
    """
    name, attribute = (_BEFORE | _AFTER)[step]
    owner: Any = import_module(name)
    *path, function = attribute.split(".")
    for one in path:
        owner = getattr(owner, one)
    wrapped = getattr(owner, function)

    def call(*args: Any, **kwargs: Any) -> Any:
        if step in _BEFORE:
            act(*args, **kwargs)
        result = wrapped(*args, **kwargs)
        if step in _AFTER:
            act(*args, **kwargs)
        return result

    with patch.object(owner, function, call):
        yield


def once(act: Callable[[], object]) -> Callable[..., None]:
    """Return a function for ``at_step`` that calls ``act`` at the first of its calls alone."""
    left = [act]

    def call(*args: object, **kwargs: object) -> None:
        if left:
            left.pop()()

    return call


def _die(*args: object, **kwargs: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_once_tasks_run(results: Any) -> None:
    """Kill this process while tasks of the Spark job that makes ``results`` run."""
    tracker = results.context.statusTracker()

    def watch() -> None:
        while True:
            stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
            if any(one is not None and one.numActiveTasks for one in stages):
                _die()
            time.sleep(0.005)  # a small job is over in less than a longer pause

    Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    from offloader.cli.app import main

    awaited = sys.argv.pop(1)
    with at_step(awaited, _die_once_tasks_run if awaited == "tasks-running" else _die):
        main()
