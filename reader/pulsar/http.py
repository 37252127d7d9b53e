"""Requests to Pulsar's admin REST: who asks, which broker answers, what it refuses."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from threading import Lock
from typing import Any

import httpx

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
)
from reader.pulsar.credentials import Identity, current_identity, current_token
from reader.rotation import Rotating
from reader.tls import certificate_error, client_context

__all__ = ["AdminHttp", "AdminPart", "reason_of"]

_MOST_REDIRECTS = 5

_LIMITS = httpx.Limits(max_connections=400, max_keepalive_connections=20, keepalive_expiry=5.0)
"""More connections than the busiest process, the offloader, asks on at once: 32 turns, 8
observations and 4 queries of its page, each with up to 8 requests side by side. The others are
httpx's defaults.
"""


@dataclass(slots=True, eq=False)
class _Secure:
    """Connections with the certificates of one context. ``users``: requests that are under way."""

    context: ssl.SSLContext
    http: httpx.Client
    users: int = 0


class AdminHttp(Closing):
    """One connection pool, and another with TLS. Thread-safe.

    ``url``: of the admin, without a slash at its end. The connections with TLS are opened anew once
    the files of certificates are others. ``clock``: seconds.
    """

    def __init__(
        self, config: PulsarConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.config = config
        self.url = config.admin_url.rstrip("/")
        self._cookies = CookieJar()  # of both pools: a balancer may know us by one
        self._contexts = Rotating(
            self._context,
            config.tls_trust_certs_file,
            config.tls_certificate_file,
            config.tls_key_file,
            clock=clock,
        )
        self._secure: _Secure | None = None
        self._choosing, self._securing = Lock(), Lock()
        try:
            # Without TLS: a context that trusts nobody takes no time to make. The connection to a
            # proxy with TLS is httpx's, which trusts the public authorities there.
            self._http = self._client(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
            if self.url.lower().startswith("https:"):
                with self._secured():
                    pass  # settings of no use are an error now
        except (httpx.InvalidURL, OSError) as error:
            raise ConfigurationError(f"pulsar.admin_url {self.url}: {error}") from error

    def _client(self, context: ssl.SSLContext) -> httpx.Client:
        return httpx.Client(
            base_url=self.url,
            timeout=self.config.timeout.total_seconds(),
            verify=context,
            cookies=self._cookies,
            limits=_LIMITS,
        )

    def _context(self) -> ssl.SSLContext:
        config = self.config
        return client_context(
            "pulsar",
            trust=config.tls_trust_certs_file,
            certificate=config.tls_certificate_file,
            key=config.tls_key_file,
            verify_hostname=config.tls_verify_hostname,
        )

    def close(self) -> None:
        """Give up the connections."""
        self._http.close()
        if self._secure is not None:
            self._secure.http.close()

    def identity(self) -> Identity:
        """What requests are made with now. Raises as ``current_token``."""
        return current_identity(self.config)

    def get(self, path: str, what: str, **params: str) -> Any:
        """The answer's JSON. Raises what ``request`` and ``check`` raise."""
        return self.check(self.request("GET", path, params=params), what).json()

    def send(self, method: str, path: str, what: str, body: object) -> None:
        """Send a JSON body. Raises what ``request`` and ``check`` raise."""
        self.check(self.request(method, path, json=body), what)

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        """The answer, whatever it says, of the broker that is responsible for ``path``.

        Raises ConfigurationError for certificates that are not accepted or cannot be used, or a
        redirection from TLS to none; UnavailableError where nobody answers.
        """
        token = current_token(self.config)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # By hand: httpx would leave the token out where another broker owns the topic.
            asked = self._http.build_request(method, path, headers=headers, **kwargs)
            for _ in range(_MOST_REDIRECTS):
                answer = self._send(asked)
                if answer.status_code not in (307, 308):
                    return answer
                asked = self._http.build_request(
                    method, self._elsewhere(answer), headers=headers, json=kwargs.get("json")
                )
        except httpx.HTTPError as error:
            if reason := certificate_error(error):
                raise ConfigurationError(
                    f"the certificate of the Pulsar admin at {self.url} is not accepted: {reason}",
                    hint="check pulsar.tls_trust_certs_file and the host in pulsar.admin_url",
                ) from error
            raise UnavailableError(
                f"no answer from the Pulsar admin at {self.url}: {error or type(error).__name__}",
                hint="check pulsar.admin_url and that the broker runs",
            ) from error
        raise UnavailableError(f"the brokers behind {self.url} redirect {path} in circles")

    def _send(self, asked: httpx.Request) -> httpx.Response:
        # A redirect from a broker without TLS to one that has it is rare: its context is made then.
        if asked.url.scheme == "https":
            with self._secured() as http:
                return _send_by(http, asked)
        return _send_by(self._http, asked)

    @contextmanager
    def _secured(self) -> Iterator[httpx.Client]:
        """The connections with TLS, for one request: those of the files as they are now."""
        # One after the other, or an older context might come after a newer one; what ends
        # meanwhile does not wait for certificates that are loaded.
        with self._choosing:
            context = self._contexts.current()
            with self._securing:
                mine, old = self._secure, None
                if mine is None or mine.context is not context:
                    old, mine = mine, _Secure(context, self._client(context))
                    self._secure = mine
                mine.users += 1
                if old is not None and not old.users:
                    old.http.close()
        try:
            yield mine.http
        finally:
            with self._securing:
                mine.users -= 1
                if mine is not self._secure and not mine.users:
                    mine.http.close()

    def _elsewhere(self, answer: httpx.Response) -> httpx.URL:
        to = answer.request.url.join(answer.headers.get("Location", ""))
        if answer.request.url.scheme == "https" != to.scheme:
            raise ConfigurationError(
                f"the Pulsar admin at {self.url} redirects from TLS to {to.scheme}://{to.host}",
                hint="brokers need webServicePortTls: a token is not sent in the clear",
            )
        return to

    def check(self, answer: httpx.Response, what: str) -> httpx.Response:
        """The answer, if it is a success; ``what`` it is about is named in the error.

        Raises NotFoundError (404), UnavailableError (5xx), ConfigurationError (any other).
        """
        status = answer.status_code
        if answer.is_success:
            return answer
        reason = reason_of(answer)
        if status == 404:
            raise NotFoundError(f"{what} does not exist", hint=reason)
        if status in (401, 403):
            raise ConfigurationError(
                f"no permission for {what}",
                hint=f"check the identity in [pulsar] and the role's permissions: {reason}",
            )
        kind: type[PulsarLakeError] = UnavailableError if status >= 500 else ConfigurationError
        raise kind(f"the Pulsar admin refused {what}: HTTP {status}", hint=reason)


class AdminPart:
    """What the parts of ``AdminClient`` share: connections and time (``clock``, ``sleep``: s)."""

    def __init__(
        self, http: AdminHttp, *, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self.http = http
        self.clock = clock
        self.sleep = sleep


def _send_by(http: httpx.Client, asked: httpx.Request) -> httpx.Response:
    try:
        return http.send(asked)
    except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
        # A connection that was kept may have been closed by the other side meanwhile. What is
        # asked here can be asked twice.
        return http.send(asked)


def reason_of(answer: httpx.Response) -> str:
    """What Pulsar says of a request that it refused."""
    try:
        return str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text.strip().split("\n")[0][:200]
        return text if text and not text.startswith("<") else f"HTTP {answer.status_code}"
