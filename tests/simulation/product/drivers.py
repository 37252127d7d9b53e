"""A driver that writes to a topic, and its executors: what ``TopicWrite.java`` and Spark do."""

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeVar
from unittest.mock import patch

import pyarrow as pa

from reader.errors import PulsarLakeError
from spark_ext.datasource import sink_tasks
from spark_ext.datasource.sink_tasks import SendTask, WriteFormat
from spark_ext.planner.protocol import AbortWrite, CommitWrite, OpenWrite, Write
from spark_ext.planner.sinks import Sinks
from testbed.simulation import Clock, CrashError, HostClock
from tests.simulation.product.clients import SimulatedClients

T = TypeVar("T")

_TRIES = 2
"""Of a task, as ``spark.task.maxFailures``."""
_COLUMNS = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("value", "binary"), ("__key", "string"))
        ],
    }
)
_ROWS = pa.schema([("value", pa.binary()), ("__key", pa.string())])


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One execution of a task. ``keys``: of its rows; None: has none."""

    number: int
    keys: tuple[str | None, ...]

    def rows(self) -> list[pa.RecordBatch]:
        """Return the rows. Their values are different in each execution."""
        values = [b"%d.%d" % (self.number, row) for row in range(len(self.keys))]
        return [pa.record_batch([values, self.keys], schema=_ROWS)]


@dataclass(frozen=True, slots=True)
class WriteAsked:
    """A write. ``tasks``: make another execution of each.

    ``epoch``: of a stream's micro-batch, None: a batch. ``commits`` is told what is about to be
    committed: the write, and the executions of its tasks. ``opened``: of its tasks' beginning.
    """

    options: Mapping[str, str]
    query: str
    epoch: int | None
    tasks: Sequence[Callable[[], TaskRun]]
    commits: Callable[[Write, Sequence[TaskRun]], None]
    opened: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Death:
    """How processes die. ``alone``: an executor, if one is at work; else the driver with it.

    ``silent``: with the host, so that brokers do not see it; ``frames``: so many of those on their
    way come to the broker. ``planner``: after which of its answers the planner is started anew.
    """

    alone: bool = False
    silent: bool = False
    frames: int = 0
    planner: int = 9


class SimulatedDriver:
    """``clients``: its planner's; ``executor``: those of the tasks."""

    def __init__(
        self,
        new_clients: Callable[[], SimulatedClients],
        clock: Clock,
        drivers_clock: HostClock,
        tasks_clock: HostClock,
    ) -> None:
        self._new_clients = new_clients
        self._clock = clock
        self._drivers_clock = drivers_clock
        self._tasks_clock = tasks_clock
        self.clients, self.executor = new_clients(), new_clients()
        self.death = Death()
        self.write: Write | None = None
        self._answers = 0
        self._sending: SendTask | None = None
        self._start_planner()

    def run(self, asked: WriteAsked, death: Death) -> None:
        """Run the write. Raises PulsarLakeError where Spark would fail it."""
        self.death, self._answers, self.write = death, 0, None
        streaming = asked.epoch is not None
        opened = self._answered(
            lambda: self._sinks.open(
                None, OpenWrite(None, asked.options, _COLUMNS, asked.query, streaming)
            )
        )
        write = self.write = opened.write
        asked.opened()
        form: WriteFormat = pickle.loads(opened.function.function)[0].args[0]
        staged: list[bytes] = []
        runs: list[TaskRun] = []
        decided = False
        try:
            for make in asked.tasks:
                run, message = self._task(partial(self._write, form, make))
                runs.append(run)
                staged.append(message)
            decided = True
            asked.commits(write, runs)
            commit = CommitWrite(write, asked.epoch, tuple(staged))
            sending = self._answered(lambda: self._sinks.commit(None, commit))
            if sending.tasks is not None:
                for pickled in sending.tasks.tasks:
                    task: SendTask = pickle.loads(pickled)
                    self._task(partial(self._send, task))
                self._answered(lambda: self._sinks.sent(None, write, asked.epoch))
        except PulsarLakeError:
            with suppress(PulsarLakeError):
                messages = () if decided else tuple(staged)
                self._sinks.abort(None, AbortWrite(write, decided, messages))
            raise

    def send_again(self) -> None:
        """Another attempt of the task that sends now, elsewhere: Spark takes this one for lost."""
        task = self._sending
        if task is None:
            return
        mine, self.executor = self.executor, self._new_clients()
        try:
            with suppress(PulsarLakeError):
                self._send(task, 1)
        finally:
            self.executor, self._sending = mine, task

    def die(self) -> None:
        """All of its processes are gone."""
        for one in (self.clients, self.executor):
            one.die(silent=self.death.silent, frames=self.death.frames)

    def _start_planner(self) -> None:
        self._sinks = Sinks(
            lambda config: self.clients,
            clock=lambda: self._clock.now_ms / 1000,
            now=self._drivers_clock.seconds,
        )

    def _answered(self, ask: Callable[[], T]) -> T:
        found = ask()
        self._answers += 1
        if self._answers == self.death.planner:
            self._start_planner()
        return found

    def _task(self, attempt: Callable[[int], T]) -> T:
        for number in range(_TRIES):
            try:
                return attempt(number)
            except PulsarLakeError:
                if number == _TRIES - 1:
                    raise
            except CrashError:
                if not self.death.alone:
                    raise
                self.executor.die(silent=self.death.silent, frames=self.death.frames)
                self.executor = self._new_clients()
            finally:
                self._sending = None
        raise PulsarLakeError("the executor is gone", hint="simulated")

    def _write(
        self, form: WriteFormat, make: Callable[[], TaskRun], attempt: int
    ) -> tuple[TaskRun, bytes]:
        run = make()
        # Rows without a key begin at a random partition.
        with self._as_executor(attempt), patch.object(sink_tasks, "random", Random(run.number)):
            staged = sink_tasks.write_rows(
                form, iter(run.rows()), now=self._tasks_clock.seconds, sleep=self._clock.sleep
            )
        return run, pickle.dumps(staged)

    def _send(self, task: SendTask, attempt: int) -> None:
        self._sending = task
        with self._as_executor(attempt):
            sink_tasks.send_task(
                self.executor.settings, task, now=self._tasks_clock.seconds, sleep=self._clock.sleep
            )

    @contextmanager
    def _as_executor(self, attempt: int) -> Iterator[None]:
        executor = self.executor
        with (
            patch.object(sink_tasks, "process_clients", lambda settings: executor),
            patch.object(sink_tasks, "is_retry", lambda: attempt > 0),
        ):
            yield
