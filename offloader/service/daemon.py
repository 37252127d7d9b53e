"""The offloader as a process: connects the scheduler to Pulsar, the turns and the log.

One topic's failure stops no other: it is logged, kept for ``status`` and retried after growing
pauses. A stop takes effect between commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from offloader import model
from offloader.config import Config
from offloader.convert import spark_jobs
from offloader.iceberg import open_follower
from offloader.maintenance import GROWTH
from offloader.maintenance.staged import StagingCleaner
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.schedule import Lookup, Rounds, Scheduler, TopicQueue, by_failure, parse_names
from offloader.service.console import Console
from offloader.service.last_errors import LastErrors, Work
from offloader.service.log_follower import FOLLOW_EVERY, LogFollower
from offloader.service.monitor import Monitor
from offloader.service.signals import Stop
from offloader.service.topic_worker import TopicWorker, WorkPace
from offloader.turn.topic_offloader import TopicOffloader
from reader.background import in_thread
from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError, plain_text
from reader.model import Partition, Topic
from reader.pulsar import LoadedTopic
from reader.table import LoggedCommit

if TYPE_CHECKING:
    from pyspark import SparkContext

ONCE_WAITS = 30.0
"""Seconds that ``--once`` waits for a commit's grace; longer ones are left to the next run."""

_ICEBERG_PACE = WorkPace(interval=3600.0, files=1, within=10.0, spread=1.0, pause=10.0)
"""An Iceberg table whose Delta table has no commit is looked at each hour, for its snapshots; all
of them after the start. Of many topics these looks are a second apart: a look takes a part of
that."""
_ICEBERG_PATIENCE = 10.0
"""Seconds that an end waits for a catalog: what is left undone is done at the next start."""

_RELEASES = 8
"""Threads that move the holds at the end of ``--once``."""

_WAKE_SECONDS = 0.2

_LINGER_SECONDS = 0.5
"""Far below any interval; turns that begin together reach a Spark job within it."""


