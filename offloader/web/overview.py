"""All topics as plain values, out of memory: nothing is asked of Pulsar or the storage."""

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from offloader.model import TopicState
from offloader.schedule import Scheduler
from offloader.service import PartitionStatus
from offloader.service.monitor import WINDOW, Monitor, RecentCommit, RecentError, TopicActivity
from reader.model import Topic

_KEPT_SECONDS = 1.0


class Overview:
    """Thread-safe. An answer is computed at most once a second, however many clients ask.

    Less often where computing it would take more than a tenth of the time (very many topics): it
    holds the scheduler's lock and the interpreter's. ``elapsed``: seconds of a monotonic clock.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        monitor: Monitor,
        stopping: Callable[[], bool],
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._scheduler = scheduler
        self._monitor = monitor
        self._stopping = stopping
        self._elapsed = elapsed
        self._lock = threading.Lock()
        self._keep_until = -math.inf
        self._rows: dict[str, dict[str, Any]] = {}
        self._body = b""

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds since the epoch, as all of it goes by."""
        return self._monitor.clock

    def topics(self) -> dict[str, dict[str, Any]]:
        """A row for each topic, by its local name."""
        with self._lock:
            self._refresh()
            return self._rows

    def body(self) -> bytes:
        """``/api/topics``, as JSON."""
        with self._lock:
            self._refresh()
            return self._body

    def _refresh(self) -> None:
        began = self._elapsed()
        if began < self._keep_until:
            return
        now = self._monitor.clock()
        activities = self._monitor.activities()
        rows = [
            topic_row(one, activities.get(one.topic, TopicActivity()), now)
            for one in self._scheduler.states()
        ]
        value = {
            "at": now,
            "version": version("pulsar-lake"),
            "started_at": self._monitor.started_at,
            "state": self._state(),
            "window_seconds": WINDOW,
            "totals": totals(rows),
            "topics": rows,
        }
        self._rows = {row["topic"]: row for row in rows}
        self._body = json.dumps(value, separators=(",", ":")).encode()
        over = self._elapsed()
        self._keep_until = over + max(_KEPT_SECONDS, 10 * (over - began))

    def _state(self) -> str:
        if self._stopping():
            return "stopping"
        return "serving" if self._monitor.round else "starting"

    def topic(self, topic: Topic) -> dict[str, Any] | None:
        """One topic's row as it is now, and its ``partitions``; None where it is not served."""
        state = self._scheduler.state(topic)
        if state is None:
            return None
        now = self._monitor.clock()
        activity = self._monitor.activity(topic)
        found = state.backlog.partitions if state.backlog else ()
        partitions = [asdict(PartitionStatus.of(one, now)) for one in found]
        return {"at": now, **topic_row(state, activity, now), "partitions": partitions}

    def commits(self) -> list[dict[str, Any]]:
        """The last commits of all topics, newest first."""
        return [commit_row(one) for one in self._monitor.commits()]

    def errors(self) -> list[dict[str, Any]]:
        """The last failures of all topics and of rounds, newest first."""
        return [error_row(one) for one in self._monitor.errors()]


def topic_row(state: TopicState, activity: TopicActivity, now: float) -> dict[str, Any]:
    """One topic. Times are seconds since the epoch, None where there is none."""
    observation, backlog = state.observation, state.backlog
    done, total = activity.tasks
    return {
        "topic": state.topic.local_name,
        "state": _word(state, now),
        "share": state.share if observation else None,
        "lag": {
            "ledgers": backlog.ledgers if backlog else None,
            "bytes": backlog.sealed if backlog else None,
            "seconds": backlog.lag_seconds(now) if backlog else None,
        },
        "open_bytes": backlog.unsealed + state.written if backlog else None,
        "observed_at": backlog.at if backlog else None,
        "next_at": state.next_at if state.next_at is not None and state.next_at < 1e11 else None,
        "tasks": {"done": done, "total": total} if state.running and total else None,
        "rows_per_second": activity.rows,
        "bytes_per_second": activity.bytes,
        "published_bytes_per_second": activity.published,
        "last_commit": commit_row(activity.commit) if activity.commit else None,
        "last_error": error_row(activity.error) if activity.error and state.failures else None,
        "failures": state.failures,
        "iceberg": asdict(activity.iceberg) if activity.iceberg else None,
        "notes": list(observation.notes) if observation else [],
    }


def _word(state: TopicState, now: float) -> str:
    """What the topic does: the first of these that is true."""
    if state.running and state.observation is not None:
        return "running"
    if state.failures:
        return "failing"
    if state.observation is None:
        return "new"
    return "due" if state.next_at is not None and state.next_at <= now else "fine"


def totals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All topics together; the lag in seconds is the largest, ``observed_at`` the oldest."""
    lags = [row["lag"] for row in rows if row["lag"]["ledgers"] is not None]
    published = [row["published_bytes_per_second"] for row in rows]
    known = [one for one in published if one is not None]
    times = [row["observed_at"] for row in rows if row["observed_at"] is not None]
    return {
        "topics": len(rows),
        "failing": sum(1 for row in rows if row["failures"]),
        "warned": sum(1 for row in rows if row["notes"]),
        "running": sum(1 for row in rows if row["state"] == "running"),
        "lag": {
            "ledgers": sum(one["ledgers"] for one in lags),
            "bytes": sum(one["bytes"] for one in lags),
            "seconds": max((one["seconds"] for one in lags), default=0.0),
        },
        "open_bytes": sum(row["open_bytes"] or 0 for row in rows),
        "observed_at": min(times, default=None),
        "rows_per_second": sum(row["rows_per_second"] for row in rows),
        "bytes_per_second": sum(row["bytes_per_second"] for row in rows),
        "published_bytes_per_second": sum(known) if known else None,
    }


def commit_row(one: RecentCommit) -> dict[str, Any]:
    """A commit of this process, or one of another that was noticed."""
    return {"topic": one.topic.local_name, "at": one.at, **asdict(one.done)}


def error_row(one: RecentError) -> dict[str, Any]:
    """A failure; ``times`` in a row."""
    return asdict(one)
