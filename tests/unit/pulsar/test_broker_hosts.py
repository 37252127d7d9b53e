"""Who gets the token when Pulsar's admin names another host, and how much may come back."""

import gzip
import json
import socket
import tracemalloc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from reader.config import PulsarConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.answers import TooLargeError, bounded_send
from testbed.serving import Asked, HttpAnswer
from testbed.serving import answering as http_answering

ORDERS = Partition(Topic("a", "b", "orders"), 0)
SUBSCRIPTIONS = "/admin/v2/persistent/a/b/orders-partition-0/subscriptions"
LOOKUP = "/lookup/v2/topic/persistent/a/b/orders-partition-0"
OF_TOPIC = "/admin/v2/persistent/a/b/orders/subscriptions"
BROKERS = "/admin/v2/brokers"


class Server:
    """Answers by path with JSON, a redirection (text) or 401; ``shown``: tokens by path."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = dict(answers)
        self.shown: dict[str, str | None] = {}
        self.port = 0


@contextmanager
def answering(answers: Mapping[str, object]) -> Iterator[Server]:
    server = Server(answers)

    def answer(asked: Asked) -> HttpAnswer:
        server.shown[asked.path] = asked.headers.get("Authorization")
        found = server.answers.get(asked.path)
        if isinstance(found, str):
            return 307, None, {"Location": found}
        return 401 if found is None else 200, json.dumps(found), {}

    with http_answering(answer) as url:
        server.port = int(url.rpartition(":")[2])
        yield server


def client(
    ours: Server, token: str | None = "t", hosts: tuple[str, ...] = (), host: str = "127.0.0.1"
) -> AdminClient:
    return AdminClient(
        PulsarConfig(
            admin_url=f"http://{host}:{ours.port}",
            service_url="pulsar://127.0.0.1:6650",
            token=SecretStr(token) if token else None,
            broker_hosts=list(hosts),
        )
    )


@pytest.fixture
def any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every host is this machine, whatever its name."""
    found = socket.getaddrinfo

    def here(host: object, *args: Any, **kwargs: Any) -> Any:
        return found("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", here)


@contextmanager
def redirecting(**answers: object) -> Iterator[tuple[Server, Server]]:
    """The configured admin, which redirects what is asked of the topic, and where it does to."""
    with answering({SUBSCRIPTIONS: []}) as other:
        there = f"http://localhost:{other.port}"
        more = {"brokers": BROKERS, "lookup": LOOKUP}
        found = {more[name]: value for name, value in answers.items()}
        found |= {SUBSCRIPTIONS: there + SUBSCRIPTIONS, OF_TOPIC: there + OF_TOPIC}
        with answering(found) as ours:
            yield ours, other


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"brokers": ["127.0.0.1:8080", "broker-2:8080"]},
        {"brokers": "http://localhost:1/admin/v2/brokers"},
        {"lookup": {"httpUrl": "http://broker-2:8080", "brokerUrl": "pulsar://broker-2:6650"}},
        {"lookup": ["http://localhost:8080"]},
        {"lookup": {"httpUrl": "http://[localhost"}},
        {"lookup": "http://localhost:1/login?to=/lookup/v2/topic/persistent/a/b/orders"},
        {"lookup": LOOKUP},
    ],
)
def test_a_host_that_is_none_of_the_clusters_gets_no_token(answers: dict[str, object]) -> None:
    with redirecting(**answers) as (ours, other), client(ours) as admin:
        for _ in range(2):
            with pytest.raises(ConfigurationError, match="names localhost") as error:
                admin.require_consume(ORDERS.topic)
        assert "pulsar.broker_hosts" in (error.value.hint or "")
    assert other.shown == {}


@pytest.mark.parametrize(
    ("answers", "hosts"),
    [
        ({"brokers": ["LOCALHOST:8080"]}, ()),
        ({"lookup": {"httpUrl": "http://localhost:8080"}}, ()),
        ({"lookup": {"httpUrl": None, "brokerUrlTls": "pulsar+ssl://localhost:6651"}}, ()),
        ({}, ("broker-*", "Local?ost")),
    ],
)
def test_the_clusters_own_get_it(answers: dict[str, object], hosts: tuple[str, ...]) -> None:
    with redirecting(**answers) as (ours, other), client(ours, hosts=hosts) as admin:
        admin.require_consume(ORDERS.topic)
        asked = list(ours.shown)
        ours.shown.clear()
        assert admin.http.get(SUBSCRIPTIONS, "it") == []
        assert list(ours.shown) == [SUBSCRIPTIONS], "who is known is not asked for again"
    assert other.shown == {SUBSCRIPTIONS: "Bearer t"}
    assert (BROKERS in asked) is not bool(hosts)


