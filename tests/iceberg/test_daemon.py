"""The offloader as users run it: Iceberg follows beside its turns, and never in their way."""

import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from pyiceberg.table import StaticTable, Table

from reader.model import Topic
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.support.iceberg import iceberg_config
from tests.support.running import Settings, Start, starting


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


def pointed_at(settings: Settings, topic: Topic) -> Table:
    place = f"file://{settings.storage.root}/~iceberg/pulsar_lake/{topic.local_name}"
    return StaticTable.from_metadata(place)


def values(settings: Settings, topic: Topic) -> list[bytes]:
    rows = pointed_at(settings, topic).scan(selected_fields=("value",)).to_arrow()
    return sorted(row["value"] for row in rows.to_pylist())


@pytest.mark.timeout(900)
def test_beside_its_turns(
    cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path, start: Start
) -> None:
    """The catalog's database is locked for a while: turns go on, and it is caught up with."""
    topic = Topic.parse(f"{namespace}/beside")
    admin.create_topic(topic.full_name)
    database = tmp_path / "catalog.db"
    options = {"uri": f"sqlite:///{database}?timeout=1"}
    settings = Settings(
        tmp_path,
        cluster,
        str(tmp_path / "lake"),
        iceberg={"catalog": "sql", "options": options},
        max_age="1s",
    )
    run = start(settings, "offload", topic.local_name)

    def offloaded(value: bytes, version: int) -> None:
        publish(cluster.service_url, topic.full_name, [value])
        admin.seal(topic.full_name)
        run.wait_for(f"committed as version {version} ")

    offloaded(b"1", 1)
    run.wait_for("Iceberg shows version 1, 1 files added")
    assert values(settings, topic) == [b"1"]

    with sqlite3.connect(database, isolation_level=None) as locked:
        locked.execute("BEGIN EXCLUSIVE")
        offloaded(b"2", 2)
        run.wait_for("Iceberg: ")
        offloaded(b"3", 3)
        [page] = re.findall(r"status page at (\S+)", run.err)
        said = metrics(page)
        assert said["pulsar_lake_iceberg_behind_seconds"] > 0
        assert said["pulsar_lake_iceberg_behind_versions"] >= 1
        assert said["pulsar_lake_lag_ledgers"] == 0
        status = start(settings, "status", topic.local_name)
        status.code()
        assert "last Iceberg (" in status.out
        locked.execute("ROLLBACK")
    locked.close()
    run.wait_for("Iceberg shows version 3, 2 files added")
    assert values(settings, topic) == [b"1", b"2", b"3"]
    deadline = time.monotonic() + 120
    while metrics(page)["pulsar_lake_iceberg_behind_seconds"] > 0:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    run.interrupt()
    assert run.code() == 0, run.err


@pytest.mark.timeout(900)
def test_a_catalog_that_never_answers_is_in_nobodys_way(
    cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path, start: Start, deaf: str
) -> None:
    """It takes the connection and says nothing: a turn that waited would fail with each commit."""
    topic = Topic.parse(f"{namespace}/hanging")
    admin.create_topic(topic.full_name)
    hanging = {"catalog": "rest", "options": {"uri": deaf}}
    settings = Settings(tmp_path, cluster, str(tmp_path / "lake"), iceberg=hanging, max_age="1s")
    run = start(settings, "offload", topic.local_name)
    versions = 4
    for version in range(1, versions + 1):
        publish(cluster.service_url, topic.full_name, [b"x"])
        admin.seal(topic.full_name)
        run.wait_for(f"committed as version {version} ")
    assert "Iceberg shows" not in run.err
    assert run.err.count("Iceberg: ") < versions - 1, "a read of the catalog fails after 60 s"
    before = time.monotonic()
    run.interrupt()
    assert run.code() == 0, run.err
    assert time.monotonic() - before < 60


@pytest.mark.timeout(900)
def test_an_interrupt_while_iceberg_follows(
    cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path, start: Start, deaf: str
) -> None:
    """Of ``--once``: what is committed stays so, and it is no failure."""
    topic = Topic.parse(f"{namespace}/interrupted")
    admin.create_topic(topic.full_name)
    publish(cluster.service_url, topic.full_name, [b"1"])
    admin.seal(topic.full_name)
    lake = str(tmp_path / "lake")
    hanging = {"catalog": "rest", "options": {"uri": deaf}}
    settings = Settings(tmp_path, cluster, lake, iceberg=hanging)
    run = start(settings, "offload", topic.local_name, "--once", "--now")
    run.wait_for("committed as version 1 ")
    run.interrupt()
    assert run.code() == 0, run.err
    assert "Traceback" not in run.err
    assert "Iceberg has not followed; it does at the next run" in run.err
    assert "1 commits, 0 failures" in run.err

    before = time.monotonic()
    status = start(settings, "status", topic.local_name)
    status.code()
    assert "the Iceberg catalog has not answered within 30 s" in status.out
    assert time.monotonic() - before < 90

    found = {"catalog": "sql", "options": iceberg_config("sql", tmp_path).options}
    again = Settings(tmp_path, cluster, lake, iceberg=found)
    run = start(again, "offload", topic.local_name, "--once", "--now")
    assert run.code() == 0, run.err
    assert "Iceberg shows version 1, 1 files added" in run.err
    assert values(again, topic) == [b"1"]


@pytest.fixture
def deaf() -> Iterator[str]:
    """The address of one who takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def metrics(page: str) -> dict[str, Any]:
    """Those without labels."""
    with urlopen(f"{page}metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {n: float(v) for n, v in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}
