"""``pulsar-lake check`` on real servers: all green, and then one thing wrong at a time."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offloader.check import Checklist, Result, Run
from offloader.config import load_config
from offloader.subscription import unsafe_settings
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.proxy import TcpProxy
from testbed.publish import publish
from testbed.s3 import S3
from tests.support.running import run_program

_MAIN = "from offloader.cli.app import main; main()"

Settings = dict[str, dict[str, Any]]

PULSAR = ["admin", "role", "topics", "bookies", "broker"]
NAMES = [*PULSAR, "storage", "clocks", "java", "jars", "space", "memory"]
"""The lines, in their order."""


@pytest.fixture(scope="module")
def topic(cluster: Cluster, admin: Admin, lake_namespace: str) -> str:
    """With a sealed ledger of some entries on all bookies, and an open one."""
    name = admin.create_topic(f"{lake_namespace}/orders", partitions=2)
    publish(cluster.service_url, name, (b"%d" % n for n in range(60)))
    admin.seal(name)
    publish(cluster.service_url, name, (b"%d" % n for n in range(20)))
    return name


class _Store(FaultyStore):
    """An S3 whose conditional puts are none, if it is told so."""

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self.drops_condition = False

    def forward(
        self, method: str, path: str, headers: list[tuple[str, str]], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.drops_condition:
            headers = [one for one in headers if one[0].lower() != "if-none-match"]
        return super().forward(method, path, headers, body)


@pytest.fixture(scope="module")
def started_store(s3: S3) -> Iterator[_Store]:
    with _Store(s3.endpoint) as running:
        yield running


@pytest.fixture
def store(started_store: _Store) -> Iterator[_Store]:
    yield started_store
    started_store.heal()
    started_store.drops_condition = False


@pytest.fixture
def settings(cluster: Cluster, s3: S3, store: _Store, topic: str, lake_namespace: str) -> Settings:
    return {
        "pulsar": {"service_url": cluster.service_url, "admin_url": cluster.admin_url},
        "storage": {"uri": f"{s3.uri}/checked", "options": s3.options_at(store.endpoint)},
        "offload": {"topics": [f"{lake_namespace}/*"]},
    }


PATIENT = 180.0
"""Seconds for each check: of them a third for `java -version`, which is a process."""


def checked(
    settings: Settings, seconds: float = PATIENT, **changes: dict[str, Any]
) -> dict[str, Result]:
    """By name; ``changes`` are added to the sections."""
    merged = {name: {**settings.get(name, {}), **changes.get(name, {})} for name in settings}
    with Checklist(load_config(merged), seconds) as checklist:
        # Told as they come: the captured output has what a test does not compare.
        found = Run(checklist.checks(), seconds=seconds, tell=lambda one: print(one)).results()
    assert [one.name for one in found] == NAMES
    return {one.name: one for one in found}


def bad(found: dict[str, Result]) -> dict[str, str]:
    """What is not fine. A machine may have little memory, and jars that are not fetched yet."""
    return {
        name: one.state
        for name, one in found.items()
        if one.state != "ok" and name not in ("memory", "jars", "space")
    }


@pytest.mark.journey
def test_all_is_well(settings: Settings, s3: S3, topic: str) -> None:
    before = s3.keys()
    found = checked(settings)
    assert bad(found) == {}
    assert "Pulsar 4." in found["admin"].finding
    assert "a superuser, may list and consume 1 topic" in found["role"].finding
    assert topic.removeprefix("persistent://") in found["topics"].finding
    assert "3 of 3 answer" in found["bookies"].finding
    assert "3 gave an entry" in found["bookies"].finding
    assert "leads to itself" in found["broker"].finding
    assert "agree" in found["clocks"].finding
    # pyarrow marks a folder that was emptied; it is nothing to any reader.
    assert set(s3.keys()) - set(before) <= {"checked/"}


def test_it_leaves_pulsar_as_it_was(settings: Settings, admin: Admin, topic: str) -> None:
    """Above all no subscription, which would keep messages for ever."""

    def subscriptions() -> list[Any]:
        return [list(admin.internal_stats(one)["cursors"]) for one in admin.partitions(topic)]

    before = subscriptions()
    checked(settings)
    assert subscriptions() == before == [[], []]


@pytest.mark.journey
def test_a_bookie_that_is_down(cluster: Cluster, settings: Settings) -> None:
    """It is down for whoever reaches it through a proxy: all test processes share the bookies."""
    bookie = cluster.bookies[1].address
    with TcpProxy(bookie) as proxy:
        behind: dict[str, Any] = {"bookies": {bookie: proxy.address}}
        assert bad(checked(settings, pulsar=behind)) == {}
        proxy.stop()
        found = checked(settings, pulsar=behind)
        through_broker = checked(settings, pulsar=behind, offload={"source": "broker"})
    assert bad(found) == {"bookies": "failed"}
    assert f"1 of 3 do not answer: {bookie} at {proxy.address}: " in found["bookies"].finding
    assert "start it; or name an address" in found["bookies"].fix
    assert bad(through_broker) == {"bookies": "warning"}


def test_a_bookie_whose_address_is_another_ones(cluster: Cluster, settings: Settings) -> None:
    ids = [one.address for one in cluster.bookies]
    found = checked(settings, pulsar={"bookies": {ids[0]: "no-such-host.invalid:3181"}})
    assert f"{ids[0]} at no-such-host.invalid:3181: no connection" in found["bookies"].finding
    assert "[pulsar.bookies]" in found["bookies"].fix


def test_nothing_matches(settings: Settings) -> None:
    found = checked(settings, offload={"topics": ["public/default/nothing-like-that-*"]})
    assert bad(found) == {"topics": "warning"}
    assert "matches no topic" in found["topics"].finding
    found = checked(settings, offload={"topics": ["public/no-such-namespace/*"]})
    assert found["topics"].state == "warning"
    assert "public/no-such-namespace does not exist" in found["topics"].finding
    found = checked(settings, offload={"topics": ["public/default/no-such-topic"]})
    assert "topic public/default/no-such-topic does not exist" in found["topics"].finding
    assert found["role"].state == found["bookies"].state == "ok"
    found = checked(settings, offload={"topics": []})
    assert "offload.topics is empty" in found["topics"].finding


def test_settings_that_delete(
    settings: Settings, admin: Admin, topic: str, lake_namespace: str
) -> None:
    path = f"/v2/namespaces/{lake_namespace}"
    applied = f"/v2/persistent/{topic.removeprefix('persistent://')}/messageTTL"

    def is_applied() -> bool:
        return bool(admin.request("GET", applied, params={"applied": "true"}))

    def named() -> tuple[str, ...]:
        with AdminClient(load_config(settings).pulsar) as client:
            return unsafe_settings(client, Topic.parse(topic))

    quota = {"limitSize": 1 << 20, "limitTime": -1, "policy": "consumer_backlog_eviction"}
    admin.request("POST", f"{path}/subscriptionExpirationTime", json=5)
    admin.request("POST", f"{path}/backlogQuota", json=quota)
    admin.request("POST", f"{path}/messageTTL", json=3600)
    wait_until("the policy", is_applied)
    wait_until("each policy", lambda: len(named()) == 3)
    texts = "\n".join(named())
    try:
        warned = checked(settings)
        refused = checked(settings, offload={"unsafe_retention": "refuse"})
    finally:
        for policy in ("subscriptionExpirationTime", "backlogQuota", "messageTTL"):
            admin.request("DELETE", f"{path}/{policy}")
        wait_until("its end", lambda: not is_applied())
    assert bad(warned) == {"topics": "warning"}
    assert "message TTL 3600 s" in warned["topics"].finding
    for text in ("message TTL 3600 s", "subscription expiry 5 min", "consumer_backlog_eviction"):
        assert text in texts
    assert bad(refused) == {"topics": "failed"}


def test_servers_that_do_not_answer(settings: Settings, cluster: Cluster) -> None:
    """One that accepts and says nothing, as a firewall may: each line in its time."""
    admin_port = cluster.admin_url.rpartition("/")[2]
    with TcpProxy(admin_port) as silent, TcpProxy(cluster.service_url.rpartition("/")[2]) as gone:
        silent.stall()
        gone.stop()
        urls = {"admin_url": f"http://{silent.address}", "service_url": f"pulsar://{gone.address}"}
        found = checked(settings, seconds=30, pulsar=urls)
    assert bad(found) == {
        "admin": "failed",
        "role": "skipped",
        "topics": "skipped",
        "bookies": "skipped",
        "broker": "failed",
    }
    assert silent.address in found["admin"].finding
    assert found["role"].finding == "needs admin"
    assert gone.address in found["broker"].finding
    assert found["admin"].seconds < 29, "not pulsar.timeout, 30 s"


def test_an_admin_that_is_none(settings: Settings, s3: S3) -> None:
    found = checked(settings, pulsar={"admin_url": s3.endpoint})
    assert "answers, but not as a Pulsar admin" in found["admin"].finding
    assert found["clocks"].finding == "this clock and that of the storage agree"


def test_a_put_that_is_not_conditional(settings: Settings, s3: S3, store: _Store) -> None:
    store.drops_condition = True
    found = checked(settings)
    assert bad(found) == {"storage": "failed"}
    assert "of 4 commits of one version succeeded" in found["storage"].finding
    assert "If-None-Match" in found["storage"].fix
    assert not s3.keys("checked/~check")


@pytest.mark.parametrize(
    ("method", "step"), [("PUT", "write to"), ("GET", "read from"), ("DELETE", "delete in")]
)
def test_a_right_that_is_missing(
    settings: Settings, s3: S3, store: _Store, method: str, step: str
) -> None:
    def matches(asked: str, path: str) -> bool:
        deletes = asked == "POST" and "?delete" in path
        about_probe = "probe" in path or deletes
        return about_probe and ("DELETE" if deletes else asked) == method

    store.refuse(matches, times=1000)
    found = checked(settings)
    assert bad(found).keys() >= {"storage"}
    assert found["storage"].finding.startswith(
        f"cannot {step} s3://lake/checked at {store.endpoint}"
    )
    assert "the right to put, get, list and delete" in found["storage"].fix
    for key in s3.keys("checked/~check"):
        s3.client().delete_object(Bucket=s3.bucket, Key=key)


def test_a_bucket_that_is_not_there(settings: Settings) -> None:
    found = checked(settings, storage={**settings["storage"], "uri": "s3://no-such-bucket/x"})
    assert found["storage"].state == "failed"
    assert "is the bucket there?" in found["storage"].fix


def test_a_clock_that_is_off(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 60 * 10**9)
    found = checked(settings)
    assert bad(found) == {"clocks": "warning"}
    assert " s ahead of that of the " in found["clocks"].finding
    assert "NTP" in found["clocks"].fix


def test_no_java(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = checked(settings)
    assert bad(found) == {"java": "failed"}


@pytest.fixture
def run(settings: Settings, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """The command, as users run it: (exit code, standard output, standard error)."""
    lines = []
    for section, keys in settings.items():
        options = keys.pop("options", {}) if section == "storage" else {}
        lines += [
            f"[{section}]",
            *(f"{name} = {json.dumps(value)}" for name, value in keys.items()),
        ]
        if options:
            lines += ["[storage.options]", *(f'{k} = "{v}"' for k, v in options.items())]
    path = tmp_path / "lake.toml"
    path.write_text("\n".join(lines))
    always = ("--config", str(path), "--timeout", str(PATIENT))

    def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
        done = run_program(
            [sys.executable, "-c", _MAIN, "check", *always, *arguments],
            env={**os.environ, **environment},
            timeout=240,
        )
        return done.returncode, done.stdout, done.stderr

    return command


@pytest.mark.journey
def test_the_command(run: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = run()
    assert code == 0, out
    assert [line.split()[1] for line in out.splitlines()] == NAMES
    assert "\x1b" not in out
    code, out, _ = run("--format", "json", PULSAR_LAKE__PULSAR__ADMIN_URL="http://127.0.0.1:1")
    assert code == 1
    found = {one["name"]: one for one in json.loads(out)}
    assert list(found) == NAMES
    assert found["admin"]["state"] == "failed"
    assert found["admin"]["fix"] == "check pulsar.admin_url and that the broker runs"
    assert found["role"] == {
        "name": "role",
        "state": "skipped",
        "finding": "needs admin",
        "fix": "",
        "seconds": 0.0,
    }
