"""An iterator that works ahead of its consumer, on a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Generator
from queue import SimpleQueue
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


def ahead(items: Generator[T], most: int) -> Generator[T]:
    """The same items; up to ``most`` of them are made before they are asked for.

    ``items`` is run and closed on the thread; what it raises is raised here, after what it gave.
    Closing waits until it has come to its next item.
    """
    made: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
    room = threading.Semaphore(most)
    given_up = False

    def work() -> None:
        try:
            for item in items:
                made.put((item,))
                room.acquire()
                if given_up:
                    break
            items.close()
        except BaseException as error:  # noqa: BLE001 - it is the consumer's
            made.put(error)
        else:
            made.put(None)

    thread = threading.Thread(target=work, name="ahead", daemon=True)
    thread.start()
    try:
        while (found := made.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            room.release()
            yield found[0]
    finally:
        given_up = True
        room.release()
        thread.join()
