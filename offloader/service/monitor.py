"""Recent commits, errors and rates of the offloader, in memory, for ``web/``. Thread-safe.

The daemon feeds it. It sends no requests and decides nothing. Times are seconds since the epoch.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from offloader.model import Committed, Discovery, IcebergLag, IcebergResult, Turn
from offloader.service.iceberg_progress import IcebergProgress
from offloader.service.metrics import Metrics, error_kind
from reader.model import Partition, Topic
from reader.table import LoggedCommit

WINDOW = 3600.0
"""Seconds over which throughput is averaged: a slow topic has one commit in each ``max_age``."""

_BUCKET = 60.0
_KEPT = 200  # commits and errors of all topics together


class Rate:
    """Amounts of the last ``WINDOW`` seconds, in buckets; for one thread at a time."""

    def __init__(self) -> None:
        self._buckets: deque[tuple[int, float]] = deque()
        self._total = 0.0

    def add(self, amount: float, now: float) -> None:
        self._forget(now)
        self._total += amount
        number = int(now / _BUCKET)
        if self._buckets and self._buckets[-1][0] >= number:
            last, so_far = self._buckets.pop()
            number, amount = last, so_far + amount
        self._buckets.append((number, amount))

    def per_second(self, now: float, since: float) -> float:
        """The average; ``since``: when counting began."""
        self._forget(now)
        return self._total / min(WINDOW, max(now - since, _BUCKET))

    @property
    def buckets(self) -> int:
        """How many are kept."""
        return len(self._buckets)

    def _forget(self, now: float) -> None:
        while self._buckets and self._buckets[0][0] <= int((now - WINDOW) / _BUCKET):
            self._total -= self._buckets.popleft()[1]
        if not self._buckets:
            self._total = 0.0  # discards rounding errors


@dataclass(frozen=True, slots=True)
class NoticedCommit:
    """What the log says of another process's commit, as ``Committed`` of an own one."""

    version: int
    ledgers: int
    rows: int
    stored: int
    reason: str = "by another process"


@dataclass(frozen=True, slots=True)
class RecentCommit:
    """One commit, of this process or noticed. ``at``: when it was made, seconds since the epoch."""

    topic: Topic
    at: float
    done: Committed | NoticedCommit


@dataclass(frozen=True, slots=True)
class RecentError:
    """An error of ``what``: a topic, its maintenance, a round's lookup; the ``times``-th in a row.

    ``at``, ``retry_at``: seconds since the epoch; ``retry_at`` None: the next round tries again.
    """

    what: str
    error: str
    kind: str
    at: float
    times: int
    retry_at: float | None


@dataclass(frozen=True, slots=True)
class Round:
    """The last round. ``at``: its end, seconds of a monotonic clock.

    ``unanswered``: why Pulsar gave no answer, "" if it did.
    """

    at: float
    unanswered: str


@dataclass(frozen=True, slots=True)
class TopicActivity:
    """Recent activity of one topic: its last commit, and its error unless a turn succeeded since.

    ``tasks`` of its running Spark job: (done, all). The others are averages a second over
    ``WINDOW``: rows and stored bytes that were committed, bytes published (None: not known).
    ``iceberg``: how far its Iceberg table is behind, None where there is none.
    """

    commit: RecentCommit | None = None
    error: RecentError | None = None
    tasks: tuple[int, int] = (0, 0)
    rows: float = 0.0
    bytes: float = 0.0
    published: float | None = None
    iceberg: IcebergLag | None = None


@dataclass(slots=True)
class _History:
    commit: RecentCommit | None = None
    error: RecentError | None = None
    tasks: tuple[int, int] = (0, 0)
    rows: Rate = field(default_factory=Rate)
    bytes: Rate = field(default_factory=Rate)
    published: Rate = field(default_factory=Rate)
    iceberg: IcebergProgress = field(default_factory=IcebergProgress)


