"""Scans that are being read. Each has threads and connections, and must end before the process.

pyarrow's reader of Python's batches has a ``close`` that does nothing. So a scan ends when it is
exhausted, when nobody has its reader any more, when its topic is closed, and before the interpreter
is: a thread that it would wait for then never comes back.
"""

from collections.abc import Generator, Iterator
from contextlib import suppress
from weakref import WeakSet

import pyarrow as pa

from reader.closing import Closing
from reader.errors import ConfigurationError
from reader.storage import before_the_end


class OpenScan(Closing, Iterator[pa.RecordBatch]):
    """The batches of a scan; for one reader at a time. Closing it early is an error for who reads
    on: never fewer rows without one."""

    def __init__(self, batches: Generator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._ended = self._closed = False
        _open.add(self)

    def __next__(self) -> pa.RecordBatch:
        if self._closed:
            raise ConfigurationError(
                "the topic was closed before all rows were read", hint="read within its `with`"
            )
        try:
            return next(self._batches)
        except BaseException:
            self._ended = True
            raise

    def close(self) -> None:
        """End it; one that has given all its rows stays as it is."""
        if not self._ended:
            self._closed = True
            with suppress(ValueError):  # another thread is in it: it ends before its next batch
                self._batches.close()


_open: WeakSet[OpenScan] = WeakSet()


def _close_all() -> None:
    for one in list(_open):
        one.close()


before_the_end(_close_all)
