"""Security of the HTTP server: the Host header, the token, the headers of every response.

A page of another site cannot read responses (no CORS headers), nor make a change (which requires a
header with the token). It could still point its own name to this server (DNS rebinding), so on
loopback, and wherever ``http.hosts`` is set, a name in the Host header must be a known one.
"""

from __future__ import annotations

import hmac
import ipaddress
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offloader.config import HttpConfig

__all__ = ["RefusedError", "Security", "check_token", "failure"]

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class RefusedError(Exception):
    """A request is refused. ``status``: the HTTP status code."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


def failure(status: int, message: str, hint: str | None = None) -> Response:
    """An error as JSON."""
    value: dict[str, Any] = {"error": message} | ({"hint": hint} if hint else {})
    return JSONResponse(value, status)


def check_token(config: HttpConfig, authorization: str | None) -> None:
    """Raises RefusedError unless the header has the token, ConfigurationError for its file."""
    expected = config.secret()
    if not expected:
        raise RefusedError(
            403,
            "requests that make changes are disabled",
            "set http.token or http.token_file",
        )
    kind, _, given = (authorization or "").partition(" ")
    if kind.lower() != "bearer" or not given.strip():
        raise RefusedError(401, "a token is required", "Authorization: Bearer TOKEN")
    if not hmac.compare_digest(given.strip().encode(), expected.encode()):
        raise RefusedError(403, "wrong token", "see http.token or http.token_file")


class Security:
    """Refuses unknown hosts, and adds the headers."""

    def __init__(self, app: ASGIApp, config: HttpConfig) -> None:
        self._app = app
        self._hosts = frozenset(name.lower() for name in config.hosts)
        self._any_host = not self._hosts and not _is_loopback(config.endpoint[0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if not self._is_known(Headers(scope=scope).get("host", "")):
            refused = failure(421, "unknown Host", "http.hosts lists the names of this server")
            await refused(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)

    def _is_known(self, host: str) -> bool:
        if self._any_host:
            return True
        name = _without_port(host).lower()
        return name in self._hosts or name == "localhost" or _address(name) is not None


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_loopback(name: str) -> bool:
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A literal address needs no name service, so it cannot be rebound."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
