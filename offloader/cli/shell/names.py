"""What the catalog has, for completion: asked of Pulsar's admin, and kept for a while.

Spark is not asked: its session may still be starting, or busy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import TYPE_CHECKING

from reader.background import in_thread
from reader.errors import PulsarLakeError

if TYPE_CHECKING:
    import pyarrow as pa

    from spark_ext import PulsarLake

__all__ = ["CatalogNames", "member_paths"]

_KEPT_SECONDS = 60.0
_WAIT_SECONDS = 1.5


class CatalogNames:
    """The names of a catalog (``completion.Names``), each asked for once in a minute.

    ``lake`` gives what answers. A list that is not there after ``wait_seconds`` is empty for now,
    because a completion that comes later is of no use.
    """

    def __init__(
        self,
        lake: Callable[[], PulsarLake],
        clock: Callable[[], float] = time.monotonic,
        *,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self._lake = lake
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._lock = Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Future[Sequence[str]]]] = {}

    def namespaces(self) -> Sequence[str]:
        """All ``tenant/namespace`` that the client may see."""
        return self._get((), lambda: self._lake().namespaces())

    def topics(self, namespace: str) -> Sequence[str]:
        """The names of a namespace's topics."""
        return self._get((namespace,), lambda: self._lake().topics(namespace))

    def columns(self, namespace: str, topic: str) -> Sequence[str]:
        """A topic's columns, the members of its structs behind them."""

        def ask() -> Sequence[str]:
            local = topic.partition("$")[0]
            return list(member_paths(self._lake().columns(f"{namespace}/{local}")))

        return self._get((namespace, topic), ask)

    def forget(self) -> None:
        """Ask anew from now on."""
        with self._lock:
            self._kept.clear()

    def _get(self, key: tuple[str, ...], ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        now = self._clock()
        with self._lock:
            at, answer = self._kept.get(key, (float("-inf"), None))
            failed = answer is not None and answer.done() and answer.exception() is not None
            if answer is None or failed or now - at > _KEPT_SECONDS:
                answer = in_thread(ask)
                self._kept[key] = now, answer
        try:
            return answer.result(self._wait_seconds)
        except (PulsarLakeError, TimeoutError, OSError):
            return ()  # nobody has asked for an error: the query will say it


def member_paths(fields: Iterator[pa.Field] | pa.Schema, above: str = "") -> Iterator[str]:
    """Names of columns, and of the members of structs: the path to them, joined by NUL."""
    import pyarrow as pa

    for field in fields:
        yield above + field.name
        if pa.types.is_struct(field.type):
            yield from member_paths(iter(field.type), f"{above}{field.name}\0")
