"""The routes: the page, the API, health and metrics. Written down in ``docs/monitoring.md``."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from offloader.config import HttpConfig
from offloader.schedule import Scheduler
from offloader.service import TopicStatus
from offloader.service.monitor import Monitor
from offloader.web.connections import CancelOnDisconnect
from offloader.web.health import not_alive, not_ready
from offloader.web.overview import Overview
from offloader.web.query_cache import QueryCache
from offloader.web.requests import OffloadRequest, OffloadRequests
from offloader.web.security import RefusedError, Security, check_token, failure
from offloader.web.topic_detail import TopicDetail
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Topic

_KEEP_SECONDS = 4.0
_KEEP_STORAGE_SECONDS = 15.0
_STORAGE_TIMEOUT = 15.0
_STATUS_TIMEOUT = 10.0
_TIMEOUT = 60.0
_LONGEST_WAIT = 60.0

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_STATUS = {ConfigurationError: 400, NotFoundError: 404, UnavailableError: 503}


@dataclass(frozen=True, slots=True)
class ServedProcess:
    """What the routes ask the process that serves them.

    check_storage: raises what the storage fails with.
    stopping: returns whether the process is to end.
    log: gets internal errors.
    interval: seconds between rounds.
    elapsed: seconds of a monotonic clock, the scheduler's.
    """

    check_storage: Callable[[], None]
    stopping: Callable[[], bool]
    log: Callable[[str], None]
    interval: float
    elapsed: Callable[[], float] = time.monotonic


class App:
    """The routes and what they need."""

    def __init__(
        self,
        config: HttpConfig,
        scheduler: Scheduler,
        monitor: Monitor,
        overview: Overview,
        detail: TopicDetail,
        process: ServedProcess,
    ) -> None:
        self._config = config
        self._scheduler = scheduler
        self._monitor = monitor
        self._overview = overview
        self._detail = detail
        self._process = process
        self._queries = QueryCache(process.elapsed)
        # Of its own, because slow topics are not the storage's fault.
        self._storage_queries = QueryCache(process.elapsed)
        self._requests = OffloadRequests(scheduler.request, monitor.clock)

    def asgi(self) -> Security:
        """The application, with its routes, error handlers and security."""
        page = [_static("/", "index.html"), _static("/topic", "topic.html")]
        names = [one.name for one in files("offloader.web").joinpath("static").iterdir()]
        page += [_static(f"/static/{name}", name) for name in names]
        routes = [
            *page,
            Route("/api/topics", self._topics),
            Route("/api/topics/{rest:path}", self._topic, methods=["GET", "POST"]),
            Route("/api/commits", self._commits),
            Route("/api/errors", self._errors),
            Route("/api/requests/{id}", self._offload_request),
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
            Route("/metrics", self._metrics),
        ]
        made = Starlette(
            routes=routes,
            middleware=[Middleware(GZipMiddleware, minimum_size=2000, compresslevel=3)],
            exception_handlers={
                RefusedError: _refused,
                PulsarLakeError: _failed,
                HTTPException: _http_failed,
                Exception: self._internal_error,
            },
            max_body_size=64 << 10,
        )
        return Security(CancelOnDisconnect(made), self._config)

    # -- from memory ---------------------------------------------------------------------------

    async def _topics(self, request: Request) -> Response:
        return Response(self._overview.body(), media_type="application/json")

    async def _commits(self, request: Request) -> Response:
        return JSONResponse({"commits": self._overview.commits()})

    async def _errors(self, request: Request) -> Response:
        return JSONResponse({"errors": self._overview.errors()})

    async def _metrics(self, request: Request) -> Response:
        try:
            encode, kind = choose_encoder(request.headers.get("accept", ""))
        except (TypeError, ValueError):  # a version that is no number
            encode, kind = choose_encoder("")
        return Response(encode(self._monitor.metrics.registry), headers={"content-type": kind})

    async def _healthz(self, request: Request) -> Response:
        age = self._process.elapsed() - self._scheduler.turned_at
        return _health(not_alive(age, stopping=self._process.stopping()))

    async def _readyz(self, request: Request) -> Response:
        storage: str | None = None
        try:
            await self._storage_queries.get(
                "storage",
                self._process.check_storage,
                keep=_KEEP_STORAGE_SECONDS,
                timeout=_STORAGE_TIMEOUT,
            )
        except PulsarLakeError as error:
            storage = str(error)
        return _health(
            not_ready(
                self._process.elapsed(),
                self._monitor.round,
                self._process.interval,
                storage,
                stopping=self._process.stopping(),
            )
        )

    # -- one topic -----------------------------------------------------------------------------

    async def _topic(self, request: Request) -> Response:
        """``/api/topics/TENANT/NAMESPACE/NAME``, each percent-encoded, and what is below it."""
        topic, below = _path(request)
        if below == "offload":
            if request.method != "POST":
                raise RefusedError(405, "offload requires POST")
            return self._offload(request, topic)
        if request.method == "POST":
            raise RefusedError(405, "only …/offload accepts POST")
        self._served(topic)
        if below == "segments":
            return JSONResponse(await self._ask(below, topic, self._detail.segments))
        if below == "commits":
            return JSONResponse({"commits": await self._ask(below, topic, self._detail.commits)})
        if below:
            raise RefusedError(404, f"unknown resource of a topic: {below}")
        errors: Sequence[str]
        warnings: Sequence[str] = ()
        try:
            found: TopicStatus = await self._ask(
                "status", topic, self._detail.look, _STATUS_TIMEOUT
            )
            errors, warnings = found.errors, found.warnings
        except PulsarLakeError as error:
            errors = [" ".join(str(error).split())]
        # From memory, whoever looked last: the same as all others are shown.
        return JSONResponse(
            {
                **self._served(topic),
                "errors": errors,
                "warnings": warnings,
                "recent_errors": [
                    one for one in self._overview.errors() if one["what"] == topic.local_name
                ],
                "recent_commits": [
                    one for one in self._overview.commits() if one["topic"] == topic.local_name
                ],
            }
        )

    async def _ask(
        self, what: str, topic: Topic, ask: Callable[[Topic], Any], timeout: float = _TIMEOUT
    ) -> Any:
        return await self._queries.get(
            (what, topic), lambda: ask(topic), keep=_KEEP_SECONDS, timeout=timeout
        )

    def _served(self, topic: Topic) -> dict[str, Any]:
        """The topic's row as it is now. Raises RefusedError where there is none."""
        row = self._overview.topic(topic)
        if row is None:
            raise RefusedError(
                404,
                f"topic {topic} is not offloaded here",
                "offload.topics lists the topics that are",
            )
        return row

    # -- requests to offload -------------------------------------------------------------------

    def _offload(self, request: Request, topic: Topic) -> Response:
        try:
            check_token(self._config, request.headers.get("authorization"))
            self._served(topic)
        except RefusedError:
            self._monitor.metrics.requested("refused")
            raise
        found = self._requests.make(topic)
        self._monitor.metrics.requested("accepted")
        url = f"/api/requests/{found.id}"
        return JSONResponse(found.value() | {"url": url}, 202, headers={"location": url})

    async def _offload_request(self, request: Request) -> Response:
        found = self._requests.get(request.path_params["id"])
        if found is None:
            raise RefusedError(
                404, "no such request", "the last thousand are kept, until a restart"
            )
        await _wait(found, _wait_seconds(request))
        return JSONResponse(found.value())

    # -- errors --------------------------------------------------------------------------------

    async def _internal_error(self, request: Request, error: Exception) -> Response:
        self._process.log(
            f"error: internal error in HTTP {request.method} {request.url.path}: "
            f"{type(error).__name__}: {error}"
        )
        return failure(500, "internal error; see the offloader's log")


