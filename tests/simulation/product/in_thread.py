"""Threads of the product, run in this one: the same history has the same order of effects."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar
from unittest.mock import patch

T = TypeVar("T")


class InThreadPool:
    """``ThreadPoolExecutor``: what is submitted is done at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __enter__(self) -> InThreadPool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def shutdown(self, **_: Any) -> None:
        pass

    def map(self, function: Callable[..., T], *several: Iterable[Any]) -> Iterator[T]:
        return iter([function(*one) for one in zip(*several, strict=False)])

    def submit(self, function: Callable[..., T], *values: Any) -> Future[T]:
        return in_thread(lambda: function(*values))


class LazyPrefetch(Generic[T]):
    """``Prefetched``: an item is made when it is asked for."""

    def __init__(self, items: Generator[T], most: int) -> None:
        self._items = items

    def __enter__(self) -> LazyPrefetch[T]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> LazyPrefetch[T]:
        return self

    def __next__(self) -> T:
        return next(self._items)

    def close(self) -> None:
        self._items.close()


def in_thread(work: Callable[[], T]) -> Future[T]:
    """``reader.background.in_thread``; a crash is everybody's."""
    result: Future[T] = Future()
    try:
        result.set_result(work())
    except Exception as error:  # noqa: BLE001 - of whatever kind
        result.set_exception(error)
    return result


@contextmanager
def threads_replaced() -> Iterator[None]:
    """While the block runs."""
    with ExitStack() as stack:
        for name in (
            "reader.plan.completeness.held_tables",
            "reader.plan.snapshot",
            "reader.sink.writes",
            "offloader.commit.vacuum",
            "offloader.schedule.scheduler",
            "offloader.subscription.hold",
        ):
            stack.enter_context(patch(f"{name}.ThreadPoolExecutor", InThreadPool))
        for name in ("reader.scan.row_scan", "reader.sink.staging", "reader.sources.entry_rows"):
            stack.enter_context(patch(f"{name}.Prefetched", LazyPrefetch))
        stack.enter_context(patch("reader.table.log.in_thread", in_thread))
        yield
