"""Each way to say who one is, to broker and admin; and each that is not believed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from reader.errors import ConfigurationError, PulsarLakeError
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.binary import BrokerClient
from testbed.security import TOKEN_KEY, Authority, SecuredCluster, TokenServer
from tests.security.conftest import READER, Orders

SECRET = "the-oauth2-client-secret"


@pytest.fixture(scope="module")
def issuer(secured: SecuredCluster) -> Iterator[TokenServer]:
    with TokenServer(TOKEN_KEY, {READER: SECRET}, tls=secured.server) as server:
        yield server


def read(config: Config, topic: str) -> int:
    """The entries of a partition's first ledger that is left, through admin and broker."""
    partition = Partition(Topic.parse(topic), 0)
    with AdminClient(config.pulsar) as admin, BrokerClient(config.pulsar) as broker:
        admin.require_consume(partition.topic)
        found = next(one for one in admin.ledgers(partition).ledgers if one.entries)
        blocks = broker.read(partition, found.ledger_id, 0, found.entries - 1)
        return sum(len(block) for block in blocks)


def test_a_token_out_of_a_file(
    secured: SecuredCluster, settings: Callable[..., Config], orders: Orders, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(secured.token(READER) + "\n")
    assert read(settings(None, token_file=str(path)), orders.topic)


@pytest.mark.parametrize("by", ["secret", "file"])
def test_oauth2(
    secured: SecuredCluster,
    settings: Callable[..., Config],
    orders: Orders,
    issuer: TokenServer,
    tmp_path: Path,
    by: str,
) -> None:
    oauth2: dict[str, Any] = {
        "issuer_url": issuer.issuer,
        "audience": f"urn:pulsar:{by}",
        "scope": "lake",
        "tls_trust_certs_file": str(secured.authority.certificate),
    }
    if by == "file":
        path = tmp_path / "key.json"
        path.write_text(json.dumps({"client_id": READER, "client_secret": SECRET}))
        oauth2["key_file"] = str(path)
    else:
        oauth2 |= {"client_id": READER, "client_secret": SECRET}
    issuer.asked.clear()
    assert read(settings(None, oauth2=oauth2), orders.topic)
    assert len(issuer.asked) == 1  # admin and broker share the token
    assert issuer.asked[0]["audience"] == f"urn:pulsar:{by}"
    assert issuer.asked[0]["scope"] == "lake"


def test_a_client_certificate(
    secured: SecuredCluster, settings: Callable[..., Config], orders: Orders
) -> None:
    pair = secured.client
    files = {"tls_certificate_file": str(pair.certificate), "tls_key_file": str(pair.key)}
    assert read(settings(None, **files), orders.topic)


@pytest.mark.parametrize("identity", ["none", "expired", "forged", "foreign certificate"])
def test_nobody_else_is_believed(
    secured: SecuredCluster,
    settings: Callable[..., Config],
    orders: Orders,
    tmp_path: Path,
    identity: str,
) -> None:
    foreign = Authority(tmp_path, "another authority").sign("reader")
    files = {"tls_certificate_file": str(foreign.certificate), "tls_key_file": str(foreign.key)}
    more = {
        "none": {},
        "expired": {"token": secured.token(READER, -60)},
        "forged": {"token": secured.token(READER)[:-6] + "AAAAAA"},
        "foreign certificate": files,
    }[identity]
    config = settings(None, **more, timeout="2s")
    with AdminClient(config.pulsar) as admin:
        with pytest.raises(PulsarLakeError) as error:
            admin.require_consume(Topic.parse(orders.topic))
    if identity != "foreign certificate":  # TLS itself is cut off
        assert isinstance(error.value, ConfigurationError)
    partition = Partition(Topic.parse(orders.topic), 0)
    with BrokerClient(config.pulsar) as broker:
        with pytest.raises(PulsarLakeError):
            list(broker.read(partition, 0, 0, 0))


def test_a_server_has_to_show_the_right_certificate(
    secured: SecuredCluster, settings: Callable[..., Config], orders: Orders, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "another authority")
    config = settings(READER, tls_trust_certs_file=str(other.certificate))
    with AdminClient(config.pulsar) as admin:
        with pytest.raises(ConfigurationError, match="certificate of the Pulsar admin"):
            admin.require_consume(Topic.parse(orders.topic))
    by_name = {
        "admin_url": secured.admin_url.replace("127.0.0.1", "localhost"),
        "service_url": secured.service_url.replace("127.0.0.1", "localhost"),
        "timeout": "3s",
    }
    named = settings(READER, **by_name)
    with AdminClient(named.pulsar) as admin:
        with pytest.raises(ConfigurationError, match="localhost"):
            admin.require_consume(Topic.parse(orders.topic))
    with BrokerClient(named.pulsar) as broker:
        with pytest.raises(PulsarLakeError):
            partition = Partition(Topic.parse(orders.topic), 0)
            list(broker.read(partition, 0, 0, 0))
    assert read(settings(READER, **by_name, tls_verify_hostname=False), orders.topic)
