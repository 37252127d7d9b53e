"""How far a Spark job is, told while the caller waits for it in the JVM."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from offloader.model import TaskCallback

if TYPE_CHECKING:
    from pyspark import SparkContext, StatusTracker

_POLL_SECONDS = 0.25


class JobProgress:
    """Reports how far a job group of ``total`` tasks is, from a thread of its own."""

    def __init__(
        self, context: SparkContext, group: str, total: int, progress: TaskCallback
    ) -> None:
        self._context = context
        self._group = group
        self._total = total
        self._progress = progress
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
        while not self._over.wait(_POLL_SECONDS):
            tracker = tracker or self._context.statusTracker()
            self._progress(self._completed(tracker), self._total)

    def _completed(self, tracker: StatusTracker) -> int:
        done = 0
        for job in tracker.getJobIdsForGroup(self._group):
            info: Any = tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                found: Any = tracker.getStageInfo(stage)
                if found is not None:
                    done += found.numCompletedTasks
        return done
