"""Requests to Pulsar's admin REST: who asks, which broker answers, what it refuses.

A broker redirects what another one is responsible for, and brokers list each other. A token goes
to hosts that the settings name (``admin_url``, ``service_url``, ``broker_hosts``), to those that
the admin there itself says are its brokers, and to those that it has a topic looked up at; whatever
else is named gets none.
"""

import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import partial
from http.cookiejar import CookieJar
from threading import Lock
from typing import Any
from urllib.parse import unquote

import httpx

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import (
    ConfigurationError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnknownBrokerError,
)
from reader.pulsar.answers import bounded_send
from reader.pulsar.credentials import Identity, current_identity, current_token
from reader.rotation import Rotating
from reader.tls import certificate_error, client_context

_MOST_REDIRECTS = 5
_MOST_BYTES = 256 << 20
"""Of an answer: the statistics of a broker with 100,000 topics are half of it."""
MOST_TIMEOUTS = 10
"""``timeout`` is how long a broker may be silent; an answer has as many of them to come whole. With
30 s the metadata of 10,000 ledgers, some 10 MB, come at 300 kbit/s.
"""
_NO_OWNER = "find owner"  # "Can't find owner for topic", "Failed to find ownership": as it restarts
_BROKER_URLS = ("httpUrl", "httpUrlTls", "brokerUrl", "brokerUrlTls")
_LOOKUP = "/lookup/v2/topic/"
_TOPIC = re.compile(
    r"/admin/(?:v2/persistent|v2/(?P<schemas>schemas)|v3/transactions/[^/]+)"
    r"/(?P<topic>[^/]+/[^/]+/[^/]+)(?:/|$)"
)
"""The paths of what a topic's owner answers. What is asked about a namespace any broker answers."""

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
        self._hosts = _named_hosts(config)  # replaced, never changed: read without a lock
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

        Raises ConfigurationError for certificates that are not accepted or cannot be used, a
        redirection from TLS to none, or a name that is none; UnknownBrokerError where a token
        would go to a host which is none of the cluster's; UnavailableError where nobody answers.
        """
        if {".", ".."} & set(path.split("/")):  # httpx would ask for something else
            raise ConfigurationError(f"there is nothing in Pulsar at {path}: '..' is no name")
        token = current_token(self.config)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            # By hand: httpx would leave the token out where another broker owns the topic.
            asked = self._http.build_request(method, path, headers=headers, **kwargs)
            for _ in range(_MOST_REDIRECTS):
                if token:
                    self._require_known(asked.url, path, headers)
                answer = self._send(asked)
                if answer.status_code not in (307, 308):
                    return answer
                again = {name: kwargs[name] for name in ("json", "timeout") if name in kwargs}
                asked = self._http.build_request(
                    method, self._elsewhere(answer), headers=headers, **again
                )
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
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

    def _require_known(self, url: httpx.URL, path: str, headers: Mapping[str, str]) -> None:
        """Raises UnknownBrokerError for a host that is none of the cluster's."""
        if self._is_known(url):
            return
        self._hosts |= self._own_hosts(path, headers)
        if not self._is_known(url):
            raise UnknownBrokerError(
                f"the Pulsar admin at {self.url} names {_host(url)}, which it does not have as a "
                "broker",
                hint="if the token may be shown there, name the host in pulsar.broker_hosts",
            )

    def _is_known(self, url: httpx.URL) -> bool:
        spellings = (_host(url), url.host.lower())  # a pattern may be in Unicode
        patterns = [one.lower() for one in self.config.broker_hosts]
        return _host(url) in self._hosts or any(
            fnmatchcase(host, one) for host in spellings for one in patterns
        )

    def _own_hosts(self, path: str, headers: Mapping[str, str]) -> frozenset[str]:
        """The hosts of the cluster's brokers, or of the topic's, by the admin of the settings.

        Only superusers are told all brokers; who may look the topic up is told which has it.
        """
        asked = self._http.build_request("GET", "/admin/v2/brokers", headers=headers)
        listed = _told(self._send(asked))
        if isinstance(listed, list):
            return _hosts_of(f"//{one}" for one in listed)
        if found := _TOPIC.search(path):
            # Of schemas the name is quoted twice.
            topic = unquote(found["topic"]) if found["schemas"] else found["topic"]
            return _hosts_of(self._looked_up(topic, headers))
        return frozenset()

    def _looked_up(self, topic: str, headers: Mapping[str, str]) -> Iterator[str]:
        """URLs of the topic's broker, and of those that the lookup is sent on to.

        A topic that no broker has loaded is the leader's to assign, and the broker that it is
        assigned to takes it once it is asked: so the lookup is followed to its end. Each on the way
        is named by the one before, the first by the admin of the settings.
        """
        asked = self._http.build_request("GET", f"{_LOOKUP}persistent/{topic}", headers=headers)
        for _ in range(_MOST_REDIRECTS):
            answer = self._send(asked)
            if answer.status_code not in (307, 308):
                said = _told(answer)
                if isinstance(said, dict):
                    yield from (str(said.get(key) or "") for key in _BROKER_URLS)
                return
            to = self._elsewhere(answer)
            if not to.path.startswith(_LOOKUP):
                return  # a login page or the like: no broker's
            yield str(to)
            asked = self._http.build_request("GET", to, headers=headers)

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

        Raises NotFoundError (404), UnavailableError (5xx, and while no broker has the topic),
        ConfigurationError (any other).
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
        away = status >= 500 or (status == 412 and _NO_OWNER in reason)
        kind: type[PulsarLakeError] = UnavailableError if away else ConfigurationError
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
    seconds = MOST_TIMEOUTS * asked.extensions["timeout"]["read"]
    send = partial(bounded_send, http, asked, most=_MOST_BYTES, seconds=seconds)
    try:
        return send()
    except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
        # A connection that was kept may have been closed by the other side meanwhile. What is
        # asked here can be asked twice.
        return send()


def _named_hosts(config: PulsarConfig) -> frozenset[str]:
    """Those of ``admin_url`` and of all brokers in ``service_url``."""
    brokers = config.service_url.partition("://")[2].split(",")
    return _hosts_of([config.admin_url, *(f"//{one}" for one in brokers)])


def _hosts_of(urls: Iterable[str]) -> frozenset[str]:
    found = set()
    for url in urls:
        # An address that is none: whoever connects to it is told.
        with suppress(httpx.InvalidURL, ValueError):
            found.add(_host(httpx.URL(url)))
    return frozenset(found - {""})


def _host(url: httpx.URL) -> str:
    """In lower case, and in punycode where it is not ASCII: one spelling, however it came."""
    return url.raw_host.decode("ascii").lower()


def _told(answer: httpx.Response) -> Any:
    """The JSON of a 200; None for any other."""
    try:
        return answer.json() if answer.status_code == 200 else None
    except ValueError:
        return None


def date_ms(answer: httpx.Response) -> int | None:
    """When it was answered by the server's clock, in whole seconds (ms since the epoch)."""
    try:
        return int(parsedate_to_datetime(answer.headers.get("Date", "")).timestamp() * 1000)
    except ValueError:
        return None


def reason_of(answer: httpx.Response) -> str:
    """What Pulsar says of a request that it refused."""
    try:
        return str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        text = answer.text.strip().split("\n")[0][:200]
        return text if text and not text.startswith("<") else f"HTTP {answer.status_code}"
