"""The page's app over a real scheduler, whose turns do what a test says; no server is asked."""

import asyncio
import atexit
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import httpx

from offloader.config import OffloadConfig, load_config
from offloader.model.observation import Discovery, Observation
from offloader.model.turn import Committed, Release, TaskCallback, Turn, Workers
from offloader.schedule import Rounds
from offloader.schedule.queue import TopicQueue
from offloader.schedule.scheduler import Scheduler
from offloader.service.monitor import Monitor
from offloader.web.app import App, ServedProcess
from offloader.web.gauges import Gauges
from offloader.web.overview import Overview
from offloader.web.topic_detail import TopicDetail
from reader.clients import Clients
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from tests.support.backlogs import backlog_of

T = TypeVar("T")

_LOOP = asyncio.Runner()  # one, as the server has
atexit.register(_LOOP.close)

ORDERS, BILLS = (Topic("shop", "live", name) for name in ("orders", "a/b c"))
TOKEN = "the-token-of-the-page"
NOWHERE = "http://127.0.0.1:1"
DONE = Committed(
    version=3, ledgers=2, files=1, rows=50, bytes=700, seconds=0.5, reason="due",
    stored=900, rescued=4,
)  # fmt: skip


def turn_of(topic: Topic, *, committed: bool = False, oldest: float | None = None) -> Turn:
    name = topic.full_name
    now = time.time()
    seen = Observation(now, backlog_of({name: 300}, {name: 40}, oldest, ledgers=2, at=now))
    moves = (Release(Partition(topic, -1), Position(1, 0), Position(2, 0)),) if committed else ()
    return Turn(topic, DONE if committed else None, moves, False, seen)


@cache
def _nobody() -> AdminClient:
    """A client of an admin that is not there."""
    return AdminClient(load_config({"pulsar": {"admin_url": NOWHERE}}).pulsar)


class World:
    """``work`` is what a turn does; ``storage`` what the storage check does.

    ``ahead``: seconds that the app's clock is ahead of this machine's.
    """

    def __init__(
        self,
        *,
        detail: type[TopicDetail] = TopicDetail,
        address: str = "127.0.0.1:0",
        token: str = TOKEN,
        **http: Any,
    ) -> None:
        self.config = load_config(
            {
                "pulsar": {"admin_url": NOWHERE, "token": "the-pulsar-token"},
                "storage": {"uri": "/nowhere", "options": {"secret_access_key": "the-key"}},
                "http": {"address": address, **({"token": token} if token else {}), **http},
            }
        )
        self.work: Callable[[Topic], Turn] = turn_of
        self.storage: Callable[[], None] = lambda: None
        self.said: list[str] = []
        self.stopping = False
        self.ahead = 0.0
        self._changed = threading.Condition()
        self.jobs = 7
        self.monitor = Monitor()
        self.scheduler = Scheduler(
            TopicQueue(OffloadConfig(interval=timedelta(milliseconds=50))),
            self._discover,
            self,
            Rounds(0.05, wake_seconds=0.01),
            ended=self._ended,
            moved=self.monitor.moved,
        )
        self.overview = Overview(self.scheduler, self.monitor, lambda: self.stopping, self._elapsed)
        self.monitor.metrics.registry.register(
            Gauges(
                self.overview,
                self.scheduler,
                lambda: self.jobs,
                by_topic=self.config.http.topic_labels,
                elapsed=self._elapsed,
            )
        )
        self.detail = detail(
            Clients(self.config, admin=_nobody()), "pulsar-lake", dict, self.scheduler.looked
        )
        app = App(
            self.config.http,
            self.scheduler,
            self.monitor,
            self.overview,
            self.detail,
            ServedProcess(
                check_storage=lambda: self.storage(),
                stopping=lambda: self.stopping,
                log=self.said.append,
                interval=self.config.offload.interval.total_seconds(),
                elapsed=self._elapsed,
            ),
        )
        self.app = app.asgi()

    def _elapsed(self) -> float:
        return time.monotonic() + self.ahead

    def _discover(self) -> Discovery:
        found = Discovery(dict.fromkeys((ORDERS, BILLS), ()), None)
        self.monitor.discovered(found, "")
        return found

    def turn(self, topic: Topic, *, now: bool, workers: Workers, progress: TaskCallback) -> Turn:
        return self.work(topic)

    def observe(self, topic: Topic, *, now: bool) -> Turn:
        return turn_of(topic)

    def hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        raise AssertionError("no partition is added")

    def _ended(self, topic: Topic, result: Turn | Exception, retry_at: float) -> None:
        if isinstance(result, Exception):
            self.monitor.failed(topic, result, str(result), retry_at)
        else:
            self.monitor.ended(topic, result)
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The scheduler in a thread; both topics have been looked at."""
        over = threading.Event()
        thread = threading.Thread(target=self.scheduler.run, args=(over.is_set,))
        thread.start()
        try:
            with self._changed:
                assert self._changed.wait_for(self._all_seen, 120)
            self.ahead += 1.1  # an overview is kept for a second
            yield
        finally:
            over.set()
            thread.join(60)
            assert not thread.is_alive()

    def _all_seen(self) -> bool:
        return [one.observation is not None for one in self.scheduler.states()] == [True] * 2

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return _LOOP.run(work)

    def ask(self, *requests: tuple[str, str] | str, **headers: str) -> list[httpx.Response]:
        """The answers to requests, (method, path) or a path to GET, one after the other."""

        async def all_of_them() -> list[httpx.Response]:
            async with self.client() as client:
                pairs = [one if isinstance(one, tuple) else ("GET", one) for one in requests]
                return [
                    await client.request(method, path, headers=headers) for method, path in pairs
                ]

        return self.run(all_of_them())

    def get(self, path: str, **headers: str) -> httpx.Response:
        [answer] = self.ask(path, **headers)
        return answer
