"""Requests to offload a topic now that came over HTTP, by id."""

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from offloader.schedule import Request
from reader.errors import PulsarLakeError, plain_text
from reader.model import Topic

_MOST = 1000


@dataclass(frozen=True, slots=True)
class OffloadRequest:
    """A request and its id. ``at``: seconds since the epoch."""

    id: str
    request: Request
    at: float

    def value(self) -> dict[str, Any]:
        """As JSON: progress, and in the end the result or error."""
        progress = self.request.progress
        error = self._error()
        return {
            "id": self.id,
            "topic": self.request.topic.local_name,
            "at": self.at,
            "state": "failed" if error else progress.state,
            "tasks": {"done": progress.tasks[0], "total": progress.tasks[1]},
            "commits": [asdict(one) for one in progress.committed],
            "error": error,
        }

    def _error(self) -> str | None:
        if not self.request.done:
            return None
        try:
            self.request.result(0)
        except PulsarLakeError as error:
            return " ".join(str(error).split())
        except Exception as error:  # noqa: BLE001 - whatever a turn failed with
            return f"{type(error).__name__}: {plain_text(error)}"
        return None


class OffloadRequests:
    """For one thread. Keeps the last thousand. ``clock``: seconds since the epoch.

    Each POST makes a request of its own: one that is running may have been planned before the
    newest ledger was sealed.
    """

    def __init__(
        self, request: Callable[[Topic], Request], clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._request = request
        self._kept: OrderedDict[str, OffloadRequest] = OrderedDict()

    def make(self, topic: Topic) -> OffloadRequest:
        """Request the topic."""
        made = OffloadRequest(secrets.token_urlsafe(9), self._request(topic), self._clock())
        self._kept[made.id] = made
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return made

    def get(self, name: str) -> OffloadRequest | None:
        """The one of that id."""
        return self._kept.get(name)
