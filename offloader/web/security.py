"""Security of the HTTP server: the Host header, the token, the headers of every response.

A page of another site cannot read responses (no CORS headers), nor make a change (which requires a
header with the token). It could still point its own name to this server (DNS rebinding), so a name
in the Host header has to be ``localhost`` or one of ``http.hosts``, whatever address the server
listens on. Addresses are accepted: no name service is asked for them.
"""

import hmac
import ipaddress
import re
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from offloader.config import HttpConfig

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

_HOST = re.compile(r"(?:\[(?P<six>[^\[\]]*)\]|(?P<name>[^:\[\]]*))(?::\d{1,5})?", re.ASCII)
"""A Host header: a name or an address, in brackets if it is of IPv6, and a port if there is one."""


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
            403, "requests that make changes are disabled", "set http.token or http.token_file"
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
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        if found["six"] is not None:
            return _is_address(found["six"], ipaddress.IPv6Address)
        name = found["name"].lower()
        known = name in self._hosts or name == "localhost"
        return known or _is_address(name, ipaddress.IPv4Address)


def _is_address(text: str, kind: type[ipaddress.IPv4Address] | type[ipaddress.IPv6Address]) -> bool:
    """A literal address needs no name service, so it cannot be rebound."""
    try:
        kind(text)
    except ValueError:
        return False
    return True
