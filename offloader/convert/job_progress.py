"""How far a Spark job is, told while the caller waits for it in the JVM."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from offloader import killpoint
from offloader.model import TaskCallback

if TYPE_CHECKING:
    from pyspark import SparkContext, StatusTracker

__all__ = ["JobProgress"]

_POLL_SECONDS = 0.25
_KILL_POLL_SECONDS = 0.005  # a small job is over in less than the other


class JobProgress:
    """Reports how far a job group of ``total`` tasks is, from a thread of its own."""

    def __init__(
        self,
        context: SparkContext,
        group: str,
        total: int,
        progress: TaskCallback,
        reached: Callable[[killpoint.Step], None],
    ) -> None:
        self._context = context
        self._group = group
        self._total = total
        self._progress = progress
        self._reached = reached
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True, name="offload-progress")

    def __enter__(self) -> None:
        self._progress(0, self._total)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=5)
        if error[0] is None:
            self._progress(self._total, self._total)

    def _poll(self) -> None:
        tracker: StatusTracker | None = None  # most jobs are over before it is asked
        awaited = killpoint.is_awaited("tasks-running")
        while not self._over.wait(_KILL_POLL_SECONDS if awaited else _POLL_SECONDS):
            tracker = tracker or self._context.statusTracker()
            active, done = self._tasks(tracker)
            if active:
                self._reached("tasks-running")
            self._progress(done, self._total)

    def _tasks(self, tracker: StatusTracker) -> tuple[int, int]:
        active = done = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info: Any = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                found: Any = tracker.getStageInfo(stage)
                if found is not None:
                    active += found.numActiveTasks
                    done += found.numCompletedTasks
        return active, done
