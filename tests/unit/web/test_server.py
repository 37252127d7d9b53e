"""The server itself: connections that ask nothing, or half of it, take nobody's place for long."""

import asyncio
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from offloader.web.connections import Rarely, connection_protocol, most_connections
from offloader.web.health import LOOP_SECONDS
from offloader.web.server import StatusServer, bind
from reader.clients import Clients
from tests.unit.web.test_ready import daemon
from tests.unit.web.world import NOWHERE, World


@contextmanager
def serving(said: Callable[[str], None] = pytest.fail, **more: float) -> Iterator[StatusServer]:
    config = World().config
    with (
        daemon(NOWHERE, "shop/live/orders") as made,
        Clients(config) as clients,
        bind(config.http) as listening,
        StatusServer(
            clients,
            config.offload,
            config.http,
            made,
            listening,
            stopping=lambda: False,
            said=said,
            **more,
        ) as found,
    ):
        yield found


@pytest.fixture
def served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StatusServer]:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    with serving(**getattr(request, "param", {})) as found:
        yield found


def connect(served: StatusServer | str) -> socket.socket:
    url = served if isinstance(served, str) else served.url
    port = int(url.rstrip("/").rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def ask(one: socket.socket) -> bytes:
    """The status of a request on a connection that is kept."""
    one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    heard = b""
    while b"\r\n\r\n{" not in heard:
        more = one.recv(1 << 16)
        assert more, "it is still there"
        heard += more
    return heard[9:12]


def health(url: str) -> int:
    """The status of a request on a connection of its own."""
    return httpx.get(f"{url}healthz", timeout=60).status_code


def test_connections_that_ask_nothing_take_nobodys_place(served: StatusServer) -> None:
    with ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connect(served))
        asked = [stack.enter_context(connect(served)) for _ in range(40)]
        assert {ask(one) for one in asked} == {b"200"}
        assert health(served.url) == 200