@pytest.mark.usefixtures("any_name")
@pytest.mark.parametrize("owner", ["owner", "elsewhere"])
def test_a_topic_that_no_broker_has_loaded(owner: str) -> None:
    """The leader assigns it, and the broker that it is assigned to loads it once it is asked."""
    with answering({SUBSCRIPTIONS: []}) as last, answering({}) as leader, answering({}) as ours:
        on = "?authoritative=true"
        ours.answers = {
            LOOKUP: f"http://leader:{leader.port}{LOOKUP}?authoritative=false",
            SUBSCRIPTIONS: f"http://leader:{leader.port}{SUBSCRIPTIONS}?authoritative=false",
            OF_TOPIC: f"http://elsewhere:{last.port}{OF_TOPIC}",
        }
        leader.answers = {
            LOOKUP: f"http://owner:{last.port}{LOOKUP}{on}",
            SUBSCRIPTIONS: f"http://{owner}:{last.port}{SUBSCRIPTIONS}{on}",
        }
        last.answers[LOOKUP] = {"httpUrl": f"http://owner:{last.port}"}
        with client(ours) as admin:
            if owner == "owner":
                admin.require_consume(ORDERS.topic)
            else:
                with pytest.raises(ConfigurationError, match="names elsewhere"):
                    admin.require_consume(ORDERS.topic)
    assert leader.shown == {LOOKUP: "Bearer t", SUBSCRIPTIONS: "Bearer t"}
    assert last.shown.get(SUBSCRIPTIONS) == ("Bearer t" if owner == "owner" else None)


@pytest.mark.parametrize(
    ("path", "topic"),
    [
        ("/admin/v2/schemas/a/b/orders/schemas", "a/b/orders"),
        ("/admin/v2/schemas/a/b/a%252Bb%252Fc/schemas", "a/b/a%2Bb%2Fc"),
        ("/admin/v2/persistent/a/b/a%2Bb/internalStats", "a/b/a%2Bb"),
        ("/admin/v2/persistent/a/b/orders/messageTTL", "a/b/orders"),
        ("/admin/v3/transactions/transactionBufferStats/a/b/orders", "a/b/orders"),
        ("/admin/v3/transactions/transactionInBufferStats/a/b/orders/1/2", "a/b/orders"),
    ],
)
def test_whatever_a_topics_owner_is_asked(path: str, topic: str) -> None:
    lookup = f"/lookup/v2/topic/persistent/{topic}"
    with answering({path: {}}) as other, answering({}) as ours:
        ours.answers[path] = f"http://localhost:{other.port}{path}"
        with client(ours) as admin:
            with pytest.raises(ConfigurationError, match="names localhost"):
                admin.http.get(path, "it")
            assert other.shown == {}
            ours.answers[lookup] = {"httpUrl": "http://localhost:8080"}
            assert admin.http.get(path, "it") == {}
    assert other.shown == {path: "Bearer t"}


@pytest.mark.usefixtures("any_name")
@pytest.mark.parametrize("host", ["bücher.example", "xn--bcher-kva.example", "BÜCHER.example"])
def test_a_host_has_one_name_however_it_is_spelled(host: str) -> None:
    with answering({SUBSCRIPTIONS: []}) as other, answering({SUBSCRIPTIONS: []}) as ours:
        with client(ours, host=host) as admin:
            admin.require_consume(ORDERS.topic)
        assert ours.shown == {SUBSCRIPTIONS: "Bearer t"}
        ours.answers[SUBSCRIPTIONS] = f"http://xn--bcher-kva.example:{other.port}{SUBSCRIPTIONS}"
        for pattern in ("B?cher.*", "xn--bcher-*", "BÜCHER.example"):
            with client(ours, hosts=(pattern,)) as admin:
                admin.require_consume(ORDERS.topic)
        other.shown.clear()
        with client(ours, hosts=("bücher*",)) as admin:
            with pytest.raises(ConfigurationError, match=r"names bucher\.example"):
                admin.http.get(f"http://bucher.example:{other.port}{SUBSCRIPTIONS}", "it")
        assert other.shown == {}


@pytest.mark.parametrize("allowed", [True, False])
def test_a_topic_without_partitions_where_none_are_made_on_first_use(allowed: bool) -> None:
    """There is no lookup of its partition 0, which the permission is first asked of."""
    with redirecting() as (ours, other), client(ours) as admin:
        ours.answers["/lookup/v2/topic/persistent/a/b/orders"] = {"httpUrl": "http://localhost"}
        other.answers = {OF_TOPIC: []} if allowed else {SUBSCRIPTIONS: []}
        if allowed:
            admin.require_consume(ORDERS.topic)
        else:
            with pytest.raises(ConfigurationError, match="no permission to consume"):
                admin.require_consume(ORDERS.topic)
    assert other.shown == {OF_TOPIC: "Bearer t"}


