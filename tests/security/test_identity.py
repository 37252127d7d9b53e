"""Each way to say who one is, to broker and admin; and each that is not believed."""

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
from testbed.admin import Admin
from testbed.publish import publish
from testbed.security import TOKEN_KEY, Authority, Pair, SecuredCluster, TokenServer
from tests.security.conftest import READER
from tests.support.fixtures import MakeConfig

SECRET = "the-oauth2-client-secret"
BELIEVED = ["token file", "oauth2 secret", "oauth2 key file", "certificate"]
REFUSED = ["none", "expired", "forged", "foreign certificate", "without permission"]

IdentityOf = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def issuer(secured: SecuredCluster) -> Iterator[TokenServer]:
    with TokenServer(TOKEN_KEY, {READER: SECRET}, tls=secured.server) as server:
        yield server


@pytest.fixture(scope="module")
def topic(superuser: Admin, writer: Any) -> Iterator[str]:
    """With 20 messages in one partition, that nothing was offloaded of."""
    name = superuser.create_topic("acme/open/identities", partitions=1)
    publish(writer, name, (b"%d" % n for n in range(20)))
    yield name
    superuser.delete_topic(name)


@pytest.fixture
def identity_of(secured: SecuredCluster, issuer: TokenServer, tmp_path: Path) -> IdentityOf:
    """The settings of one of ``BELIEVED`` or ``REFUSED``."""

    def oauth2(audience: str, **client: str) -> dict[str, Any]:
        shared = {
            "issuer_url": issuer.issuer,
            "audience": audience,
            "scope": "lake",
            "tls_trust_certs_file": str(secured.authority.certificate),
        }
        return {"oauth2": shared | client}

    def certificate(pair: Pair) -> dict[str, Any]:
        return {"tls_certificate_file": str(pair.certificate), "tls_key_file": str(pair.key)}

    def make(name: str) -> dict[str, Any]:
        client = {"client_id": READER, "client_secret": SECRET}
        token, key = tmp_path / "token", tmp_path / "key.json"
        token.write_text(secured.token(READER) + "\n")
        key.write_text(json.dumps(client))
        foreign = Authority(tmp_path, "another authority").sign("reader")
        return {
            "token file": {"token_file": str(token)},
            "oauth2 secret": oauth2("urn:oauth2 secret", **client),
            "oauth2 key file": oauth2("urn:oauth2 key file", key_file=str(key)),
            "certificate": certificate(secured.client),
            "none": {},
            "expired": {"token": secured.token(READER, -60)},
            "forged": {"token": secured.token(READER)[:-6] + "AAAAAA"},
            "foreign certificate": certificate(foreign),
            "without permission": {"token": secured.token("nobody")},
        }[name]

    return make


def entries(client: BrokerClient, topic: str) -> int:
    """Of the partition's last ledger that has any."""
    partition = Partition(Topic.parse(topic), 0)
    last = client.last_position(partition)
    client.schema(partition, None)
    return sum(len(block) for block in client.read(partition, last.ledger, 0, last.entry))


def read(config: Config, topic: str) -> int:
    """Entries that both admin and broker give."""
    with AdminClient(config.pulsar) as admin, BrokerClient(config.pulsar) as broker:
        admin.require_consume(Topic.parse(topic))
        assert admin.ledgers(Partition(Topic.parse(topic), 0)).ledgers
        return entries(broker, topic)


@pytest.mark.parametrize("name", BELIEVED)
def test_who_is_believed(
    settings: MakeConfig, topic: str, issuer: TokenServer, identity_of: IdentityOf, name: str
) -> None:
    issuer.asked.clear()
    assert read(settings(None, **identity_of(name)), topic)
    asked = [(one["audience"], one["scope"]) for one in issuer.asked]
    # Admin and broker share the token.
    assert asked == ([(f"urn:{name}", "lake")] if "oauth2" in name else [])


@pytest.mark.parametrize("name", REFUSED)
def test_nobody_else_is_believed(
    settings: MakeConfig, topic: str, identity_of: IdentityOf, name: str
) -> None:
    # With a foreign certificate TLS itself is cut off, and it is tried again until the timeout.
    foreign = name == "foreign certificate"
    error = PulsarLakeError if foreign else ConfigurationError
    config = settings(None, **identity_of(name), timeout="2s" if foreign else "20s")
    with AdminClient(config.pulsar) as admin:
        with pytest.raises(error):
            admin.require_consume(Topic.parse(topic))
    with BrokerClient(config.pulsar) as broker:
        with pytest.raises(error):
            entries(broker, topic)


def test_tokens_that_are_rotated(
    secured: SecuredCluster, settings: MakeConfig, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text(secured.token(READER))
    with BrokerClient(settings(None, token_file=str(path)).pulsar) as client:
        found = entries(client, topic)
        assert found
        path.write_text(secured.token(READER, 3600))
        client.resume()
        assert entries(client, topic) == found


def test_a_server_has_to_show_the_right_certificate(
    secured: SecuredCluster, settings: MakeConfig, topic: str, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "another authority")
    by_name = {
        "admin_url": secured.admin_url.replace("127.0.0.1", "localhost"),
        "service_url": secured.service_url.replace("127.0.0.1", "localhost"),
        "timeout": "20s",
    }
    trusting = settings(READER, tls_trust_certs_file=str(other.certificate))
    for config, of_admin in (
        (trusting, "certificate of the Pulsar admin"),
        (settings(READER, **by_name), "localhost"),
    ):
        with AdminClient(config.pulsar) as admin:
            with pytest.raises(ConfigurationError, match=of_admin):
                admin.require_consume(Topic.parse(topic))
        with BrokerClient(config.pulsar) as broker:
            with pytest.raises(ConfigurationError, match="certificate of the broker"):
                entries(broker, topic)
    assert read(settings(READER, **by_name, tls_verify_hostname=False), topic)