class Daemon:
    """Offloads ``names`` (topics and patterns) until it is stopped, or once.

    ``now``: all sealed ledgers, regardless of size and age.
    """

    def __init__(
        self,
        config: Config,
        clients: Clients,
        names: Sequence[str],
        *,
        console: Console,
        stop: Stop,
        context: Callable[[], SparkContext],
        now: bool = False,
        clocks: model.Clocks = model.HOST_CLOCKS,
    ) -> None:
        self._config = config
        self._admin = clients.admin
        self._storage = clients.storage
        self._patterns = parse_names(names)
        self._now = now
        self._console = console
        self._stop = stop
        self.elapsed = clocks.elapsed
        self._last_errors = LastErrors(config.pulsar.admin_url, config.storage.uri, clocks.seconds)
        self._found: dict[Topic, dict[Topic, tuple[Partition, ...]]] = {}
        self._unmatched: set[Topic] = set()
        self._names_failed_at: dict[Topic, float] = {}
        self._served = False
        self._uncounted = ""
        self._failures: dict[str, str] = {}
        self._unanswered = ""
        self.monitor = Monitor(clocks.seconds, clocks.elapsed, iceberg=config.iceberg.enabled)
        self._committed: dict[Topic, int] = {}  # commits; a topic has one turn at a time
        self._log_disabled()
        interval = config.offload.interval.total_seconds()
        self._topics = TopicOffloader(
            clients,
            config.offload,
            spark_jobs(context, linger=_LINGER_SECONDS),
            clocks=clocks,
            say=console.log,
            took=self.monitor.metrics.took,
            named=[one for one in self._patterns if not model.is_pattern(one.local_name)],
        )
        self.scheduler = Scheduler(
            TopicQueue(config.offload, always=now),
            self._discover,
            self._topics,
            Rounds(interval, now),
            ended=self._ended,
            moved=self._moved,
            is_fatal=lambda error: type(error).__name__ == "Py4JNetworkError",
            clocks=clocks,
        )
        self._log_follower = LogFollower(
            clients.storage,
            self.scheduler,
            self._noticed,
            every=min(FOLLOW_EVERY, interval),
            elapsed=clocks.elapsed,
        )
        pace = WorkPace(config.offload.maintenance_interval.total_seconds(), GROWTH)
        self.maintenance = TopicWorker(
            self._maintain, self._maintained, name="maintenance", pace=pace, clocks=clocks
        )
        pace = _ICEBERG_PACE if config.iceberg.enabled else replace(_ICEBERG_PACE, interval=0.0)
        self.iceberg = TopicWorker(
            self._follow, self._followed, name="iceberg", pace=pace, clocks=clocks
        )
        self._iceberg = open_follower(
            clients.storage, config, raise_if_stopped=self.iceberg.raise_if_stopped
        )
        self._maintainer = TableMaintainer(
            clients.storage,
            config.offload,
            pulsar=clients,
            clocks=clocks,
            raise_if_stopped=self.maintenance.raise_if_stopped,
            say=console.log,
        )
        self._staging = StagingCleaner(
            clients.storage, clock=self.elapsed, raise_if_stopped=self.maintenance.raise_if_stopped
        )

    @property
    def jobs(self) -> int:
        """Return the number of Spark jobs that were started."""
        return self._topics.jobs.count

    def run(self) -> None:
        """Serve until stopped. Raises ConfigurationError where retrying cannot help."""
        self._require_exclusive_put()
        self.maintenance.start()
        self.iceberg.start()
        self._log_follower.start()
        try:
            self._run_loop(lambda: False, rounds=True)
        finally:
            self._log_follower.stop()
            self.iceberg.request_stop()
            self.maintenance.stop()
            self.iceberg.stop(_ICEBERG_PATIENCE)

    def run_once(self) -> list[str]:
        """Give each topic one turn. Return the failures, a line each."""
        self._require_exclusive_put()
        found = self._find()
        waiting = [self.scheduler.request(topic, now=self._now) for topic in found]

        def over() -> bool:
            while waiting and waiting[-1].done:
                waiting.pop()
            return not waiting

        self._run_loop(over, rounds=False)
        failures = [f"{what}: {error}" for what, error in self._failures.items()] + self._release()
        failures += self._follow_once(found)
        self._console.log(
            f"done: {sum(self._committed.values())} commits, {len(failures)} failures"
        )
        return failures

    def _require_exclusive_put(self) -> None:
        """At the start, where somebody looks; each commit has it as well.

        A storage that does not answer now may later. Raises ConfigurationError.
        """
        with suppress(UnavailableError):
            self._storage.require_exclusive_put()

    def _run_loop(self, over: Callable[[], bool], *, rounds: bool) -> None:
        def until() -> bool:
            if self._stop.set:
                self._topics.jobs.stop()
            return self._stop.set or over()

        try:
            self.scheduler.run(until, rounds=rounds)
        except PulsarLakeError:
            raise
        except Exception as error:
            raise UnavailableError(
                "Spark has died", hint="start the offloader again; give Spark more memory"
            ) from error

    # -- a round's requests ------------------------------------------------------------------

    def _discover(self) -> model.Discovery:
        found = model.Discovery(self._find(), self._loaded())
        model.listener(self.monitor.discovered)(found, self._unanswered)
        return found

    def _find(self) -> dict[Topic, tuple[Partition, ...]]:
        """The topics that Pulsar lists now. A pattern whose lookup fails keeps its topics."""
        lookup = Lookup(self._admin, self.scheduler.beat, self._names_failed_at)
        self._unanswered = ""
        for pattern in by_failure(self._patterns, self._names_failed_at):
            what = f"finding {pattern}"
            try:
                self._found[pattern] = lookup.find(pattern)
                self._failures.pop(what, None)
                self._log_unmatched(pattern, not self._found[pattern])
            except PulsarLakeError as error:
                # At the start the user has to fix it; later it has worked before, so it is retried.
                if isinstance(error, ConfigurationError) and not self._served:
                    raise
                if isinstance(error, UnavailableError):
                    self._unanswered = str(error)
                self._failed(what, str(error))
                self.monitor.failed(what, error, _one_line(error))
        self._served = True
        merged: dict[Topic, tuple[Partition, ...]] = {}
        for found in self._found.values():
            merged |= {t: p for t, p in found.items() if model.is_enabled(self._config.offload, t)}
        self.maintenance.serve(merged)
        self.iceberg.serve(merged)
        return merged

    def _log_disabled(self) -> None:
        for one in self._patterns:
            if not (model.is_pattern(str(one)) or model.is_enabled(self._config.offload, one)):
                self._console.log(f"{one}: disabled by offload.override")

    def _log_unmatched(self, pattern: Topic, unmatched: bool) -> None:
        """Once, until it has matched something."""
        if unmatched and pattern not in self._unmatched:
            self._unmatched.add(pattern)
            self._console.log(f"pattern {pattern} matches no topic")
        elif not unmatched:
            self._unmatched.discard(pattern)

    def _loaded(self) -> dict[str, LoadedTopic] | None:
        brokers: list[str] | None = None
        try:
            brokers = self._admin.brokers()
            found = self._admin.loaded(brokers)
        except PulsarLakeError as error:
            # A refusal is an answer; one unreachable broker of many is not an outage.
            if brokers is None and isinstance(error, UnavailableError):
                self._unanswered = str(error)
            if self._uncounted != str(error):
                self._console.log(
                    f"no counts from the brokers, so topics are observed more often: {error}"
                )
            self._uncounted = str(error)
            return None
        self._uncounted = ""
        return found

    # -- results of turns -----------------------------------------------------------------------

    def _ended(self, topic: Topic, result: model.Turn | Exception, retry_at: float) -> None:
        if isinstance(result, Exception):
            text = _one_line(result)
            self._failed(str(topic), text)
            self._last_errors.failed(topic, text, retry_at)
            self.monitor.failed(topic, result, text, retry_at)
            return
        self._failures.pop(str(topic), None)
        self._last_errors.succeeded(topic)
        self.monitor.ended(topic, result)
        if result.committed:
            self._committed[topic] = self._committed.get(topic, 0) + 1
            self._console.committed(topic, result.committed)
            self.maintenance.committed(topic, result.committed.files)
            self._table_moved(topic, result.committed.version)
        self._console.released(result.released)

    def _moved(self, topic: Topic, done: int, total: int) -> None:
        self._console.tasks(topic, done, total)
        self.monitor.moved(topic, done, total)

    def _maintain(self, topic: Topic) -> model.MaintenanceResult:
        try:
            found = self._staging.clean_if_due()
            for text in (*found.damaged, *([f"{found} deleted"] if found.files else [])):
                self._console.log(text)
        except PulsarLakeError as error:
            self._console.failed("files staged by writes", _one_line(error))
        return self._maintainer.maintain(topic)

    def _maintained(
        self, topic: Topic, result: model.MaintenanceResult | Exception, retry_at: float
    ) -> None:
        """A topic's maintenance has ended."""
        if isinstance(result, Exception):
            self._work_failed(topic, "maintenance", result, retry_at)
            return
        self._last_errors.succeeded(topic, work="maintenance")
        self.monitor.metrics.maintained(result)
        if result.version is not None:
            self._table_moved(topic, result.version)
        if not result.idle:
            self._console.log(str(result))

    def _work_failed(self, topic: Topic, work: Work, error: Exception, retry_at: float) -> None:
        text = _one_line(error)
        self._console.failed(f"{topic}: {work}", text)
        self._last_errors.failed(topic, text, retry_at, work=work)
        self.monitor.failed(f"{topic}: {work}", error, text, retry_at)

    # -- Iceberg follows -----------------------------------------------------------------------

    def _table_moved(self, topic: Topic, version: int, at: float | None = None) -> None:
        """Let Iceberg follow, in its own thread, a new version of the topic's Delta table."""
        if self._iceberg is not None and self.monitor.committed(topic, version, at):
            self.iceberg.committed(topic, 1)

    def _noticed(self, topic: Topic, commit: LoggedCommit) -> None:
        self.monitor.noticed(topic, commit)
        self._table_moved(topic, commit.version, commit.at_ms / 1000)

    def _follow(self, topic: Topic) -> model.IcebergResult:
        assert self._iceberg is not None  # or there are no turns
        return self._iceberg.follow(topic)

    def _followed(
        self, topic: Topic, result: model.IcebergResult | Exception, retry_at: float
    ) -> None:
        if isinstance(result, Exception):
            self._work_failed(topic, "Iceberg", result, retry_at)
            return
        self._last_errors.succeeded(topic, work="Iceberg")
        self.monitor.followed(topic, result)
        if not result.idle:
            self._console.log(str(result))

    def _follow_once(self, topics: Iterable[Topic]) -> list[str]:
        """Let Iceberg follow, in this thread, before the run ends. Return the failures.

        A stop is no failure: the next run, or the daemon, goes on from there.
        """
        failures = []
        for topic in topics if self._iceberg is not None else ():
            future = in_thread(partial(self._follow, topic))
            while not self._stop.set and not future.done():
                wait([future], _WAKE_SECONDS)
            if self._stop.set:
                self.iceberg.request_stop()
                wait([future], _ICEBERG_PATIENCE)
            result: model.IcebergResult | Exception
            try:
                result = future.result(0)
            except (model.StoppedError, TimeoutError):
                self._console.log(f"{topic}: Iceberg has not followed; it does at the next run")
                break
            except Exception as error:  # noqa: BLE001 - no topic's failure stops the others
                result = error
                failures.append(f"{topic}: Iceberg: {_one_line(error)}")
            self._followed(topic, result, time.time())
            if self._stop.set:
                break
        return failures

    def _failed(self, what: str, error: str) -> None:
        self._failures[what] = error
        self._console.failed(what, error)

    def _release(self) -> list[str]:
        """Move the holds after this run's commits, if the grace is short; the failures."""
        deadline = self.elapsed() + ONCE_WAITS

        def release(topic: Topic) -> str | None:
            try:
                while True:
                    moves, wait = self._topics.release(topic)
                    self._console.released(moves)
                    if not wait or self.elapsed() + wait > deadline or self._stop.wait(wait):
                        return None
            except PulsarLakeError as error:
                self._console.failed(topic, str(error))
                return f"{topic}: {error}"

        with ThreadPoolExecutor(_RELEASES) as pool:
            return [one for one in pool.map(release, self._committed) if one is not None]


def _one_line(error: Exception) -> str:
    if isinstance(error, PulsarLakeError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {plain_text(error)}"
