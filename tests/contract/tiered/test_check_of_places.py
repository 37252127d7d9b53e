"""``pulsar-lake check`` of ``[[tiered]]``: a bucket and a directory with ledgers of Pulsar's."""

from collections.abc import Iterator
from typing import Any

import pytest

from offloader.check import Checklist, Result, Run
from offloader.config import Config
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.publish import publish
from testbed.tiered import TieredStorage


class _Guarded(FaultyStore):
    """An S3 that asks who is there, which moto does not."""

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        credentials = {name.lower(): value for name, value in headers}
        if "Credential=stranger/" in credentials.get("authorization", ""):
            error = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            return 403, [("Content-Type", "application/xml")], b"" if method == "HEAD" else error
        return super().forward(method, path, headers, body)


@pytest.fixture(scope="module")
def guarded(tiered: TieredStorage) -> Iterator[_Guarded]:
    with _Guarded(tiered.s3.endpoint) as running:
        yield running


@pytest.fixture(scope="module")
def ledgers(
    cluster: Cluster, admin: Admin, tiered: TieredStorage, lake_namespace: str
) -> dict[str, tuple[str, int]]:
    """By driver: a namespace, and a ledger there that Pulsar has offloaded."""
    found = {}
    for driver in ("S3", "NONE"):
        namespace = f"{lake_namespace}-{driver.lower()}"
        admin.create_namespace(namespace)
        tiered.use(namespace, driver, keep=True)
        topic = f"persistent://{namespace}/topic"
        publish(cluster.service_url, topic, (b"%d" % n for n in range(20)))
        admin.seal(topic)
        tiered.offload(topic)
        found[driver] = namespace, min(admin.ledgers(topic))
    return found


def checked(config: Config, *places: dict[str, Any], topics: list[str]) -> list[Result]:
    """The lines of the places."""
    loaded = config.model_validate(
        {
            **config.model_dump(),
            "tiered": list(places),
            "offload": {**config.offload.model_dump(), "topics": topics},
        }
    )
    with Checklist(loaded, 180) as checklist:
        results = Run(checklist.checks(), seconds=180, tell=lambda one: print(one)).results()
    return [one for one in results if one.name.startswith("tiered")]


def test_each_place_has_a_line(
    lake_config: Config, tiered: TieredStorage, ledgers: dict[str, tuple[str, int]]
) -> None:
    topics = [f"{namespace}/*" for namespace, _ in ledgers.values()]
    found = checked(lake_config, *tiered.places, topics=topics)
    assert [(one.name, one.state) for one in found] == [("tiered 1", "ok"), ("tiered 2", "ok")]
    for one, (namespace, ledger) in zip(found, ledgers.values(), strict=True):
        assert f"gives an entry of ledger {ledger} of {namespace}/topic" in one.finding


def test_what_is_wrong_with_a_place(
    lake_config: Config,
    tiered: TieredStorage,
    guarded: _Guarded,
    ledgers: dict[str, tuple[str, int]],
) -> None:
    options = {**tiered.places[0]["options"], "endpoint_url": guarded.endpoint}
    bucket: dict[str, Any] = {"uri": f"s3://{tiered.bucket}", "options": options}
    directory: dict[str, Any] = {"uri": str(tiered.directory)}
    places: list[dict[str, Any]] = [
        bucket,
        bucket | {"options": {**options, "access_key_id": "stranger"}},
        bucket | {"uri": "s3://no-such-bucket"},
        bucket | {"uri": f"s3://{tiered.bucket}/no-such-prefix"},
        directory | {"format": "jcloud", "namespaces": [ledgers["NONE"][0]]},
    ]
    topics = [f"{namespace}/*" for namespace, _ in ledgers.values()]
    found = checked(lake_config, *places, topics=topics)
    assert [one.state for one in found] == ["ok", "failed", "failed", "failed", "failed"]
    good, stranger, missing, prefix, form = found
    assert "gives an entry" in good.finding
    for one in (stranger, missing, prefix):
        assert "options (endpoint_url, region, keys)" in one.fix
    assert "ACCESS_DENIED" in stranger.finding or "AccessDenied" in stranger.finding
    assert "no-such-bucket" in missing.finding
    assert "no-such-prefix" in prefix.finding
    assert form.fix == 'set format = "filesystem" in its section'
