"""The offloader and queries on a real standalone master with two workers."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reader.model import Topic
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.process import wait_for
from testbed.publish import Message, publish
from testbed.s3 import S3
from testbed.standalone import StandaloneSpark, Worker
from tests.support.running import Settings, Start, check_nothing_lost, in_table

pytestmark = pytest.mark.timeout(900)

SECRET = "not-to-be-seen"


@pytest.fixture
def spark() -> Iterator[StandaloneSpark]:
    with StandaloneSpark(workers=2) as started:
        yield started


@pytest.fixture
def topic(admin: Admin, namespace: str) -> Topic:
    return Topic.parse(admin.create_topic(f"{namespace}/t", partitions=4))


@pytest.fixture
def settings(
    cluster: Cluster, s3: S3, spark: StandaloneSpark, tmp_path: Path
) -> Callable[..., Settings]:
    conf = {
        **spark.conf,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "8",
    }

    def make(endpoint: str = s3.endpoint, **offload: Any) -> Settings:
        where = {"master": spark.master, "conf": conf}
        uri = f"{s3.uri}/{uuid.uuid4()}"
        options = s3.options_at(endpoint) | {"secret_access_key": SECRET}
        return Settings(tmp_path, cluster, uri, options, spark=where, **offload)

    return make


def send(cluster: Cluster, admin: Admin, topic: Topic, count: int, ledgers: int) -> list[Message]:
    sent: list[Message] = []
    for ledger in range(ledgers):
        values = [f"{ledger} {number}".encode() for number in range(count)]
        sent += publish(cluster.service_url, topic.full_name, values, batch=5, ids=True)
        admin.seal(topic.full_name)
    return sent


@pytest.mark.nightly
def test_conversion_and_query_on_two_workers(
    cluster: Cluster,
    admin: Admin,
    topic: Topic,
    spark: StandaloneSpark,
    settings: Callable[..., Settings],
    start: Start,
) -> None:
    made = settings()
    sent = send(cluster, admin, topic, 200, 2)
    with _CommandLines(spark) as seen:
        run = start(made, "offload", topic.local_name, "--once", "--now")
        assert run.code() == 0, run.err
        assert check_nothing_lost(made.storage, admin, topic, sent) == len(sent)
        assert all(worker.has_run_tasks() for worker in spark.workers)

        sealed = send(cluster, admin, topic, 100, 1)
        sent += sealed
        sent += publish(cluster.service_url, topic.full_name, [b"open"] * 50, batch=5, ids=True)
        text = (
            "SELECT count(*) AS rows, sum(length(value)) AS bytes, "
            "count(DISTINCT __partition, __ledgerId, __entryId, __batchIndex) AS ids FROM "
            f"pulsar.`{topic.tenant}/{topic.namespace}`.`{topic.name}`"
        )
        asked = start(made, "sql", text, "--format", "json")
        assert asked.code() == 0, asked.err
    size = sum(len(message.payload or b"") for message in sent)
    assert json.loads(asked.out) == [{"rows": len(sent), "ids": len(sent), "bytes": size}]
    assert len(in_table(made.storage, topic)) == len(sent) - len(sealed) - 50
    assert seen.lines
    assert not [line for line in seen.lines if SECRET in line]


def test_a_worker_dies_in_the_middle(
    cluster: Cluster,
    admin: Admin,
    topic: Topic,
    s3: S3,
    spark: StandaloneSpark,
    settings: Callable[..., Settings],
    start: Start,
) -> None:
    sent = send(cluster, admin, topic, 500, 4)
    writes, goes_on = threading.Event(), threading.Event()

    def wait() -> bool:
        writes.set()
        return goes_on.wait(300)

    def is_file(method: str, path: str) -> bool:
        return method in ("PUT", "POST") and ".parquet" in path

    with FaultyStore(s3.endpoint) as store:
        made = settings(store.endpoint, split_bytes=1)
        store.call(is_file, wait, applied=False)
        run = start(made, "offload", topic.local_name, "--once", "--now")
        assert writes.wait(300), run.err
        victim: list[Worker] = []

        def one_works() -> bool:
            victim.extend(worker for worker in spark.workers if worker.has_run_tasks())
            return bool(victim)

        wait_for("a task", one_works)
        assert run.running, run.err
        victim[0].kill()
        goes_on.set()
        assert run.code() == 0, run.err
        assert check_nothing_lost(made.storage, admin, topic, sent) == len(sent)
    [other] = [worker for worker in spark.workers if worker is not victim[0]]
    assert other.has_run_tasks()


class _CommandLines:
    """Every command line of an executor or its Python that could be seen meanwhile."""

    def __init__(self, spark: StandaloneSpark) -> None:
        self._homes = [str(worker.home) for worker in spark.workers]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self.lines: set[str] = set()

    def __enter__(self) -> _CommandLines:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if str((process / "cwd").readlink()).startswith(tuple(self._homes)):
                        self.lines.add((process / "cmdline").read_bytes().decode())
                except OSError:
                    continue  # it has ended, or is none of ours
