"""Iterators that work ahead of their consumer, each on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from queue import SimpleQueue
from typing import Generic, TypeVar

from reader.closing import Closing

__all__ = ["Ahead"]

T = TypeVar("T")


class Ahead(Closing, Iterator[T], Generic[T]):
    """The same items; up to ``most`` of them are made before they are asked for, from now on.

    ``items`` is run and closed on the thread; what it raises is raised here, after what it gave.
    To be closed, which waits until it has come to its next item.
    """

    def __init__(self, items: Generator[T], most: int) -> None:
        self._items = items
        self._made: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
        self._room = threading.Semaphore(most)
        self._given_up = False
        self._thread = threading.Thread(target=self._work, name="ahead", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            while self._room.acquire() and not self._given_up:
                self._made.put((next(self._items),))
            self._items.close()
        except StopIteration:
            self._made.put(None)
        except BaseException as error:  # noqa: BLE001 - it is the consumer's
            self._made.put(error)

    def __next__(self) -> T:
        found = self._made.get()
        if isinstance(found, tuple):
            self._room.release()
            return found[0]
        self._made.put(None)  # asked again, there is nothing more
        if found is None:
            raise StopIteration
        raise found

    def close(self) -> None:
        """Make no more; what was made and not taken is lost."""
        self._given_up = True
        self._room.release()
        self._thread.join()
