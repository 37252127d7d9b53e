"""What Spark forks its Python workers from: ``python -m offloader.convert.worker_daemon``.

As for queries (``spark_ext.datasource.python_daemon``), and with all kernels loaded: conversions
need every one of them, in each worker.
"""

from importlib import import_module

from spark_ext.datasource import python_daemon

_MODULES = ("pyspark.worker", "offloader.convert.pack_task", "reader.sources.split_reader")


def preload() -> None:
    """Import what tasks need and load the kernels."""
    python_daemon.preload(_MODULES, _load_kernels)


def _load_kernels() -> None:
    for room in ("reader.decode", "reader.payload"):
        import_module(room).prewarm()


if __name__ == "__main__":
    preload()
    python_daemon.run()
