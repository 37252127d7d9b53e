"""What the broker's reader keeps from read to read, and releases, with a client in memory."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from reader.clients import Clients
from reader.config import PulsarConfig, ReadConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from reader.sources.broker import BrokerReader
from testbed.security import TokenServer
from tests.unit.sources.test_broker_messages import Message as Given

ONE, OTHER = (Partition(Topic("t", "n", name), -1) for name in ("one", "other"))


class Admin(AdminClient):
    """Every partition has ledger 7."""

    def __init__(self) -> None:
        super().__init__(PulsarConfig())

    def ledger_ids(self, partition: Partition) -> Any:
        return {7}


@dataclass
class Reader:
    """Gives one message of ledger 7, entry 0."""

    client: Client
    left: int = 1

    def has_message_available(self) -> bool:
        if self.client.fails:
            raise self.client.fails.pop()
        return self.left > 0

    def read_next(self, timeout: int) -> Message:
        self.left -= 1
        return Message()

    def close(self) -> None:
        self.client.seen.append("released")


class Message(Given):
    def message_id(self) -> Any:
        found = cast(Any, ModuleType("id"))
        found.ledger_id, found.entry_id, found.batch_index = (
            lambda: 7,
            lambda: 0,
            lambda: -1,
        )
        return found


@dataclass
class Client:
    seen: list[str]
    fails: list[Exception]

    def create_reader(self, name: str, *args: object, **kwargs: object) -> Reader:
        self.seen.append(f"read {name.rpartition('/')[2]}")
        return Reader(self)

    def close(self) -> None:
        self.seen.append("closed")


@dataclass
class Broker:
    seen: list[str] = field(default_factory=list)
    fails: list[Exception] = field(default_factory=list)

    def client(self, *args: object, **kwargs: object) -> Client:
        self.seen.append("connected")
        return Client(self.seen, self.fails)


class PulsarException(Exception):  # noqa: N818 - pulsar-client's name
    pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    found = Broker()
    pulsar = cast(Any, ModuleType("pulsar"))
    for name in ("Timeout", "AuthorizationError", "AuthenticationError", "TopicNotFound"):
        setattr(pulsar, name, type(name, (PulsarException,), {}))
    pulsar.PulsarException, pulsar.Client = PulsarException, found.client
    pulsar.AuthenticationToken = lambda supply: supply
    pulsar.MessageId = lambda *at: at
    pulsar.FileLogger = lambda *at: None
    pulsar.LoggerLevel = ModuleType("level")
    pulsar.LoggerLevel.Error = 0
    monkeypatch.setitem(sys.modules, "pulsar", pulsar)
    return found


def read(reader: BrokerReader, partition: Partition) -> int:
    found = reader.read(partition, Position(7, 0), Position(7, 0), columns=("__ledgerId",))
    return sum(len(messages) for _, messages in found)


def test_the_connection_is_kept_and_the_topic_released(broker: Broker) -> None:
    with Admin() as admin, BrokerReader(PulsarConfig(), admin) as reader:
        for partition in (ONE, OTHER, OTHER):
            assert read(reader, partition) == 1
            reader.release()
        reader.release()
    kept = ["read one", "released", "read other", "released", "read other", "released"]
    assert broker.seen == ["connected", *kept, "closed"]


def test_the_client_reads_few_messages_ahead(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps them decompressed: a few kB on the wire are 5 MiB."""
    ahead = []

    def create_reader(client: Client, *args: object, **kwargs: Any) -> Reader:
        ahead.append(kwargs["receiver_queue_size"])
        return Reader(client)

    monkeypatch.setattr(Client, "create_reader", create_reader)
    with Admin() as admin, BrokerReader(PulsarConfig(), admin) as reader:
        read(reader, ONE)
    assert max(ahead) * (5 << 20) <= 320 << 20


def test_after_an_error_it_connects_anew(broker: Broker) -> None:
    config = PulsarConfig(timeout="0s")  # type: ignore[arg-type]
    with Admin() as admin, BrokerReader(config, admin) as reader:
        assert read(reader, ONE) == 1
        reader.release()
        broker.fails.append(PulsarException("gone"))
        with pytest.raises(UnavailableError):
            read(reader, ONE)
        assert broker.seen[-1] == "closed"
        reader.release()
        assert read(reader, ONE) == 1
    assert broker.seen.count("connected") == 2


def test_a_topic_that_moves_is_waited_for_by_the_clock_that_is_passed_in(broker: Broker) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    config = PulsarConfig(timeout="10s")  # type: ignore[arg-type]
    with (
        Admin() as admin,
        BrokerReader(config, admin, clock=lambda: now, sleep=sleep) as reader,
    ):
        broker.fails += [PulsarException("moving")] * 5
        assert read(reader, ONE) == 1
        assert now == pytest.approx(1.0), "five pauses"
        broker.fails += [PulsarException("gone")] * 100
        with pytest.raises(UnavailableError):
            read(reader, OTHER)
        assert 11.0 < now < 11.5


def test_once_a_token_or_a_certificate_was_rotated_it_connects_anew(
    broker: Broker, tmp_path: Path
) -> None:
    token, trust = tmp_path / "token", tmp_path / "trust.pem"
    token.write_text("one")
    trust.write_text("one")
    settings = {"pulsar": {"token_file": token, "tls_trust_certs_file": trust}}
    with Clients(ReadConfig.load(settings), admin=Admin()) as clients:

        def connected() -> int:
            with clients.broker() as reader:
                assert read(reader, ONE) == 1
            return broker.seen.count("connected")

        assert [connected(), connected()] == [1, 1]
        for number, rotated in enumerate((token, trust), 2):
            (tmp_path / "new").write_text("other")
            (tmp_path / "new").rename(rotated)
            assert [connected(), connected()] == [number, number]
            assert broker.seen.count("closed") == number - 1
        token.unlink()
        with pytest.raises(ConfigurationError, match=r"cannot read pulsar\.token_file"):
            connected()


def test_lending_asks_no_issuer_and_its_next_token_needs_no_new_connection(broker: Broker) -> None:
    def settings(issuer: str) -> ReadConfig:
        oauth2 = {"issuer_url": issuer, "client_id": "lake", "client_secret": "s3cr3t"}
        return ReadConfig.load({"pulsar": {"oauth2": oauth2}})

    with TokenServer(b"key", {"lake": "s3cr3t"}, seconds=0) as issuer:
        clients = Clients(settings(issuer.issuer), admin=Admin())
        with clients.broker() as reader:
            assert read(reader, ONE) == 1
        asked = len(issuer.asked)
        assert asked > 0
        with clients.broker() as reader:
            pass
        assert len(issuer.asked) == asked, "who reads from the bookies alone"
    with clients, clients.broker() as reader:
        assert read(reader, ONE) == 1, "the issuer is gone, its token due"
    assert broker.seen.count("connected") == 1


def test_a_child_leaves_its_parents_connection_open(broker: Broker) -> None:
    with Admin() as admin, BrokerReader(PulsarConfig(), admin) as reader:
        found = reader.read(ONE, Position(7, 0), Position(7, 0), columns=("__ledgerId",))
        next(found)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                found.close()  # type: ignore[attr-defined]
                reader.release()
                reader.close()
                code = 0 if broker.seen == ["connected", "read one"] else 1
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(found) == []
    assert broker.seen == ["connected", "read one", "closed"]
