"""What the admin client makes of answers that a real Pulsar gives only now and then."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr

from reader.config import PulsarConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.http import AdminHttp
from testbed.serving import answering as http_answering
from testbed.serving import serving

PARTITION = Partition(Topic("public", "default", "orders"), 0)


@contextmanager
def answering(status: int, reason: str) -> Iterator[AdminClient]:
    """A client of a server that gives this answer to every POST and PUT."""

    with (
        http_answering(lambda asked: (status, {"reason": reason}, {})) as url,
        AdminClient(PulsarConfig(admin_url=url)) as admin,
    ):
        yield admin


BUSY = (412, "Failed for Subscription Busy: Failed to fence subscription")


def test_a_hold_that_another_client_is_moving_is_left_to_it() -> None:
    with answering(*BUSY) as admin:
        assert admin.move_hold(PARTITION, "pulsar-lake", Position(4, 0)) is False


@pytest.mark.parametrize("answer", [BUSY, (409, "Subscription already exists for topic")])
def test_a_hold_that_another_client_is_making_is_left_to_it(answer: tuple[int, str]) -> None:
    with answering(*answer) as admin:
        admin.create_hold(PARTITION, "pulsar-lake")


def test_a_note_that_another_client_was_faster_with_was_not_made() -> None:
    reason = (
        "\n --- An unexpected error occurred in the server ---\n\nMessage: "
        "org.apache.pulsar.metadata.api.MetadataStoreException$BadVersionException: KeeperErrorCode"
    )
    with answering(500, reason) as admin:
        assert admin.note_hold(PARTITION, "pulsar-lake", {}) is False
    with answering(500, "Broken") as admin, pytest.raises(UnavailableError):
        admin.note_hold(PARTITION, "pulsar-lake", {})


# Pulsar's answer while it unloads the topic, or where its bookies fail.
NOT_SAVED = (
    412,
    "Unable to find position for position specified: "
    "unable to persist readPosition for cursor reset 4:0",
)


@pytest.mark.parametrize(
    ("status", "reason", "error"),
    [
        (412, "Unable to find position for position specified", ConfigurationError),
        (*NOT_SAVED, UnavailableError),
        (403, "Unauthorized", ConfigurationError),
        (500, "Broken", UnavailableError),
    ],
)
def test_other_refusals_to_make_or_move_a_hold_are_errors(
    status: int, reason: str, error: type[Exception]
) -> None:
    with answering(status, reason) as admin:
        with pytest.raises(error) as moving:
            admin.move_hold(PARTITION, "pulsar-lake", Position(4, 0))
        with pytest.raises(error) as making:
            admin.create_hold(PARTITION, "pulsar-lake")
    assert all(reason in str(getattr(one.value, "hint", "")) for one in (moving, making))


class _Broker(BaseHTTPRequestHandler):
    """Answers, or sends to ``to``; ``seen`` are the identities that came.

    ``silent``: at which requests (from 1) it hangs up instead. Connections are kept otherwise.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are written one after the other

    to = ""
    status = 200
    body: object = []
    seen: list[str | None]
    silent: tuple[int, ...] = ()

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization"))
        if len(self.seen) in self.silent:
            self.close_connection = True
            return
        body = json.dumps(self.body).encode()
        self.send_response(307 if self.to else self.status)
        if self.to:
            self.send_header("Location", self.to + self.path)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def broker(**answer: object) -> Iterator[tuple[str, list[str | None]]]:
    seen: list[str | None] = []
    handler = type("Handler", (_Broker,), {**answer, "seen": seen})
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), handler)) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen


def test_the_token_goes_along_to_the_broker_that_owns_the_topic() -> None:
    with broker(body=["a/b"]) as (owner, there), broker(to=owner) as (asked, here):
        config = PulsarConfig(admin_url=asked, token=SecretStr("s3cr3t"))
        with AdminClient(config) as admin:
            assert admin.namespaces("a") == ["a/b"]
    assert here == there == ["Bearer s3cr3t"]


def test_a_kept_connection_that_was_closed_costs_nothing() -> None:
    with broker(body=["a/b"], silent=(2,)) as (url, seen):
        with AdminClient(PulsarConfig(admin_url=url)) as admin:
            assert [admin.namespaces("a") for _ in range(2)] == [["a/b"]] * 2
    assert len(seen) == 3


