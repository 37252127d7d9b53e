"""Requests to Pulsar's admin REST: who asks, which broker answers, what it refuses."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from threading import Lock
from typing import Any
from urllib.request import getproxies

import httpx

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
)
from reader.pulsar.credentials import current_token
from reader.tls import certificate_error, client_context

__all__ = ["AdminHttp", "AdminPart", "reason_of"]

_MOST_REDIRECTS = 5


class AdminHttp(Closing):
    """One connection pool. Thread-safe. ``url``: of the admin, without a slash at its end."""

    def __init__(self, config: PulsarConfig) -> None:
        self.config = config
        self.url = config.admin_url.rstrip("/")
        self._secure: httpx.Client | None = None
        self._securing = Lock()
        try:
            # One that trusts nobody takes no time to make.
            self._http = self._client(
                self._context()
                if self.url.lower().startswith("https:") or _proxies_with_tls()
                else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            )
        except (httpx.InvalidURL, OSError) as error:
            raise ConfigurationError(f"pulsar.admin_url {self.url}: {error}") from error

    def _client(self, context: ssl.SSLContext) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, timeout=self.config.timeout.total_seconds(), verify=context
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
            self._secure.close()

    def token(self) -> str | None:
        """The token that is shown now; None where there is none. Raises as ``current_token``."""
        return current_token(self.config)

    def get(self, path: str, what: str, **params: str) -> Any:
        """The answer's JSON. Raises what ``request`` and ``check`` raise."""
        return self.check(self.request("GET", path, params=params), what).json()

    def send(
        self, method: str, path: str, what: str, body: object, fine: tuple[int, ...] = ()
    ) -> None:
        """Send a JSON body. A status among ``fine`` is none of the errors that ``check`` raises."""
        answer = self.request(method, path, json=body)
        if answer.status_code not in fine:
            self.check(answer, what)

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        """The answer, whatever it says, of the broker that is responsible for ``path``.

        Raises ConfigurationError for a certificate that is not accepted, or a redirection from
        TLS to none; UnavailableError where nobody answers.
        """
        token = self.token()
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
        http = self._http
        if asked.url.scheme == "https" and not self.url.lower().startswith("https:"):
            # A redirect to a broker that has TLS: rare, and so its context is made only now.
            with self._securing:
                self._secure = self._secure or self._client(self._context())
            http = self._secure
        try:
            return http.send(asked)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            # A connection that was kept may have been closed by the other side meanwhile. What is
            # asked here can be asked twice.
            return http.send(asked)

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


def _proxies_with_tls() -> bool:
    return any(proxy.lower().startswith("https:") for proxy in getproxies().values())


def reason_of(answer: httpx.Response) -> str:
    """What Pulsar says of a request that it refused."""
    try:
        return str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text.strip().split("\n")[0][:200]
        return text if text and not text.startswith("<") else f"HTTP {answer.status_code}"
