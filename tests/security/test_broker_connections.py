"""Each way to say who one is to a broker, over TLS, with the client of its own protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from reader.errors import ConfigurationError, PulsarLakeError
from reader.model import Partition, Position, Topic
from reader.pulsar.binary import BrokerClient
from testbed.admin import Admin
from testbed.publish import publish
from testbed.security import TOKEN_KEY, Authority, SecuredCluster, TokenServer
from tests.security.conftest import READER

SECRET = "the-oauth2-client-secret"


@pytest.fixture(scope="module")
def issuer(secured: SecuredCluster) -> Iterator[TokenServer]:
    with TokenServer(TOKEN_KEY, {READER: SECRET}, tls=secured.server) as server:
        yield server


@pytest.fixture(scope="module")
def topic(superuser: Admin, writer: Any) -> Iterator[str]:
    """With 20 messages in one partition, that nothing was offloaded of."""
    name = superuser.create_topic("acme/open/connections", partitions=1)
    publish(writer, name, (b"%d" % n for n in range(20)))
    yield name
    superuser.delete_topic(name)


def entries(client: BrokerClient, topic: str) -> int:
    """Of the partition's last ledger that has any."""
    partition = Partition(Topic.parse(topic), 0)
    last: Position = client.last_position(partition)
    client.schema(partition, None)
    return sum(len(block) for block in client.read(partition, last.ledger, 0, last.entry))


def test_tokens_that_are_rotated(
    secured: SecuredCluster, settings: Callable[..., Config], topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(secured.token(READER))
    with BrokerClient(settings(None, token_file=str(path)).pulsar) as client:
        found = entries(client, topic)
        assert found
        path.write_text(secured.token(READER, 3600))
        client.resume()
        assert entries(client, topic) == found


def test_oauth2(
    secured: SecuredCluster, settings: Callable[..., Config], topic: str, issuer: TokenServer
) -> None:
    oauth2 = {
        "issuer_url": issuer.issuer,
        "audience": "urn:pulsar:binary",
        "tls_trust_certs_file": str(secured.authority.certificate),
        "client_id": READER,
        "client_secret": SECRET,
    }
    with BrokerClient(settings(None, oauth2=oauth2).pulsar) as client:
        assert entries(client, topic)


def test_a_client_certificate(
    secured: SecuredCluster, settings: Callable[..., Config], topic: str
) -> None:
    pair = secured.client
    files = {"tls_certificate_file": str(pair.certificate), "tls_key_file": str(pair.key)}
    with BrokerClient(settings(None, **files).pulsar) as client:
        assert entries(client, topic)


@pytest.mark.parametrize("identity", ["none", "expired", "forged", "foreign", "without permission"])
def test_nobody_else_is_believed(
    secured: SecuredCluster,
    settings: Callable[..., Config],
    topic: str,
    tmp_path: Path,
    identity: str,
) -> None:
    foreign = Authority(tmp_path, "another authority").sign("reader")
    files = {"tls_certificate_file": str(foreign.certificate), "tls_key_file": str(foreign.key)}
    more = {
        "none": {},
        "expired": {"token": secured.token(READER, -60)},
        "forged": {"token": secured.token(READER)[:-6] + "AAAAAA"},
        "foreign": files,
        "without permission": {"token": secured.token("nobody")},
    }[identity]
    with BrokerClient(settings(None, **more, timeout="2s").pulsar) as client:
        with pytest.raises(PulsarLakeError) as error:
            entries(client, topic)
    if identity != "foreign":  # TLS itself is cut off
        assert isinstance(error.value, ConfigurationError)


def test_a_broker_has_to_show_the_right_certificate(
    secured: SecuredCluster, settings: Callable[..., Config], topic: str, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "another authority")
    trusting = settings(READER, tls_trust_certs_file=str(other.certificate))
    named = {"service_url": secured.service_url.replace("127.0.0.1", "localhost"), "timeout": "3s"}
    for config in (trusting, settings(READER, **named)):
        with BrokerClient(config.pulsar) as client:
            with pytest.raises(ConfigurationError, match="certificate of the broker"):
                entries(client, topic)
    with BrokerClient(settings(READER, **named, tls_verify_hostname=False).pulsar) as client:
        assert entries(client, topic)
