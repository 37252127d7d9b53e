"""What other processes commit to the tables of topics here, seen in the tables' logs.

A turn reads its table's log itself, and whoever looks at a topic's page, too. In between, another
offloader (``offload --once``, a second daemon) may commit what is waiting here. So the log of each
table is asked for the version after the one that is known: one small request, of topics that have
anything to commit, and of those that have just had a commit. What a commit says of watermarks, and
the lists of ledgers that are known, make a new backlog; Pulsar is not asked.

All tables one after the other, in a thread of its own. It begins again ``every`` seconds, or once
it has rested for as long as it took: 3,000 such topics at 10 ms a request are a minute. A storage
that does not answer is left for the next time: turns say so.
"""

import threading
import time
from collections.abc import Callable, Iterator

from offloader.backlog import backlog_after
from offloader.model import TopicState, listener
from offloader.schedule import Scheduler
from reader.errors import PulsarLakeError
from reader.model import Topic
from reader.storage import Storage
from reader.table import LoggedCommit, PartitionNumbers
from reader.table.log import read_commit

FOLLOW_EVERY = 10.0
"""Seconds between two looks at a table's log, at most, unless there are very many tables."""

_STOP_SECONDS = 2.0


class LogFollower:
    """Tells ``scheduler`` of watermarks, and ``noticed`` of each commit since the start.

    Of this process's own, too. ``every``: seconds. ``elapsed``: seconds of a monotonic
    clock, by which backlogs are ordered, too.
    """

    def __init__(
        self,
        storage: Storage,
        scheduler: Scheduler,
        noticed: Callable[[Topic, LoggedCommit], None],
        *,
        every: float = FOLLOW_EVERY,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._scheduler = scheduler
        self._noticed = listener(noticed)
        self._every = every
        self._elapsed = elapsed
        self._read: dict[Topic, int] = {}  # the last version that was told of; -1: no table
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; a request that is on its way is waited for, if it does not take long."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._over.is_set():
            began = self._elapsed()
            self.follow()
            took = self._elapsed() - began
            self._over.wait(max(self._every - took, took))

    def follow(self) -> None:
        """Look at the log of each table that may have got a commit, once."""
        states = self._scheduler.states()
        gone = self._read.keys() - {one.topic for one in states}
        for topic in gone:
            del self._read[topic]
        for state in states:
            if self._over.is_set():
                return
            self._follow(state)

    def _follow(self, state: TopicState) -> None:
        topic, backlog = state.topic, state.backlog
        if backlog is None:
            return
        known = -1 if backlog.version is None else backlog.version
        version = self._read.setdefault(topic, known)
        if version > known:  # a new table, or an old one that was brought back
            version = known
        waiting = backlog.ledgers or backlog.unsealed or state.written
        if version == known and not waiting:
            return
        numbers: dict[str, int] = {}
        read = self._elapsed()
        try:
            for commit in self._commits(topic, version + 1):
                version = commit.version
                numbers.update(commit.transactions)
                self._noticed(topic, commit)
        except PulsarLakeError:
            pass  # what was read counts
        self._read[topic] = version
        if version > known:
            said = {
                one.partition: PartitionNumbers(one.partition.full_name, numbers.get).watermark
                for one in backlog.partitions
            }
            marks = {one: mark for one, mark in said.items() if mark >= 0}
            found = backlog_after(backlog, marks, version=version, read=read)
            self._scheduler.looked(topic, found)

    def _commits(self, topic: Topic, version: int) -> Iterator[LoggedCommit]:
        while (found := read_commit(self._storage, topic, version)) is not None:
            yield found
            version += 1