class Monitor:
    """``clock``: seconds since the epoch. ``elapsed``: seconds of a monotonic clock, for rates and
    the last round. ``iceberg``: whether there are Iceberg tables."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        *,
        iceberg: bool = False,
    ) -> None:
        self._has_iceberg = iceberg
        self.metrics = Metrics()
        self.clock = clock
        self.started_at = clock()
        self._elapsed = elapsed
        self._began = elapsed()
        self.round: Round | None = None
        self._counted_since: float | None = None
        self._counts: dict[str, int] | None = None  # of what brokers have loaded now
        self._topics: dict[Topic, _History] = {}
        self._commits: deque[RecentCommit] = deque(maxlen=_KEPT)
        self._errors: deque[RecentError] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()

    # -- the daemon's side ---------------------------------------------------------------------

    def discovered(self, discovery: Discovery, unanswered: str) -> None:
        """A round is over."""
        now = self._elapsed()
        grown = self._grown(discovery)
        with self._lock:
            self.round = Round(now, unanswered)
            for gone in self._topics.keys() - discovery.topics.keys():
                del self._topics[gone]
            if discovery.loaded is None:
                self._counted_since = None
                return
            if self._counted_since is None:
                self._counted_since = now
            for topic, amount in grown.items():
                self._history(topic).published.add(amount, now)

    def _grown(self, discovery: Discovery) -> dict[Topic, int]:
        """Bytes that were published since the round before; nothing for the first one."""
        before = self._counts
        loaded = discovery.loaded
        self._counts = None if loaded is None else {n: one.bytes_in for n, one in loaded.items()}
        found: dict[Topic, int] = {}
        if before is None or self._counts is None:
            return found
        for name, count in self._counts.items():
            known = before.get(name, 0)
            # A lower count has restarted at zero.
            grown = count - known if count >= known else count
            if grown and (topic := _topic_of(name, discovery)) is not None:
                found[topic] = found.get(topic, 0) + grown
        return found

    def ended(self, topic: Topic, turn: Turn) -> None:
        """A turn succeeded."""
        now = self._elapsed()
        self.metrics.released(len(turn.released))
        with self._lock:
            history = self._history(topic)
            history.error, history.tasks = None, (0, 0)
            if turn.committed is None:
                return
            self._keep(RecentCommit(topic, self.clock(), turn.committed))
            history.rows.add(turn.committed.rows, now)
            history.bytes.add(turn.committed.stored, now)
        self.metrics.committed(turn.committed)

    def noticed(self, topic: Topic, commit: LoggedCommit) -> None:
        """A commit is in the log of a topic's table, of this process or of another one."""
        ledgers = commit.ledgers
        if not ledgers:
            return
        done = NoticedCommit(
            version=commit.version,
            ledgers=len(ledgers),
            rows=sum(one.rows for one in ledgers),
            stored=sum(one.bytes for one in ledgers),
        )
        with self._lock:
            if all(not _same(one, topic, commit.version) for one in self._commits):
                self._keep(RecentCommit(topic, commit.at_ms / 1000, done))

    def _keep(self, found: RecentCommit) -> None:
        """An own one may have been noticed before its turn was over."""
        version = found.done.version
        for one in [one for one in self._commits if isinstance(one.done, NoticedCommit)]:
            if _same(one, found.topic, version):
                self._commits.remove(one)
        self._commits.append(found)
        self._history(found.topic).commit = found

    def committed(self, topic: Topic, version: int, at: float | None = None) -> bool:
        """The log of its table has ``version``, of whomever; whether Iceberg does not show that.

        ``at``: when it was committed; None: just now. A lower one than what Iceberg shows is told
        of late, or is that of a table that was made again.
        """
        with self._lock:
            progress = self._history(topic).iceberg
            progress.committed(version, self.clock() if at is None else at)
            return progress.shown != version

    def followed(self, topic: Topic, result: IcebergResult) -> None:
        """Its Iceberg table shows the newest version."""
        self.metrics.followed(result)
        if result.version is not None:
            with self._lock:
                self._history(topic).iceberg.followed(result.version)

    def failed(
        self, what: Topic | str, error: Exception, text: str, retry_at: float | None = None
    ) -> None:
        """A turn, a round's lookup or a table's maintenance failed."""
        self.metrics.failed(error)
        with self._lock:
            history = self._history(what) if isinstance(what, Topic) else _History()
            times = history.error.times + 1 if history.error else 1
            found = RecentError(str(what), text, error_kind(error), self.clock(), times, retry_at)
            history.error, history.tasks = found, (0, 0)
            self._errors.append(found)

    def moved(self, topic: Topic, done: int, total: int) -> None:
        """How far the topic's Spark job is."""
        with self._lock:
            self._history(topic).tasks = done, total

    def _history(self, topic: Topic) -> _History:
        return self._topics.setdefault(topic, _History())

    # -- for ``web`` ---------------------------------------------------------------------------

    @property
    def counted(self) -> Set[str] | None:
        """Full names of the partitions whose counts are kept; None: the last round had none."""
        return None if self._counts is None else self._counts.keys()

    def activity(self, topic: Topic) -> TopicActivity:
        """Of one topic."""
        return self._activities([topic]).get(topic, TopicActivity())

    def activities(self) -> dict[Topic, TopicActivity]:
        """Of all topics with any activity."""
        return self._activities(None)

    def _activities(self, topics: Iterable[Topic] | None) -> dict[Topic, TopicActivity]:
        now, clock = self._elapsed(), self.clock()
        with self._lock:
            chosen = self._topics if topics is None else topics
            counted = self._counted_since
            return {
                topic: TopicActivity(
                    commit=one.commit,
                    error=one.error,
                    tasks=one.tasks,
                    rows=one.rows.per_second(now, self._began),
                    bytes=one.bytes.per_second(now, self._began),
                    published=None if counted is None else one.published.per_second(now, counted),
                    iceberg=one.iceberg.lag(clock) if self._has_iceberg else None,
                )
                for topic in chosen
                if (one := self._topics.get(topic)) is not None
            }

    def commits(self, topic: Topic | None = None) -> list[RecentCommit]:
        """The last ones, newest first; of one topic or all."""
        with self._lock:
            return [one for one in reversed(self._commits) if topic in (None, one.topic)]

    def errors(self, topic: Topic | None = None) -> list[RecentError]:
        """The last failures, newest first; of one topic or all."""
        with self._lock:
            found = list(reversed(self._errors))
        return [one for one in found if topic is None or one.what == str(topic)]


def _same(one: RecentCommit, topic: Topic, version: int) -> bool:
    return (one.topic, one.done.version) == (topic, version)


def _topic_of(name: str, discovery: Discovery) -> Topic | None:
    partition = Partition.parse(name)
    if partition.topic in discovery.topics:
        return partition.topic
    whole = Topic.parse(name)  # not a partition, in spite of its name
    return whole if whole in discovery.topics else None
