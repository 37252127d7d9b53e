"""The commits of a topic's table, read one by one and kept: a version never changes.

Not by delta-rs's ``history``, which reads the whole log each time and keeps the interpreter's lock
while it waits (``reader/table/log.py``).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from itertools import takewhile

from offloader.web.query_cache import in_thread
from reader.model import Topic
from reader.storage import Storage
from reader.table import LEDGERS_KEY, OffloadedLedger, decode_ledgers
from reader.table.log import commit_info

__all__ = ["CommitLog", "LoggedCommit"]

_MOST = 500
"""How many of the newest versions are read; older ledgers are shown by files' statistics."""

_KEPT = 4000  # versions of all topics
_SIDE_BY_SIDE = 8


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One version of the log. ``at``: seconds since the epoch. ``operation``: as Delta names it;
    ``ledgers``: what it added, if anything."""

    version: int
    at: float
    operation: str
    ledgers: tuple[OffloadedLedger, ...]

    @property
    def rows(self) -> int:
        return sum(one.rows for one in self.ledgers)

    @property
    def bytes(self) -> int:
        """As BookKeeper stored them."""
        return sum(one.bytes for one in self.ledgers)


class CommitLog:
    """Thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Topic, int, str], LoggedCommit] = OrderedDict()

    def newest(self, topic: Topic, version: int, table_id: str) -> list[LoggedCommit]:
        """The commits up to ``version``, newest first, as far as the log still has them.

        ``table_id``: of a table that was moved away and made again, versions mean others.
        """
        versions = range(version, max(-1, version - _MOST), -1)
        numbers = iter(versions)
        found: dict[int, LoggedCommit] = {}
        over = threading.Event()

        def read() -> None:  # side by side: each takes the next number
            for number in numbers:
                one = None if over.is_set() else self._read(topic, table_id, number)
                if one is None:
                    return
                found[number] = one

        try:
            for reading in [in_thread(read) for _ in range(_SIDE_BY_SIDE)]:
                reading.result()
        finally:
            over.set()
        return [found[number] for number in takewhile(found.__contains__, versions)]

    def _read(self, topic: Topic, table_id: str, version: int) -> LoggedCommit | None:
        key = topic, version, table_id
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        info = commit_info(self._storage, topic, version)
        if info is None:
            return None
        found = LoggedCommit(
            version=version,
            at=int(info.get("timestamp", 0)) / 1000,
            operation=str(info.get("operation", "")),
            ledgers=tuple(decode_ledgers(info[LEDGERS_KEY])) if LEDGERS_KEY in info else (),
        )
        with self._lock:
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found