def flooded() -> None:
    """In a process of its own: what 300 connections leave of 256 file descriptors."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    lines: list[str] = []
    with serving(lines.append) as found, ExitStack() as files:
        print(found.url, flush=True)
        sys.stdin.readline()
        for _ in range(100):
            files.enter_context(open("/dev/null"))  # noqa: PTH123
        print(len(lines), flush=True)
        sys.stdin.readline()


def test_more_connections_than_the_process_may_open(tmp_path: Path) -> None:
    code = "from spark_ext.without_pandas import keep_out_pandas; keep_out_pandas()\n"
    code += "from tests.unit.web.test_server import flooded; flooded()"
    with (
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PULSAR_LAKE_STATE": str(tmp_path)},
        ) as process,
        ExitStack() as stack,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().strip()
        for _ in range(300):
            stack.enter_context(connect(url))
        assert health(url) == 200
        process.stdin.write("\n")
        process.stdin.flush()
        said = process.stdout.readline().strip()
        assert said == "0", "it opens its own files, and had nothing to say"
        assert health(url) == 200
        _, err = process.communicate("\n", timeout=120)
        assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("served", [{"request_seconds": 25.0}], indirect=True)
def test_a_connection_without_a_whole_request_is_given_up(
    served: StatusServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = 0.0
    monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda self: time.monotonic() + ahead)
    with ExitStack() as stack:
        silent, slow, second, body, fine = (stack.enter_context(connect(served)) for _ in range(5))
        slow.sendall(b"GET /healthz HTT")
        assert ask(second) == ask(fine) == b"200"
        second.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        body.sendall(
            b"POST /api/topics/shop/live/orders/offload HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 99\r\n\r\nhalf of"
        )
        for _ in range(2):  # each time half of what they have, and a little more
            slow.sendall(b"P")  # a byte now and then is no request
            assert ask(fine) == b"200"
            ahead += 13
            assert ask(fine) == b"200"
            assert health(served.url) == 200
        assert _closed(slow)
        assert silent.recv(1) == second.recv(1) == b"", "closed"
        while body.recv(1 << 16):  # the refusal, and then the end
            pass
        assert ask(fine) == b"200", "it is still there"


def _closed(one: socket.socket) -> bool:
    try:
        return not one.recv(1)
    except ConnectionResetError:
        return True


class Deadlines(asyncio.SelectorEventLoop):
    """Deadlines that pass when a test says so: (seconds, handle)."""

    def __init__(self) -> None:
        super().__init__()
        self.set: list[tuple[float, asyncio.TimerHandle]] = []

    def call_later(  # type: ignore[override]
        self, delay: float, *arguments: Any, **more: Any
    ) -> asyncio.TimerHandle:
        handle = super().call_later(1_000_000, *arguments, **more)
        self.set.append((delay, handle))
        return handle

    def pass_last(self) -> float:
        """Its seconds."""
        seconds, handle = self.set[-1]
        assert not handle.cancelled()
        handle._run()  # noqa: SLF001 - asyncio has no other way to make time pass
        return seconds


class Transport(asyncio.Transport):
    def __init__(self, closed: list[Any]) -> None:
        super().__init__()
        self._closed = closed

    def abort(self) -> None:
        self._closed.append(self)

    def write(self, data: Any) -> None:
        pass

    def is_closing(self) -> bool:
        return self in self._closed


class Connections:
    """Connections of one server, three at most; what is asked is never answered."""

    def __init__(self, loop: Deadlines) -> None:
        self.loop = loop
        self.closed: list[Any] = []
        self._config = uvicorn.Config(_never, lifespan="off", log_config=None)
        self._protocol = connection_protocol(3, 10.0, 20.0)

    def make(self) -> tuple[Transport, Any]:
        transport = Transport(self.closed)
        made = self._protocol(self._config, ServerState(), {}, self.loop)
        made.connection_made(transport)
        return transport, made


@pytest.fixture
def connections() -> Iterator[Connections]:
    loop = Deadlines()
    try:
        yield Connections(loop)
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    finally:
        loop.close()


def test_the_longest_waiting_connection_makes_room(connections: Connections) -> None:
    """Whatever a client is being answered goes on."""
    (busy, asking), (first, _), (second, _) = (connections.make() for _ in range(3))
    asking.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    connections.make()
    assert connections.closed == [first]
    connections.make()
    assert connections.closed == [first, second]
    assert busy not in connections.closed


def test_a_deadline_is_for_a_whole_request_and_for_its_response(connections: Connections) -> None:
    transport, slow = connections.make()
    for byte in b"GET / HTTP/1.1":
        slow.data_received(bytes([byte]))
    assert len(connections.loop.set) == 1, "set once, whatever comes"
    assert connections.loop.pass_last() == 10.0
    unread, asking = connections.make()
    asking.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connections.loop.pass_last() == 20.0
    assert connections.closed == [transport, unread]


async def _never(scope: Scope, receive: Receive, send: Send) -> None:
    await asyncio.Event().wait()


def test_the_same_text_is_said_once_a_minute() -> None:
    said: list[str] = []
    now = 0.0
    rarely = Rarely(said.append, lambda: now)
    for _ in range(50_000):
        rarely("too many files")
    rarely("other")
    now = 60.0
    rarely("too many files")
    assert said == ["too many files", "other", "too many files"]


@pytest.mark.parametrize(("limit", "most"), [(256, 64), (65_536, 64), (100, 25), (16, 8)])
def test_how_many_connections(monkeypatch: pytest.MonkeyPatch, limit: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert most_connections() == most


def test_the_page_goes_by_the_daemons_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    config = World().config
    now = 5.0
    with (
        daemon(NOWHERE, "shop/live/orders", elapsed=lambda: now) as made,
        Clients(config) as clients,
        bind(config.http) as listening,
        StatusServer(
            clients,
            config.offload,
            config.http,
            made,
            listening,
            stopping=lambda: False,
            said=pytest.fail,
        ) as serving,
    ):
        made.scheduler.beat()
        assert made.scheduler.turned_at == now
        now = 12.5
        metrics = httpx.get(f"{serving.url}metrics", timeout=60).text
        assert "pulsar_lake_loop_age_seconds 7.5\n" in metrics
        assert health(serving.url) == 200
        now += 2 * LOOP_SECONDS
        assert health(serving.url) == 503
