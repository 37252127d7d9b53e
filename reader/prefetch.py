"""Iterators that run on a thread of their own, ahead of their consumer."""

import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

from reader.closing import Closing

THREAD_NAME = "prefetch"
"""Of each thread that works for a ``Prefetched``."""

T = TypeVar("T")


class Prefetched(Closing, Iterator[T], Generic[T]):
    """The items of ``items``; up to ``most`` are made before they are requested, from now on.

    ``items`` runs and is closed on the thread; what it raises is raised here, after its items. Has
    to be closed, which waits until ``items`` has made its next item.
    """

    def __init__(self, items: Generator[T], most: int) -> None:
        self._items = items
        self._made: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
        self._room = threading.Semaphore(most)
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=THREAD_NAME, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while self._room.acquire() and not self._closed:
                self._made.put((next(self._items),))
            self._items.close()
        except StopIteration:
            self._made.put(None)
        except BaseException as error:  # noqa: BLE001 - raised to the consumer
            self._made.put(error)

    def __next__(self) -> T:
        found = self._made.get()
        if isinstance(found, tuple):
            self._room.release()
            return found[0]
        self._made.put(None)  # for another call of next()
        if found is None:
            raise StopIteration
        raise found

    def close(self) -> None:
        """Make no more items; those made and not taken are dropped."""
        self._closed = True
        self._room.release()
        self._thread.join()
