"""What comes after a snapshot: each message once, in the order of ``ends``.

The broker is asked where each partition's last message is (GET_LAST_MESSAGE_ID, through a
subscription that is not durable). Only when one has moved a snapshot is taken, and what lies behind
the last one's end is read from wherever it is by then. So none is missed or comes twice while
ledgers are closed, offloaded and trimmed, and a transaction's messages come when it is committed.
Without a broker, and with very many partitions, a snapshot is taken each second.

What has come since the last look is one table in memory, also where that is the backlog of an
outage.
"""

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from reader.clients import Clients
from reader.closing import Closing
from reader.errors import NotFoundError, UnavailableError
from reader.model import BEFORE_ALL, Partition, Position, Topic
from reader.plan import Snapshot, migrated_note, take_snapshot
from reader.scan.bounds import within
from reader.scan.ends import ORDER_COLUMNS, in_log_order, merged
from reader.scan.row_scan import plan_scan

if TYPE_CHECKING:
    from reader.pulsar.binary import BrokerClient

_PAUSE = 0.2
_LONG_PAUSE = 1.0
_PARTITIONS_SECONDS = 5.0
"""How late the first message of a new partition may be."""
_WITHOUT_BROKER_SECONDS = 60.0
_MOST_WATCHED = 64
_MOST_OUTDATED = 5
"""How many snapshots may be outdated one after the other: a file that is lost is gone for each."""

Ends = Mapping[int, Position]
"""By partition index the last entry that was read."""


def ends_of(snapshot: Snapshot) -> dict[int, Position]:
    """Where each partition ends that Pulsar lists."""
    segments = sorted(
        (*snapshot.cold, *snapshot.hot, *snapshot.unreadable),
        key=lambda one: (one.partition.index, one.ledger_id),
    )
    found: dict[int, Position] = {}
    waiting: set[int] = set()
    for one in segments:
        index = one.partition.index
        if index not in waiting:
            found[index] = Position(one.ledger_id, one.last_entry)
        if one.waiting:  # what follows is behind an open transaction
            waiting.add(index)
    return found


def new_rows(
    clients: Clients,
    topic: Topic,
    after: Ends,
    columns: Sequence[str],
    *,
    failed: Callable[[UnavailableError], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Generator[pa.Table]:
    """The rows behind ``after`` as they come, for ever; no table is empty.

    ``failed`` is told what made it wait: it goes on once a server answers again. Raises what else
    ``take_snapshot`` and reading raise, and NotFoundError for a topic that was deleted. Logs a
    warning if the topic is migrated to a scalable topic: nothing comes any more.
    """
    outdated = 0
    with _EndWatch(clients, topic, clock) as watch:
        while True:
            rows, pause = None, _PAUSE
            try:
                if watch.has_moved(after):
                    snapshot = take_snapshot(clients, topic)
                    try:
                        rows = _behind(clients, snapshot, after, columns)
                    except NotFoundError:
                        outdated += 1
                        if outdated > _MOST_OUTDATED or not _is_outdated(clients, snapshot):
                            raise
                    else:
                        outdated = 0
                        before, after = after, _later(after, ends_of(snapshot))
                        pause = _LONG_PAUSE if after == before else _PAUSE
            except UnavailableError as error:
                failed(error)
                pause = _LONG_PAUSE
            if rows is not None and rows.num_rows:
                yield rows
            sleep(pause)


def _is_outdated(clients: Clients, snapshot: Snapshot) -> bool:
    """Whether the table has moved on, and its old files may have been vacuumed.

    Raises NotFoundError for a topic that was deleted.
    """
    clients.admin.partitions(snapshot.topic)
    table = clients.newest_table(snapshot.topic) if snapshot.version is not None else None
    return table is not None and table.version != snapshot.version


def _behind(clients: Clients, snapshot: Snapshot, after: Ends, columns: Sequence[str]) -> pa.Table:
    extra = [name for name in ORDER_COLUMNS if name not in columns]
    scan = plan_scan(clients, snapshot, [*columns, *extra])
    bounds: dict[int, tuple[Position | None, Position | None]] = dict.fromkeys(
        ends_of(snapshot), (None, None)
    )
    for index, end in after.items():
        bounds[index] = Position(end.ledger, end.entry + 1), None
    parts = in_log_order(within(scan, bounds), clients)
    rows = [part for _, part in sorted(parts.items())]
    count = sum(part.num_rows for part in rows)
    return merged(rows, scan.columns, count, newest=False).select(list(columns))


def _later(one: Ends, other: Ends) -> Ends:
    return {
        index: max(one.get(index, BEFORE_ALL), other.get(index, BEFORE_ALL))
        for index in {*one, *other}
    }


class _EndWatch(Closing):
    """Whether a partition has got messages; keeps a client of the broker."""

    def __init__(self, clients: Clients, topic: Topic, clock: Callable[[], float]) -> None:
        self._clients = clients
        self._topic = topic
        self._clock = clock
        self._lent = ExitStack()
        self._broker: BrokerClient | None = None
        self._partitions: Sequence[Partition] = ()
        self._list_at = self._ask_at = clock()
        self._warned = False

    def has_moved(self, after: Ends) -> bool:
        """Whether one has more than ``after``, or may have. Raises as ``take_snapshot``."""
        now = self._clock()
        if now >= self._list_at:
            self._partitions = self._clients.admin.partitions(self._topic)
            if not self._warned and (note := migrated_note(self._clients.admin, self._topic)):
                logging.getLogger(__name__).warning("%s", note)
                self._warned = True
            self._list_at = now + _PARTITIONS_SECONDS
        if now < self._ask_at or len(self._partitions) > _MOST_WATCHED:
            return True
        try:
            if self._broker is None:
                self._broker = self._lent.enter_context(self._clients.broker())
            for one in self._partitions:
                if self._broker.last_position(one) > after.get(one.index, BEFORE_ALL):
                    return True
        except UnavailableError:  # the bookies and the admin may be there
            self._ask_at = self._clock() + _WITHOUT_BROKER_SECONDS
            return True
        return False

    def close(self) -> None:
        """Give the client back, which leaves no subscription."""
        self._broker = None
        self._lent.close()
