"""Which broker serves a topic, what it refuses, and who we are to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.message import Message

from reader.errors import ConfigurationError, NotFoundError, UnavailableError
from reader.model import Position
from reader.wire import pulsar_pb2 as api
from testbed.admin import wait_until
from testbed.serving import refusing_port
from tests.unit.pulsar.binary.fake_broker import FakeBroker, Reaction, Session, subscribed
from tests.unit.pulsar.binary.reads import ALL, ENTRIES, LEDGER, PARTITION, Time, client_of, read


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(ENTRIES) as started:
        yield started


def located(url: str, *, redirect: bool = False, by_proxy: bool = False) -> Reaction:
    def answer(session: Session, command: api.CommandLookupTopic) -> None:
        session.send(
            api.CommandLookupTopicResponse(
                brokerServiceUrl=url,
                response="Redirect" if redirect else "Connect",
                request_id=command.request_id,
                authoritative=redirect,
                proxy_through_service_url=by_proxy,
            )
        )

    return answer


def test_a_redirect_is_followed(broker: FakeBroker) -> None:
    with FakeBroker() as first:
        first.reactions[api.CommandLookupTopic] = located(broker.url, redirect=True)
        with client_of(first.url) as client:
            assert read(client) == ALL
    assert api.CommandSubscribe not in first.heard


def test_redirects_in_a_circle_end() -> None:
    with FakeBroker() as one, FakeBroker() as two:
        one.reactions[api.CommandLookupTopic] = located(two.url, redirect=True)
        two.reactions[api.CommandLookupTopic] = located(one.url, redirect=True)
        with client_of(one.url, "2s", time=Time()) as client:
            with pytest.raises(UnavailableError, match="circles"):
                read(client)


def test_through_a_proxy(broker: FakeBroker) -> None:
    broker.reactions[api.CommandLookupTopic] = located(
        "pulsar://broker-5.internal:6650", by_proxy=True
    )
    with client_of(broker.url) as client:
        assert read(client) == ALL
    assert [one.proxy_to_broker_url for one in broker.connects] == ["", "broker-5.internal:6650"]


def test_the_second_host_where_the_first_is_down(broker: FakeBroker) -> None:
    with refusing_port() as down:
        with client_of(f"pulsar://127.0.0.1:{down},127.0.0.1:{broker.port}") as client:
            assert read(client) == ALL


@pytest.mark.parametrize("what", ["not ready", "no answer", "a broker that is down"])
def test_the_second_host_where_the_first_does_not_find_the_topic(
    broker: FakeBroker, what: str
) -> None:
    time = Time()

    def answer(session: Session, command: api.CommandLookupTopic) -> None:
        match what:
            case "not ready":
                session.error(command.request_id, 6, what)
            case "no answer":
                time.now += 2  # the first host's half
            case _:
                located(f"pulsar://127.0.0.1:{down}", redirect=True)(session, command)

    with refusing_port() as down, FakeBroker() as first:
        first.reactions[api.CommandLookupTopic] = answer
        both = f"pulsar://127.0.0.1:{first.port},127.0.0.1:{broker.port}"
        with client_of(both, "4s", time=time) as client:
            assert read(client) == ALL
            client.last_position(PARTITION)
        assert first.heard.count(api.CommandLookupTopic) == 1, (
            "the one that answered is asked first"
        )


def test_no_broker_at_all() -> None:
    with refusing_port() as down:
        with client_of(f"pulsar://127.0.0.1:{down}", "2s", time=Time()) as client:
            with pytest.raises(UnavailableError, match="refused"):
                read(client)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (3, ConfigurationError),
        (4, ConfigurationError),
        (11, NotFoundError),
        (17, ConfigurationError),
        (22, ConfigurationError),
        (6, UnavailableError),
        (1, UnavailableError),
        (99, UnavailableError),
    ],
)
@pytest.mark.parametrize(
    "command", [api.CommandConnect, api.CommandLookupTopic, api.CommandSubscribe]
)
def test_what_a_broker_refuses(
    broker: FakeBroker, command: type[Message], code: int, error: type[Exception]
) -> None:
    broker.reactions[command] = lambda session, request: session.error(
        getattr(request, "request_id", -1), code, "because"
    )
    with client_of(broker.url, "2s", time=Time()) as client, pytest.raises(error) as caught:
        read(client)
    assert "because" in str(caught.value)


def test_what_is_refused_for_a_moment(broker: FakeBroker) -> None:
    times = iter(range(100))

    def not_yet(session: Session, command: api.CommandSubscribe) -> None:
        if next(times) < 3:
            session.error(command.request_id, 6, "being unloaded")
        else:
            subscribed(session, command)

    broker.reactions[api.CommandSubscribe] = not_yet
    with client_of(broker.url) as client:
        assert read(client) == ALL


def test_a_token_and_a_challenge(broker: FakeBroker, tmp_path: Path) -> None:
    said: list[api.CommandAuthResponse] = []

    def challenge(session: Session, command: api.CommandConnect) -> None:
        session.send(api.CommandAuthChallenge())
        broker.connects.append(command)

    def response(session: Session, command: api.CommandAuthResponse) -> None:
        said.append(command)
        if not session.next:  # the first one of this connection
            session.send(api.CommandConnected())

    broker.reactions |= {api.CommandConnect: challenge, api.CommandAuthResponse: response}

    def again(session: Session, consumer: int, at: tuple[int, int]) -> None:
        if at[1] == 10:
            session.send(api.CommandAuthChallenge())

    broker.before_message = again
    path = tmp_path / "token"
    path.write_text("first")
    with client_of(broker.url, token_file=str(path)) as client:
        assert client.last_position(PARTITION) == Position(LEDGER, 299)
        path.write_text("second")
        assert read(client, 0, 50) == ALL[:51]
        wait_until("the answer to the last challenge", lambda: len(said) == 3)
    connect = broker.connects[0]
    assert (connect.auth_method_name, connect.auth_data) == ("token", b"first")
    for answer, token in ((said[0], b"first"), (said[-1], b"second")):
        assert answer == api.CommandAuthResponse(
            client_version="pulsar-lake",
            response=api.AuthData(auth_method_name="token", auth_data=token),
            protocol_version=21,
        )


def test_a_rotated_token_opens_new_connections(broker: FakeBroker, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    with client_of(broker.url, token_file=str(path)) as client:
        assert read(client, 0, 9) == ALL[:10]
        client.resume()
        assert len(broker.connects) == 2  # one for requests, one for entries
        path.write_text("second")
        client.resume()
        assert read(client, 10, 19) == ALL[10:20]
    assert [one.auth_data for one in broker.connects] == [b"first"] * 2 + [b"second"] * 2
