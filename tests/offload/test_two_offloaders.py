"""Two processes that offload one topic to one table, as users start them."""

import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

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
    counted = [
        re.findall(r"\npulsar_lake_commits_total (\S+)", httpx.get(f"{url}metrics").text)
        for url in urls
    ]
    assert sum(float(one) for [one] in counted) == sum(
        rows > 0 for rows in feed(urls[0]).values()
    ), "each its own"
    for url in urls:
        assert httpx.get(f"{url}api/errors", timeout=60).json() == {"errors": []}
    for run in runs:
        run.interrupt()
    for run in runs:
        assert run.code(120) == 0
        assert "error" not in run.err
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)
