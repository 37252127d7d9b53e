"""The HTTP server: a socket that is bound at once, and a thread that serves until ``close``.

It reads what the offloader has in memory, Pulsar's admin and the storage. The one thing that it
changes is by a POST that has the token: it asks the scheduler to offload a topic now.
"""

import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import uvicorn
from starlette.types import Receive, Scope, Send

from offloader.config import HttpConfig, OffloadConfig
from offloader.schedule import Scheduler
from offloader.service import LastErrors
from offloader.service.monitor import Monitor
from offloader.web import connections
from offloader.web.app import App, ServedProcess
from offloader.web.gauges import Gauges
from offloader.web.overview import Overview
from offloader.web.security import Security
from offloader.web.topic_detail import TopicDetail
from reader.clients import Clients
from reader.closing import Closing
from reader.errors import ConfigurationError, UnavailableError, plain_text
from reader.storage import Storage

_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_REQUEST_SECONDS = 30.0
_RESPONSE_SECONDS = 150.0  # the slowest answer takes a minute
_HEADER_BYTES = 16 << 10


def bind(config: HttpConfig) -> socket.socket:
    """The socket to listen on. Raises ConfigurationError where that cannot be."""
    host, port = config.endpoint
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, number)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(128)
        except OSError:
            found.close()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {config.address}: {error.strerror or error}",
            hint="is another offloader running? set http.address to another port, or to off",
        ) from error
    return found


class ServedDaemon(Protocol):
    """What the page shows and asks (``Daemon``). ``jobs``: how many Spark jobs there were.

    ``elapsed``: seconds of the monotonic clock that all of it goes by.
    """

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def monitor(self) -> Monitor: ...

    @property
    def jobs(self) -> int: ...

    @property
    def elapsed(self) -> Callable[[], float]: ...


class StatusServer(Closing):
    """Serves from its making until ``close``, on ``listening``.

    ``said`` gets what fails here, for the log: one line each, the same one once a minute.
    ``request_seconds``: how long a connection may stay without a whole request.
    """

    def __init__(
        self,
        clients: Clients,
        offload: OffloadConfig,
        http: HttpConfig,
        daemon: ServedDaemon,
        listening: socket.socket,
        *,
        stopping: Callable[[], bool],
        said: Callable[[str], None],
        request_seconds: float = _REQUEST_SECONDS,
    ) -> None:
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # ``said`` gets its failures
        said = self._said = connections.Rarely(said, daemon.elapsed)
        storage, settings = clients.storage, clients.settings
        last_errors = LastErrors(settings.pulsar.admin_url, settings.storage.uri)
        overview = Overview(daemon.scheduler, daemon.monitor, stopping, daemon.elapsed)
        daemon.monitor.metrics.registry.register(
            Gauges(
                overview,
                daemon.scheduler,
                lambda: daemon.jobs,
                by_topic=http.topic_labels,
                elapsed=daemon.elapsed,
            )
        )
        self._app = App(
            http,
            daemon.scheduler,
            daemon.monitor,
            overview,
            TopicDetail(
                clients, offload.subscription, last_errors.failures, daemon.scheduler.looked
            ),
            ServedProcess(
                check_storage=lambda: check_storage(storage),
                stopping=stopping,
                log=said,
                interval=offload.interval.total_seconds(),
                elapsed=daemon.elapsed,
            ),
        ).asgi()
        host, port = listening.getsockname()[:2]
        self.url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
        self._server = connections.LimitedServer(
            uvicorn.Config(
                _Quiet(self._app),
                loop="asyncio",
                http=connections.connection_protocol(
                    connections.most_connections(), request_seconds, _RESPONSE_SECONDS
                ),
                backlog=connections.ACCEPTED_AT_ONCE,
                h11_max_incomplete_event_size=_HEADER_BYTES,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=int(_REQUEST_SECONDS),
                timeout_graceful_shutdown=1,
            ),
            said,
        )
        self._listening = listening
        self._thread = threading.Thread(target=self._serve, daemon=True, name="web")
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._listening])
        except BaseException as error:  # noqa: BLE001 - offloading goes on without it
            self._said(f"error: the status page has stopped: {type(error).__name__}: {error}")

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)


class _Quiet:
    """What the app has logged and answered with 500 is not raised into uvicorn's log as well."""

    def __init__(self, app: Security) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(Exception):
            await self._app(scope, receive, send)


def check_storage(storage: Storage) -> None:
    """One small request. Raises UnavailableError where it is not answered."""
    filesystem, root = storage.filesystem()
    try:
        filesystem.get_file_info(root)
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(plain_text(error)) from error
