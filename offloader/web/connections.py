"""Connections of the HTTP server: few, and none that takes its time.

What uvicorn leaves open: it has no deadline for a request that has begun, a limit on connections
that refuses probes as well, and none for a response that nobody reads. So here

- a request has to be there, body and all, within ``request_seconds`` of the connection's making or
  of the response before; its response is to be taken within ``response_seconds``;
- there are ``most_connections()`` at a time. One more takes the place of the one that has waited
  longest for its request, so that probes are answered however many connections there are;
- what a client has asked for is not waited for once the client has gone: there are no more requests
  than connections.
"""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# asyncio accepts up to so many in one go, before the first of them is made a connection.
ACCEPTED_AT_ONCE = 16
_QUEUED = 128
_MOST = 64
_KEEP_QUIET_SECONDS = 60.0
_MOST_TEXTS = 100


def most_connections() -> int:
    """Far below what the process may open: files and sockets of the offloader come first."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST if limit == resource.RLIM_INFINITY else max(min(_MOST, limit // 4), 8)


class Rarely:
    """Says the same text once a minute. ``clock``: seconds."""

    def __init__(self, said: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._said = said
        self._clock = clock
        self._last: dict[str, float] = {}

    def __call__(self, text: str) -> None:
        now = self._clock()
        if now - self._last.get(text, float("-inf")) < _KEEP_QUIET_SECONDS:
            return
        if len(self._last) >= _MOST_TEXTS:
            self._last.clear()
        self._last[text] = now
        self._said(text)


class LimitedServer(uvicorn.Server):
    """Accepts a few connections at once; ``said`` gets what fails in the loop, one line each."""

    def __init__(self, config: uvicorn.Config, said: Callable[[str], None]) -> None:
        super().__init__(config)
        self._said = said

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(self._failed)
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(_QUEUED)  # uvicorn has one number for this and ``ACCEPTED_AT_ONCE``

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        cause = f": {type(error).__name__}: {error}" if error else ""
        self._said(f"error: the status page: {context.get('message')}{cause}")


class CancelOnDisconnect:
    """Ends a request when its client has gone. For an app that reads no bodies: they end here."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = asyncio.ensure_future(self._app(scope, receive, send))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            answer.cancel()  # no effect on one that is done
            gone.cancel()
        await asyncio.wait((answer,))
        if not answer.cancelled():
            answer.result()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def connection_protocol(
    most: int, request_seconds: float, response_seconds: float
) -> type[H11Protocol]:
    """HTTP of one server, whose connections know each other."""
    connections: dict[Connection, None] = {}  # the one whose state is oldest comes first

    class Connection(H11Protocol):
        deadline: asyncio.TimerHandle | None = None
        is_answering = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(connections) >= most:
                waiting = (one for one in connections if not one.is_answering)
                next(waiting, next(iter(connections))).abort()
            self.enter(answering=False)

        def connection_lost(self, exc: Exception | None) -> None:
            self.forget()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            cycle = self.cycle
            whole = cycle is not None and not cycle.more_body and not cycle.response_complete
            if whole and not self.is_answering and self in connections:
                self.enter(answering=True)

        def on_response_complete(self) -> None:
            if self in connections:
                self.enter(answering=False)
            super().on_response_complete()

        def enter(self, *, answering: bool) -> None:
            self.forget()
            self.is_answering = answering
            connections[self] = None
            seconds = response_seconds if answering else request_seconds
            self.deadline = self.loop.call_later(seconds, self.abort)

        def abort(self) -> None:
            self.forget()
            self.transport.abort()  # not close, which waits for what nobody reads

        def forget(self) -> None:
            connections.pop(self, None)
            if self.deadline is not None:
                self.deadline.cancel()

    return Connection