def test_a_topic_that_is_known_is_not_asked_for_again() -> None:
    alone = Partition(Topic("a", "b", "c"), -1)
    with broker(body={"partitions": 0}) as (url, seen):
        with AdminClient(PulsarConfig(admin_url=url)) as admin:
            assert admin.partitions(alone.topic, known={PARTITION}) == [alone]
            assert len(seen) == 2
            assert admin.partitions(alone.topic, known={alone}) == [alone]
            assert len(seen) == 3
    with broker(body={"partitions": 2}) as (url, seen):
        with AdminClient(PulsarConfig(admin_url=url)) as admin:
            grown = admin.partitions(alone.topic, known={alone})
    assert [one.index for one in grown] == [0, 1], "it was made again, with partitions"


def test_a_broker_that_hangs_up_is_asked_twice_at_most() -> None:
    with broker(silent=(1, 2)) as (url, seen), AdminClient(PulsarConfig(admin_url=url)) as admin:
        with pytest.raises(UnavailableError, match="no answer"):
            admin.namespaces("a")
    assert len(seen) == 2


def test_brokers_that_send_round_in_circles_are_an_error() -> None:
    with broker() as (url, seen):
        _Broker.to = url
        try:
            with AdminClient(PulsarConfig(admin_url=url)) as admin:
                with pytest.raises(UnavailableError, match="in circles"):
                    admin.namespaces("a")
        finally:
            _Broker.to = ""
    assert len(seen) == 5


@pytest.mark.parametrize(
    ("status", "reason", "allowed"),
    [
        (200, "", True),
        (404, "Topic persistent://a/b/c not found", True),  # its table may be there
        (404, "Tenant does not exist", False),
        (401, "Unauthorized to validateTopicOperation", False),
        (403, "Forbidden", False),
    ],
)
def test_who_may_consume(status: int, reason: str, allowed: bool) -> None:
    with broker(status=status, body={"reason": reason}) as (url, seen):
        with AdminClient(PulsarConfig(admin_url=url), clock=Time().clock) as admin:
            for _ in range(2):
                if allowed:
                    admin.require_consume(PARTITION.topic)
                else:
                    with pytest.raises(ConfigurationError, match="no permission to consume"):
                        admin.require_consume(PARTITION.topic)
    assert len(seen) == (1 if allowed else 2)  # only a yes is kept


def test_a_topic_that_no_broker_has_yet_is_asked_for_again() -> None:
    with answering(412, f"Can't find owner for topic {PARTITION.full_name}") as admin:
        with pytest.raises(UnavailableError, match="refused"):
            admin.partitions(PARTITION.topic)


@pytest.mark.parametrize("status", [500, 503, 412])
def test_no_answer_is_no_permission(status: int) -> None:
    with broker(status=status, body={"reason": "x"}) as (url, _):
        with AdminClient(PulsarConfig(admin_url=url)) as admin:
            with pytest.raises((UnavailableError, ConfigurationError)):
                admin.require_consume(PARTITION.topic)


class Time:
    """A clock that only its ``sleep`` moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("seconds", "times"), [(10.0, 2), (0.0, 6)])
def test_a_permission_is_believed_for_some_seconds(seconds: float, times: int) -> None:
    time = Time()
    with broker(body=[]) as (url, seen):
        config = PulsarConfig(admin_url=url)
        with AdminClient(config, allowed_seconds=seconds, clock=time.clock) as admin:
            for _ in range(2):
                for _ in range(3):
                    admin.require_consume(PARTITION.topic)
                time.now += 10
    assert len(seen) == times


def test_nobody_waits_for_the_connection_of_another() -> None:
    """Not with more of them at once than httpx has by default (100)."""
    count = 120
    together = threading.Barrier(count)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            together.wait(120)  # no answer before all have asked
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = count

    with serving(Server(("127.0.0.1", 0), Handler)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with (
            AdminHttp(PulsarConfig(admin_url=url, timeout=timedelta(minutes=3))) as http,
            ThreadPoolExecutor(count) as pool,
        ):
            answers = list(pool.map(lambda _: http.get("/", "all"), range(count)))
    assert answers == [[]] * count
