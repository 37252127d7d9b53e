"""Work in threads that end with the process, so that a server that hangs holds up no exit."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Run ``work`` in a daemon thread of its own."""
    result: Future[T] = Future()

    def run() -> None:
        if not result.set_running_or_notify_cancel():
            return
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits raises it
            result.set_exception(error)

    threading.Thread(target=run, daemon=True, name="background").start()
    return result
