"""delta-rs on the simulated storage: who commits when, by which clock, and what may go wrong."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deltalake import DeltaTable

from testbed.simulation import Effects
from tests.simulation.product.storage import FileTimes, store_effect

_COMMIT = re.compile(r"\d{20}\.json")
_TIMESTAMP = re.compile(r'"timestamp":\d+')


class LogWatch:
    """``clock_ms``: of the process that commits; ``committed`` is told the txn actions."""

    def __init__(
        self, effects: Effects, times: FileTimes, committed: Callable[[dict[str, int]], None]
    ) -> None:
        self.effects = effects
        self.times = times
        self.committed = committed
        self.clock_ms: Callable[[], int] = lambda: 0
        self._seen: dict[str, int] = {}
        self._opened: dict[tuple[str, int], Any] = {}
        self.transactions: dict[tuple[str, int, str], int | None] = {}

    def stamp(self, uri: str) -> None:
        """Give commits that are new the simulated time, and tell of them."""
        log = Path(uri) / "_delta_log"
        if not log.is_dir():
            return
        version = self._seen.get(uri, -1) + 1
        while (path := log / f"{version:020d}.json").exists():
            text = path.read_text()
            path.write_text(_TIMESTAMP.sub(f'"timestamp":{self.clock_ms()}', text))
            self.times.written(str(path))
            self._seen[uri] = version
            actions = [json.loads(line) for line in text.splitlines()]
            found = {a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a}
            if found:
                self.committed(found)
            version += 1

    def rewind(self, uri: str) -> None:
        """The table is an older one again."""
        versions = (Path(uri) / "_delta_log").glob("*.json")
        self._seen[uri] = max(int(one.stem) for one in versions if _COMMIT.fullmatch(one.name))
        self.reopen()

    def reopen(self) -> None:
        """The log has changed otherwise than by a commit: what was read of it is read again."""
        self._opened.clear()
        self.transactions.clear()

    def opened(self, uri: str, version: int | None, read: Callable[[], Any]) -> Any:
        """A version as it was read before, by ``read``: each is opened a dozen times a history."""
        newest = self._seen.get(uri)
        if newest is None or not (Path(uri) / "_delta_log").is_dir():
            return read()
        key = uri, newest if version is None else version
        if key not in self._opened:
            self._opened[key] = read()
        return self._opened[key]


_watch: list[LogWatch] = []


class _SimulatedTable(DeltaTable):
    @classmethod
    def create(cls, table_uri: Any, *args: Any, **kwargs: Any) -> DeltaTable:
        watch = _watch[-1]
        with store_effect(watch.effects, "create table"):
            made = DeltaTable.create(table_uri, *args, **kwargs)
            watch.stamp(str(table_uri))
        return made

    def __init__(
        self, table_uri: Any, version: int | None = None, storage_options: Any = None
    ) -> None:
        def read() -> Any:
            DeltaTable.__init__(self, table_uri, version, storage_options)
            return self._table

        self.place = str(table_uri)
        self._storage_options = storage_options
        with store_effect(_watch[-1].effects, "open log"):
            self._table = _watch[-1].opened(self.place, version, read)

    def _own(self) -> None:
        """A handle that commits is nobody else's."""
        DeltaTable.__init__(self, self.place, self.version(), self._storage_options)

    def transaction_version(self, app_id: str) -> int | None:
        known = _watch[-1].transactions
        key = self.place, self.version(), app_id
        if key not in known:
            known[key] = super().transaction_version(app_id)
        return known[key]

    def create_write_transaction(self, *args: Any, **kwargs: Any) -> None:
        with store_effect(_watch[-1].effects, "commit"):
            self._own()
            super().create_write_transaction(*args, **kwargs)
            _watch[-1].stamp(self.place)

    @property
    def alter(self) -> Any:
        self._own()
        return _Alter(super().alter, self.place)


class _Alter:
    def __init__(self, real: Any, place: str) -> None:
        self._real = real
        self._place = place

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> None:
            with store_effect(_watch[-1].effects, name):
                getattr(self._real, name)(*args, **kwargs)
                _watch[-1].stamp(self._place)

        return call


@contextmanager
def log_watched(watch: LogWatch) -> Iterator[None]:
    """While the block runs, the product's tables are watched."""
    _watch.append(watch)
    try:
        with (
            patch("reader.table.topic_table.DeltaTable", _SimulatedTable),
            patch("offloader.commit.schema_changes.DeltaTable", _SimulatedTable),
        ):
            yield
    finally:
        _watch.pop()
