"""The tables of roles in ``docs/security.md``: each right that is taken away stops its own thing.

And nothing else: every thing is tried before and after.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from offloader.config import Config
from offloader.schedule import find_topics
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin, wait_until
from testbed.publish import publish
from tests.support.conversions import no_jobs


@dataclass(frozen=True, slots=True)
class World:
    """A role's clients, and the topic ``tenant/namespace/orders``."""

    config: Config
    admin: AdminClient
    topic: Topic

    @property
    def partition(self) -> Partition:
        return Partition(self.topic, -1)


def query(world: World) -> None:
    take_snapshot(Clients(world.config, admin=world.admin), world.topic)


def hold(world: World) -> None:
    """A turn in which nothing is due makes the hold; then it is marked and moved."""
    clients = Clients(world.config, admin=world.admin)
    TopicOffloader(clients, world.config.offload, no_jobs()).turn(world.topic)
    name = world.config.offload.subscription
    world.admin.note_hold(world.partition, name, {"a": "b"})
    ledger = world.admin.ledgers(world.partition).ledgers[0]
    world.admin.move_hold(world.partition, name, Position(ledger.ledger_id, 0))


def look_up(world: World) -> None:
    world.admin.partitions(world.topic)
    world.admin.ledgers(world.partition)
    world.admin.schemas(world.topic)
    world.admin.shadow_source(world.topic)
    assert not world.admin.is_migrated(world.topic)


def list_topics(world: World) -> None:
    """``SHOW TABLES``, and ``offload.topics = ["tenant/namespace/*"]``."""
    assert find_topics(world.admin, [f"{world.topic.tenant}/{world.topic.namespace}/*"])


def roll_over(world: World) -> None:
    world.admin.unload(world.partition)


def list_tenants(world: World) -> None:
    world.admin.tenants()


def count(world: World) -> None:
    world.admin.loaded(world.admin.brokers())


def compacted(world: World) -> None:
    world.admin.compaction_retains_null_keys()


def ask_for_transactions(world: World) -> None:
    world.admin.max_read(world.partition, Position(0, 0))


Thing = Callable[[World], None]
Things = frozenset[Thing]

THINGS: dict[Thing, str] = {
    query: "no permission to consume topic",
    hold: "no permission for",
    look_up: "no permission for topic",
    list_topics: "no permission for namespace",
    list_tenants: "no permission for the tenants",
    count: "no permission for the brokers",
    compacted: "cannot ask the broker whether its compaction",
    ask_for_transactions: "never",
    roll_over: "no permission for topic",
}
"""Each thing, and how its refusal begins."""

ANYBODY: Things = frozenset({ask_for_transactions})
PRODUCER = ANYBODY | {look_up, list_topics}
CONSUMER_OF_TOPIC = ANYBODY | {look_up, query, hold}
CONSUMER = CONSUMER_OF_TOPIC | {list_topics}
TENANTS_ADMINISTRATOR = CONSUMER | {roll_over}
SUPERUSER: Things = frozenset(THINGS)


def refused(world: World) -> dict[Thing, ConfigurationError]:
    found = {}
    for thing in THINGS:
        try:
            thing(world)
        except ConfigurationError as error:
            found[thing] = error
    return found


def check(world: World, *allowed: Things) -> None:
    """What is allowed works, and all else is refused, in one line that says what."""
    expected = THINGS.keys() - set().union(*allowed)
    found: dict[Thing, ConfigurationError] = {}

    def as_expected() -> bool:
        nonlocal found
        found = refused(world)
        return found.keys() == expected

    with suppress(TimeoutError):  # a broker hears of changed rights by a watch
        wait_until("the rights", as_expected, timeout=60)
    assert {one.__name__ for one in found} == {one.__name__ for one in expected}
    for thing, error in found.items():
        assert error.message.startswith(THINGS[thing])
        assert "\n" not in str(error)
        assert error.hint


@pytest.fixture
def role() -> str:
    return f"role-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def make(
    settings: Callable[..., Config], superuser: Admin, writer: Any, role: str
) -> Iterator[Callable[..., World]]:
    """``make(role=…, subscription=…)``: the world of a role in a namespace of the test's own."""
    namespace = f"acme/{role}"
    superuser.create_namespace(namespace)
    topic = superuser.create_topic(f"{namespace}/orders")
    publish(writer, topic, [b"one"])
    opened = []

    def made(who: str = role, subscription: str = "pulsar-lake") -> World:
        config = settings(who)
        offload = config.offload.model_copy(update={"subscription": subscription})
        config = config.model_copy(update={"offload": offload})
        admin = AdminClient(config.pulsar, allowed_seconds=0)
        opened.append(admin)
        return World(config, admin, Topic.parse(topic))

    yield made
    for one in opened:
        one.close()


def tenant(superuser: Admin, *roles: str) -> None:
    clusters = superuser.request("GET", "/v2/tenants/acme")["allowedClusters"]
    body = {"adminRoles": ["acme-admin", *roles], "allowedClusters": clusters}
    superuser.request("POST", "/v2/tenants/acme", json=body)


def test_superuser(make: Callable[..., World]) -> None:
    check(make("superuser"), SUPERUSER)
    check(make("acme-admin"), TENANTS_ADMINISTRATOR)


def test_tenants_administrator(make: Callable[..., World], superuser: Admin, role: str) -> None:
    superuser.grant(f"acme/{role}", role, "consume")
    world = make()
    tenant(superuser, role)
    try:
        check(world, TENANTS_ADMINISTRATOR)
    finally:
        tenant(superuser)
    check(world, CONSUMER)


def test_consume_on_the_namespace(make: Callable[..., World], superuser: Admin, role: str) -> None:
    world = make()
    superuser.grant(f"acme/{role}", role, "consume")
    superuser.grant(f"acme/{role}/orders", role, "consume")
    check(world, CONSUMER)
    superuser.revoke(f"acme/{role}", role)
    check(world, CONSUMER_OF_TOPIC)


def test_consume_where_one_may_produce(
    make: Callable[..., World], superuser: Admin, role: str
) -> None:
    world = make()
    superuser.grant(f"acme/{role}", role, "consume", "produce")
    check(world, CONSUMER)
    superuser.grant(f"acme/{role}", role, "produce")
    check(world, PRODUCER)
    superuser.revoke(f"acme/{role}", role)
    check(world, ANYBODY)


def test_a_namespace_that_restricts_subscriptions_by_prefix(
    make: Callable[..., World], superuser: Admin, role: str
) -> None:
    superuser.grant(f"acme/{role}", role, "consume")
    ours, prefixed = make(), make(subscription=f"{role}-lake")
    check(ours, CONSUMER)
    path = f"/v2/namespaces/acme/{role}/subscriptionAuthMode"
    superuser.request("POST", path, json="Prefix")
    check(ours, CONSUMER - {hold})
    check(prefixed, CONSUMER)


def test_a_permission_on_the_subscription(
    make: Callable[..., World], superuser: Admin, role: str
) -> None:
    superuser.grant(f"acme/{role}", role, "consume")
    world = make()
    path = f"/v2/namespaces/acme/{role}/permissions/subscription/pulsar-lake"
    superuser.request("POST", path, json=[role])
    check(world, CONSUMER)
    superuser.request("POST", path, json=["somebody-else"])
    check(world, CONSUMER - {hold})
