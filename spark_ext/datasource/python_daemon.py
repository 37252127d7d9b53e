"""What Spark forks its Python workers from: ``python -m spark_ext.datasource.python_daemon``.

Spark ends a worker that was idle for a minute, and each new one would import everything: more than
a second of CPU. And after each task a worker collects garbage, for which it would go through all of
that again.
"""

import gc
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

_MODULES = ("pyspark.worker", "spark_ext.datasource.tasks", "reader.sources.split_reader")


def preload(modules: Sequence[str] = _MODULES, warm: Callable[[], object] | None = None) -> None:
    """Import what tasks need, and keep all of it from the garbage collector.

    ``warm`` does what else is worth doing once. Starts no thread of Python's: none would be there
    in the forked workers.
    """
    # A task that needs what cannot be loaded fails with the reason; this process has nobody to
    # tell it to.
    with suppress(Exception):
        for name in modules:
            import_module(name)
        if warm is not None:
            warm()
    gc.collect()
    gc.freeze()


def run() -> None:
    """Fork workers, as Spark asks for them, until it ends."""
    from pyspark import daemon

    daemon.manager()


if __name__ == "__main__":
    # Kernels are loaded by the worker that needs them: one that was not compiled yet takes long.
    preload()
    run()
