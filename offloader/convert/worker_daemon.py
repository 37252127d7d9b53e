"""What Spark forks its Python workers from: ``python -m offloader.convert.worker_daemon``.

Spark ends a worker that was idle for a minute, and each new one would import everything and load
every kernel: some seconds of CPU. And after each task a worker collects garbage, for which it
would go through all of that again: a tenth of a second, more than a small ledger takes.
"""

from __future__ import annotations

import gc
from contextlib import suppress
from importlib import import_module

from pyspark import daemon

__all__ = ["preload"]

_MODULES = ("pyspark.worker", "offloader.convert.pack_task", "reader.sources")


def preload() -> None:
    """Import what tasks need, load the kernels, and keep all of it from the garbage collector.

    Starts no thread of Python's: none would be there in the forked workers.
    """
    for name in _MODULES:
        import_module(name)
    # A task that needs what cannot be loaded fails with the reason; this process has nobody to
    # tell it to.
    with suppress(Exception):
        for room in ("reader.decode", "reader.payload"):
            import_module(room).prewarm()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    preload()
    daemon.manager()
