"""A topic for programs without Spark: ``open_topic``, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.closing import Closing
from reader.config import ReadConfig, Settings
from reader.errors import UnavailableError
from reader.model import Topic
from reader.plan import both, take_snapshot
from reader.scan.ends import end_rows
from reader.scan.follow import ends_of, new_rows
from reader.scan.open_scans import OpenScan
from reader.scan.row_scan import plan_scan
from reader.scan.time_range import Moment, time_filter, time_predicates
from reader.storage import check_storage_options


def open_topic(config: Settings | Mapping[str, Any] | str | Path | None, name: str) -> TopicReader:
    """A topic by its name: ``name``, ``tenant/namespace/name`` or ``persistent://…``.

    ``config``: a settings file, a mapping, settings, or None for the environment alone. Asks no
    server. Raises ConfigurationError for settings or a name of no use.
    """
    settings = ReadConfig.load(config)
    check_storage_options(settings.storage, settings.tiered)
    return TopicReader(Clients(settings), Topic.parse(name), owns_clients=True)


class TopicReader(Closing):
    """One topic's rows as Arrow; a context manager. Thread-safe.

    Each scan is one snapshot, over all tiers, with the rows and columns of Spark's table.
    ``owns_clients``: whether they are closed with it.
    """

    def __init__(self, clients: Clients, topic: Topic, *, owns_clients: bool = False) -> None:
        self._clients = clients
        self._topic = topic
        self._owns_clients = owns_clients
        self._scans: WeakSet[OpenScan] = WeakSet()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - pyarrow's own name for it
        *,
        tiers: str | None = None,
    ) -> pa.RecordBatchReader:
        """The topic's rows as they are now, in no order.

        ``columns``: None for all. ``start``, ``end``: publish times, both inclusive; a text is ISO
        8601, and what names no offset is UTC. They prune files and segments, and entries before
        they are decompressed. ``filter``: only rows that match, by Arrow's rules; it prunes the
        table's files and row groups, and segments by partition, ledger and, once a read has
        learned them, publish times. ``tiers`` forces one: "parquet", "bookkeeper",
        "tiered" or "broker".

        The snapshot is taken by this call, which raises as ``take_snapshot``; ConfigurationError
        too for an unknown column, a text that is no time or a filter that cannot be applied. Rows
        are read as the reader is asked for them; what goes wrong then is raised by it: an error of
        ``reader.errors`` in Python, its text through Arrow's C interface.
        """
        predicates = time_predicates(start, end)
        snapshot = take_snapshot(self._clients, self._topic, tiers=tiers).log_note()
        where = both(time_filter(predicates), filter)
        scan = plan_scan(self._clients, snapshot, columns, predicates, where)
        opened = OpenScan(scan.batches(self._clients))
        self._scans.add(opened)
        return pa.RecordBatchReader.from_batches(scan.columns, opened)

    def head(self, rows: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """The topic's first messages as they are now, oldest first.

        In the order of the log within a partition, merged by publish time. Raises as ``scan`` and
        its reader do.
        """
        snapshot = take_snapshot(self._clients, self._topic).log_note()
        return end_rows(self._clients, snapshot, columns, rows, newest=False)

    def tail(self, rows: int = 10, columns: Sequence[str] | None = None) -> pa.Table:
        """The topic's last messages as they are now, in the order of ``head``."""
        snapshot = take_snapshot(self._clients, self._topic).log_note()
        return end_rows(self._clients, snapshot, columns, rows, newest=True)

    def follow(
        self,
        rows: int = 10,
        columns: Sequence[str] | None = None,
        failed: Callable[[UnavailableError], None] = lambda error: None,
    ) -> Generator[pa.Table]:
        """The last messages as ``tail`` has them, and from then on each message once as it comes.

        For ever: the first table may be empty, the others are not; they have the columns of now.
        ``failed`` is told why nothing comes for a while. Raises as ``tail`` does, and NotFoundError
        when the topic is deleted.
        """
        snapshot = take_snapshot(self._clients, self._topic)
        names = snapshot.columns.names if columns is None else list(columns)
        yield end_rows(self._clients, snapshot, names, rows, newest=True)
        yield from new_rows(self._clients, self._topic, ends_of(snapshot), names, failed=failed)

    def close(self) -> None:
        """End all scans that are still read, and close what was opened."""
        for one in list(self._scans):
            one.close()
        if self._owns_clients:
            self._clients.close()