def _static(path: str, name: str) -> Route:
    body = files("offloader.web").joinpath("static", name).read_bytes()
    kind = _KINDS[name[name.rindex(".") :]]

    async def serve(request: Request) -> Response:
        headers = {"content-type": kind, "cache-control": "no-cache"}
        return Response(body, headers=headers)

    return Route(path, serve)


def _path(request: Request) -> tuple[Topic, str]:
    """The topic and the resource below it; slashes in names are percent-encoded."""
    raw: bytes = request.scope["raw_path"]
    parts = [unquote(one) for one in raw.decode("ascii", "replace").split("/")[3:]]
    if len(parts) not in (3, 4) or not all(parts):
        raise RefusedError(
            400, "invalid topic name", "/api/topics/TENANT/NAMESPACE/NAME, each percent-encoded"
        )
    return Topic(*parts[:3]), parts[3] if len(parts) == 4 else ""


def _wait_seconds(request: Request) -> float:
    text = request.query_params.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RefusedError(400, "wait must be a number of seconds")
    return min(seconds, _LONGEST_WAIT)


async def _wait(found: OffloadRequest, seconds: float) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        with contextlib.suppress(RuntimeError):  # the server has ended before the request
            loop.call_soon_threadsafe(over.set)

    if seconds and not found.request.done:
        forget = found.request.when_done(tell)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), seconds)
        finally:
            forget()


def _health(trouble: str | None) -> Response:
    value = {"status": "ok"} if trouble is None else {"status": "failing", "error": trouble}
    return JSONResponse(value, 200 if trouble is None else 503)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return failure(error.status, error.message, error.hint)


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, PulsarLakeError)
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 502)
    return failure(status, " ".join(error.message.split()), error.hint)


async def _http_failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return failure(error.status_code, error.detail)