@pytest.mark.parametrize("token", ["t", None])
@pytest.mark.parametrize("to", ["http://xn--/", "http://xn--a/", "http://xn--z9/", "mailto:x"])
def test_an_address_that_is_none_is_an_error(to: str, token: str | None) -> None:
    with answering({SUBSCRIPTIONS: to}) as ours, client(ours, token) as admin:
        with pytest.raises(UnavailableError, match="no answer from the Pulsar admin at http"):
            admin.require_consume(ORDERS.topic)


def test_without_a_token_there_is_none_to_show() -> None:
    with redirecting() as (ours, other), client(ours, token=None) as admin:
        admin.require_consume(ORDERS.topic)
    assert other.shown == {SUBSCRIPTIONS: None}


def test_a_list_of_brokers_is_the_admins_own() -> None:
    counts = "/admin/v2/broker-stats/topics"
    with answering({counts: {}}) as other, answering({counts: {}, BROKERS: []}) as ours:
        with client(ours) as admin:
            names = [f"127.0.0.1:{ours.port}", f"localhost:{other.port}"]
            with pytest.raises(ConfigurationError, match="names localhost"):
                admin.loaded(names)
            assert other.shown == {}
            ours.answers[BROKERS] = names
            assert admin.loaded(admin.brokers()) == {}
    assert other.shown == {counts: "Bearer t"}


def test_a_name_does_not_lead_elsewhere() -> None:
    with answering({}) as ours, client(ours) as admin:
        for topic in (Topic("a", "..", "x"), Topic("..", "b", "x"), Topic("a", "b", "..")):
            for ask in (admin.partitions, admin.require_consume, admin.schemas):
                if ask == admin.require_consume and topic.name == "..":
                    continue  # its partition 0 has a name
                with pytest.raises(ConfigurationError, match="is no name"):
                    ask(topic)
        for listing in (lambda: admin.namespaces(".."), lambda: admin.topics("a", ".")):
            with pytest.raises(ConfigurationError, match="is no name"):
                listing()
        with pytest.raises(ConfigurationError, match="no permission"):
            admin.partitions(Topic("a", "b", "%2e%2e"))
    assert list(ours.shown) == ["/admin/v2/persistent/a/b/%252e%252e/partitions"]
    for text in ("a/../x", "../b/x", "a/b/..", "a/./x", "persistent://a/b/."):
        with pytest.raises(ConfigurationError, match="is not a topic name"):
            Topic.parse(text)
    assert Topic.parse("a/b/...").name == "..."


def raw(status: int, headers: dict[str, str], content: bytes) -> httpx.Response:
    """As it comes from a socket, in one part."""
    return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))


class Endless(httpx.SyncByteStream):
    """``first``, then ``again`` and again; ``sent``: how often. Ends where nobody else would."""

    def __init__(self, first: bytes, again: bytes) -> None:
        self.first, self.again, self.sent = first, again, 0

    def __iter__(self) -> Iterator[bytes]:
        yield self.first
        while self.sent < 100:
            self.sent += 1
            yield self.again


def test_an_answer_is_not_larger_than_its_bound() -> None:
    zeros = gzip.compress(b"0" * (64 << 20))
    packed = {"Content-Encoding": "gzip"}
    head = gzip.compress(b"")[:10]
    endless = {
        "/behind": (gzip.compress(b"{}"), bytes(1 << 16)),
        "/nothing": (head, b"\0\0\0\xff\xff" * (1 << 14)),  # empty blocks
    }
    streams: list[Endless] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/packed":
            return raw(200, packed, zeros)
        if request.url.path == "/plain":
            return raw(200, {}, b"0" * (2 << 20))
        if request.url.path == "/cut":
            return raw(200, packed, gzip.compress(b'{"reason": "x"}')[:-9])
        if request.url.path == "/more":
            return raw(200, packed, gzip.compress(b"{}") + b"0")
        if request.url.path in endless:
            stream = Endless(*endless[request.url.path])
            streams.append(stream)
            return httpx.Response(200, headers=packed, stream=stream)
        if request.url.path == "/other":
            return raw(200, {"Content-Encoding": "br"}, b"x")
        assert request.headers["Accept-Encoding"] == "gzip"
        return raw(404, packed, gzip.compress(b'{"reason": "x"}'))

    def send(path: str) -> httpx.Response:
        return bounded_send(http, http.build_request("GET", path), most=1 << 20, seconds=60)

    with httpx.Client(transport=httpx.MockTransport(answer), base_url="http://h") as http:
        tracemalloc.start()
        try:
            with pytest.raises(TooLargeError, match="larger than 1 MiB"):
                send("/packed")
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
        with pytest.raises(TooLargeError, match="larger than 1 MiB"):
            send("/plain")
        with pytest.raises(TooLargeError, match="larger than 1 MiB"):
            send("/nothing")
        for path in ("/cut", "/more", "/behind", "/other"):
            with pytest.raises(httpx.DecodingError):
                send(path)
        small = send("/small")
        assert (small.status_code, small.json()) == (404, {"reason": "x"})
    assert [stream.sent for stream in streams] == [13, 1]
