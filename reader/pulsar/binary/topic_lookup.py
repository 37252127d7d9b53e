"""Which broker serves a topic, and a connection to it.

A broker is asked by LOOKUP, and names another one to ask or the one that serves the topic; a proxy
says that it is to be had through the proxy alone. With TLS we stay with TLS.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.pulsar.binary.broker_connection import BrokerConnection
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.service_address import Address, parse_service_url
from reader.pulsar.credentials import current_identity
from reader.wire.pulsar_pb2 import CommandLookupTopic, CommandLookupTopicResponse

_MOST_REDIRECTS = 20
_PART = 3
"""Of ``pulsar.timeout``, for a connection to be opened, and for each host at least."""

T = TypeVar("T")

Served = tuple[Address, str | None]
"""Where to connect to, and the broker behind it if that is a proxy."""


class BrokerConnections(Closing):
    """Connections by broker, opened when first needed and kept; for one thread.

    One for requests and one for entries: entries may wait in it as long as their reader does.
    """

    def __init__(
        self, config: PulsarConfig, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._clock = clock
        self._part = config.timeout.total_seconds() / _PART
        self._hosts = parse_service_url(config.service_url)
        self._first = 0  # of the hosts: the one that answered last
        self._open: dict[tuple[Served, bool], BrokerConnection] = {}

    def close(self) -> None:
        """Close them all."""
        for one in self._open.values():
            one.close()
        self._open.clear()

    def resume(self, most: int) -> None:
        """Close those that ended, or were opened with what has been rotated, or have got more."""
        if not self._open:
            return
        identity = current_identity(self._config)
        for one in self._open.values():
            if one.identity != identity:
                one.close()
            if not one.broken:
                try:
                    one.drain(most)
                except UnavailableError:
                    one.close()
        self.drop_broken()

    def drop_broken(self) -> None:
        for served, one in list(self._open.items()):
            if one.broken:
                one.close()
                del self._open[served]

    def connection(self, served: Served, deadline: float, *, entries: bool) -> BrokerConnection:
        """The open connection, or a new one. Raises as ``BrokerClient.read``."""
        key = (served, entries)
        known = self._open.get(key)
        if known is None or known.broken:
            # Read before it is used: what changes meanwhile is another identity.
            identity = current_identity(self._config)
            self._open[key] = known = BrokerConnection(
                *served,
                self._config,
                identity,
                seconds=self._connect_seconds(deadline),
                clock=self._clock,
            )
        return known

    def served(self, topic: str, deadline: float) -> Served:
        """Where the topic is served now. Raises as ``BrokerClient.read``.

        Of several hosts each has a part of the time, beginning with the one that answered last.
        """
        return self._of_hosts(lambda turn, until: self._served_by(turn, topic, until), deadline)

    def first(self, deadline: float) -> BrokerConnection:
        """A connection to a host of the service URL. Raises as ``BrokerClient.read``."""
        return self._of_hosts(
            lambda turn, until: self.connection((self._hosts[turn], None), until, entries=False),
            deadline,
        )

    def _of_hosts(self, ask: Callable[[int, float], T], deadline: float) -> T:
        hosts = len(self._hosts)
        for number in range(hosts):
            turn = (self._first + number) % hosts
            now = self._clock()
            part = max((deadline - now) / (hosts - number), self._part)
            try:
                found = ask(turn, min(now + part, deadline))
            except UnavailableError:
                if number == hosts - 1:
                    raise
            else:
                self._first = turn
                return found
        raise AssertionError("a service URL has a host")

    def _served_by(self, host: int, topic: str, deadline: float) -> Served:
        """What the host says, and those that it names."""
        asked: Served = (self._hosts[host], None)
        connection = self.connection(asked, deadline, entries=False)
        authoritative = False
        for _ in range(_MOST_REDIRECTS):
            located = connection.request(
                CommandLookupTopic(topic=topic, authoritative=authoritative),
                CommandLookupTopicResponse,
                deadline,
                lambda failed: refusal(failed, topic),
            )
            there = self._address(
                asked[0],
                located.brokerServiceUrl,
                located.brokerServiceUrlTls,
                by_proxy=located.proxy_through_service_url,
            )
            if located.response == CommandLookupTopicResponse.Connect:
                return there
            asked, authoritative = there, located.authoritative
            connection = self.connection(asked, deadline, entries=False)
        raise UnavailableError(f"the brokers send each other in circles for {topic}")

    def assigned(self, served: Served, url: str, tls_url: str) -> Served | None:
        """Where a topic that ``served`` gave up moves to, if the broker says so."""
        if not (tls_url if served[0].tls else url):
            return None
        return self._address(served[0], url, tls_url, by_proxy=served[1] is not None)

    def _address(self, asked: Address, plain_url: str, tls_url: str, *, by_proxy: bool) -> Served:
        url = tls_url if asked.tls else plain_url
        if not url:
            kind = "pulsar+ssl" if asked.tls else "pulsar"
            raise ConfigurationError(
                f"the broker {asked} names no {kind}:// address of the topic's broker",
                hint="check pulsar.service_url and the brokers' advertised addresses",
            )
        there = parse_service_url(url)[0]
        if there.tls != asked.tls:
            raise ConfigurationError(f"the broker {asked} names {url}: with TLS or without?")
        return (asked, str(there)) if by_proxy else (there, None)

    def _connect_seconds(self, deadline: float) -> float:
        return max(min(deadline - self._clock(), self._part), 0.001)
