"""``pulsar-lake check`` on the secured cluster: a role that may read, and one thing wrong each."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from offloader.check import Checklist, Result, Run
from offloader.config import Config
from testbed.admin import Admin, wait_until
from testbed.publish import publish
from testbed.security import SecuredCluster
from tests.security.conftest import READER
from tests.support.fixtures import MakeConfig

ASKS_NO_POLICY = {"topics": "warning"}
"""Who may only consume is not told whether there is a TTL."""

PULSAR = ("admin", "role", "topics", "bookies", "broker")


@pytest.fixture(scope="module")
def topic(superuser: Admin, writer: Any) -> Iterator[str]:
    """Some messages in a sealed ledger; gone when others list the namespace."""
    name = superuser.create_topic("acme/open/checked")
    publish(writer, name, [b"one", b"two"])
    superuser.seal(name)
    yield name.removeprefix("persistent://")
    superuser.delete_topic(name)


def checked(config: Config, seconds: float = 30, **offload: Any) -> dict[str, Result]:
    """Of Pulsar alone, by name."""
    offloads = config.offload.model_copy(update={"topics": ["acme/open/checked"], **offload})
    with Checklist(config.model_copy(update={"offload": offloads}), seconds) as checklist:
        checks = [one for one in checklist.checks() if one.name in PULSAR]
        found = Run(checks, seconds=seconds, tell=lambda one: print(one)).results()
    return {one.name: one for one in found}


def bad(found: dict[str, Result]) -> dict[str, str]:
    return {name: str(one.state) for name, one in found.items() if one.state != "ok"}


def test_a_reader(settings: MakeConfig, topic: str) -> None:
    found = checked(settings(READER))
    assert bad(found) == ASKS_NO_POLICY
    assert "cannot check for a TTL" in found["topics"].finding
    assert "run this once with the tenant's administrator" in found["topics"].fix
    assert "the token is accepted, TLS verified" in found["admin"].finding
    assert found["role"].finding.startswith("no superuser, may list and consume 1 topic, and have")
    assert "1 of 1 answer" in found["bookies"].finding
    assert "1 gave an entry" in found["bookies"].finding


@pytest.mark.parametrize(
    ("role", "kind"), [("superuser", "a superuser, "), ("acme-admin", "no superuser, ")]
)
def test_an_administrator_is_all_green(
    settings: MakeConfig, topic: str, role: str, kind: str
) -> None:
    found = checked(settings(role))
    assert bad(found) == {}
    assert found["role"].finding.startswith(kind)


@pytest.mark.parametrize(
    ("change", "name", "text", "fix"),
    [
        ({"token": "no.such.token"}, "admin", "no permission for Pulsar's version", "identity in"),
        ({"token": None}, "admin", "no permission for Pulsar's version", "identity in [pulsar]"),
        (
            {"tls_trust_certs_file": None},
            "admin",
            "certificate of the Pulsar admin",
            "check pulsar.tls_trust_certs_file",
        ),
    ],
)
def test_an_identity_that_is_refused(
    settings: MakeConfig, topic: str, change: dict[str, Any], name: str, text: str, fix: str
) -> None:
    found = checked(settings(READER, **change))
    assert bad(found) == {
        "admin": "failed",
        "role": "skipped",
        "topics": "skipped",
        "bookies": "skipped",
        "broker": "failed",
    }
    assert text in found[name].finding
    assert fix in found[name].fix
    assert "no.such.token" not in str(found)


def test_a_role_that_may_not_consume(settings: MakeConfig, topic: str) -> None:
    found = checked(settings("nobody-knows"))
    assert found["admin"].state == "ok"
    assert found["role"].state == "failed"
    assert "no permission for topic acme/open/checked" in found["role"].finding
    assert "grant-permission" in found["role"].fix
    found = checked(settings("writer"))
    assert "no permission to consume topic acme/open/checked" in found["role"].finding


def test_a_role_that_may_not_list_the_namespace(settings: MakeConfig, topic: str) -> None:
    found = checked(settings(READER), topics=["acme/hidden/*"])
    assert found["role"].state == "failed"
    assert "no permission for namespace acme/hidden" in found["role"].finding


def test_a_subscription_that_the_namespace_does_not_allow(
    settings: MakeConfig, superuser: Admin, topic: str
) -> None:
    role = f"role-{uuid.uuid4().hex[:8]}"
    namespace = f"acme/{role}"
    superuser.create_namespace(namespace)
    mine = superuser.create_topic(f"{namespace}/orders").removeprefix("persistent://")
    superuser.grant(namespace, role, "consume")
    path = f"/v2/namespaces/{namespace}/subscriptionAuthMode"
    superuser.request("POST", path, json="Prefix")

    def refused() -> bool:
        return checked(settings(role), topics=[mine])["role"].state == "failed"

    wait_until("the policy", refused)
    found = checked(settings(role), topics=[mine])
    assert "pulsar-lake" in found["role"].finding
    found = checked(settings(role), topics=[mine], subscription=f"{role}-lake")
    assert found["role"].state == "ok"


@pytest.mark.parametrize(
    ("change", "text", "fix"),
    [
        ({"sasl_user": ""}, "refuses the connection", "sasl_user"),
        ({"sasl_password": "wrong"}, "does not accept the SASL user", "sasl_user"),
        ({"tls": False, "sasl_user": ""}, "requires authentication", "[pulsar.bookkeeper]"),
        ({"tls_trust_certs_file": None}, "certificate of bookie", "tls_trust_certs_file"),
    ],
)
def test_a_bookie_that_refuses(
    secured: SecuredCluster,
    settings: MakeConfig,
    topic: str,
    change: dict[str, Any],
    text: str,
    fix: str,
) -> None:
    found = checked(settings(READER, bookkeeper=secured.bookkeeper(**change)))
    assert bad(found) == {**ASKS_NO_POLICY, "bookies": "failed"}
    assert text in found["bookies"].finding
    assert fix in found["bookies"].fix
    assert "wrong" not in str(found)
