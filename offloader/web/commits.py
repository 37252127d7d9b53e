"""The newest commits of each topic's table, kept: a version never changes."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice

from reader.model import Topic
from reader.storage import Storage
from reader.table import LoggedCommit
from reader.table.log import newest_first, read_commit

_MOST = 500
"""How many of the newest versions are read; older ledgers are shown by files' statistics."""

_KEPT = 4000  # versions of all topics


class CommitCache:
    """Thread-safe. ``read``: as ``reader.table.log.read_commit``."""

    def __init__(
        self,
        storage: Storage,
        read: Callable[[Storage, Topic, int], LoggedCommit | None] = read_commit,
    ) -> None:
        self._storage = storage
        self._read = read
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[Topic, int, str], LoggedCommit] = OrderedDict()

    def newest(self, topic: Topic, version: int, table_id: str) -> list[LoggedCommit]:
        """The commits up to ``version``, newest first, as far as the log still has them.

        Without the paths that they add. ``table_id``: of a table that was moved away and made
        again, versions mean others. Raises UnavailableError.
        """
        return list(islice(newest_first(partial(self._commit, topic, table_id), version), _MOST))

    def _commit(self, topic: Topic, table_id: str, version: int) -> LoggedCommit | None:
        key = topic, version, table_id
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = self._read(self._storage, topic, version)
        if found is None:
            return None
        found = replace(found, adds=(), info={})  # what is large, and shown nowhere
        with self._lock:
            self._known[key] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found
