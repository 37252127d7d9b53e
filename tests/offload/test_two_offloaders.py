"""Two processes that offload one topic to one table, as users start them."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from offloader.service.log_follower import FOLLOW_EVERY
from reader.model import Topic
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, publish
from testbed.s3 import S3
from tests.support.running import Run, Settings, Start, check_nothing_lost, starting

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


def url_of(run: Run) -> str:
    run.wait_for("status page at ")
    [url] = re.findall(r"status page at (\S+)", run.err)
    return str(url)


def row_once(url: str, topic: Topic, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The topic as the list of all has it: out of memory, nobody looks because of that."""

    def row() -> dict[str, Any]:
        rows = httpx.get(f"{url}api/topics", timeout=90).json()["topics"]
        return next((one for one in rows if one["topic"] == str(topic) and true(one)), {})

    found: dict[str, Any] = wait_until("the topic's row", row, 180)
    return found


def seal(cluster: Cluster, admin: Admin, topic: Topic, count: int = 40) -> list[Message]:
    texts = [f"{uuid.uuid4()}".encode() for _ in range(count)]
    found = publish(cluster.service_url, topic.full_name, texts, batch=10, ids=True)
    admin.seal(topic.full_name)
    return found


@pytest.fixture
def topic(admin: Admin, namespace: str) -> Topic:
    made = Topic.parse(f"{namespace}/orders")
    admin.create_topic(made.full_name, 2)
    for partition in admin.partitions(made.full_name):
        admin.create_subscription(partition, "pulsar-lake")
    return made


def test_a_commit_of_a_second_process_is_seen_soon(
    start: Start, cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path
) -> None:
    sent = [one for _ in range(3) for one in seal(cluster, admin, topic)]
    uri = f"{s3.uri}/{uuid.uuid4()}"
    settings = Settings(tmp_path, cluster, uri, s3.storage_options, interval="10m", max_age="1h")
    first = start(settings, "offload", str(topic))
    url = url_of(first)
    before = row_once(url, topic, lambda row: row["lag"]["ledgers"] is not None)
    assert before["lag"]["ledgers"] == 6

    second = start(settings, "offload", "--once", "--now", str(topic))
    second.wait_for("committed as version 1 ")
    committed = time.monotonic()
    seen = row_once(url, topic, lambda row: not row["lag"]["bytes"])
    took = time.monotonic() - committed
    assert took < FOLLOW_EVERY + 240, "long before the next turn"
    assert (seen["lag"]["ledgers"], seen["lag"]["seconds"]) == (0, 0.0)
    assert seen["observed_at"] == before["observed_at"], "no turn has told it"
    commit = seen["last_commit"]
    assert (commit["version"], commit["ledgers"], commit["rows"]) == (1, 6, len(sent))
    assert commit["reason"] == "by another process"
    metrics = httpx.get(f"{url}metrics", timeout=60).text
    assert "pulsar_lake_lag_ledgers 0.0" in metrics
    assert "pulsar_lake_commits_total 0.0" in metrics, "they count this process's own"

    # The page of the topic looks, and then all know what it saw.
    page = httpx.get(f"{url}api/topics/{topic.rest_path}", timeout=60).json()
    assert page["observed_at"] > before["observed_at"]
    assert [one["lag_ledgers"] for one in page["partitions"]] == [0, 0]
    assert min(one["watermark"] for one in page["partitions"]) > 0
    assert page["errors"] == []
    status = start(settings, "status", str(topic), "--format", "json")
    assert status.code() == 0
    assert '"lag_ledgers": 0' in status.out
    assert second.code() == 0

    # And nothing is left for the first one to do, or to complain of.
    first.interrupt()
    assert first.code(120) == 0
    assert "error" not in first.err
    assert "offloading" not in first.err
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)


def test_two_daemons_side_by_side(
    start: Start, cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path
) -> None:
    uri = f"{s3.uri}/{uuid.uuid4()}"
    sent: list[Message] = []
    runs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        settings = Settings(
            tmp_path / name, cluster, uri, s3.storage_options, interval="500ms", max_age="1s"
        )
        runs.append(start(settings, "offload", str(topic)))
    urls = [url_of(run) for run in runs]
    for url in urls:  # each has seen the topic before it has a table
        row_once(url, topic, lambda row: row["lag"]["ledgers"] == 0)

    def seen_all(rows: dict[int, int]) -> bool:
        return sum(rows.values()) == len(sent)

    def feed(url: str) -> dict[int, int]:
        """Rows by version."""
        commits = httpx.get(f"{url}api/commits", timeout=60).json()["commits"]
        return {one["version"]: one["rows"] for one in commits}

    for step in range(5):  # both find each of them due, and one has seen the last commit first
        sent += seal(cluster, admin, topic)
        wait_until("the commit", partial(lambda url: seen_all(feed(url)), urls[step % 2]), 180)
    for url in urls:
        wait_until("the commits of both", partial(lambda url: seen_all(feed(url)), url), 180)
        row_once(url, topic, lambda row: row["lag"]["ledgers"] == 0)
    assert feed(urls[0]) == feed(urls[1])
    for url in urls:
        assert httpx.get(f"{url}api/errors", timeout=60).json() == {"errors": []}
    for run in runs:
        run.interrupt()
    for run in runs:
        assert run.code(120) == 0
        assert "error" not in run.err
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)
