"""A stream into a topic, killed with SIGKILL at each step of a micro-batch: each row once."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from offloader.config import Config
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.publish import json_schema, publish
from testbed.s3 import S3
from tests.spark.conftest import ORDER, order
from tests.spark.sink.conftest import Target
from tests.support.running import Settings
from tests.support.stream_program import Job, StreamProgram

ROWS = 1500


class Step(NamedTuple):
    """A request to the store at which the program dies: before it is done, or once it is.

    ``path``: a regular expression. ``number``: of the requests that match, from 1 on.
    """

    path: str
    number: int
    applied: bool


STEPS = (
    Step(r"/offsets/\d+$", 1, applied=True),  # tasks are about to encode
    Step(r"sink/[^/]+/\w+\.entries$", 1, applied=False),
    Step(r"sink/[^/]+/\w+\.entries$", 1, applied=True),
    Step(r"sink/[^/]+/\d+\.manifest$", 1, applied=False),
    Step(r"sink/[^/]+/\d+\.manifest$", 1, applied=True),
    Step(r"sink/[^/]+/\d+\.manifest$", 2, applied=False),  # everything is sent
    Step(r"sink/[^/]+/\d+\.manifest$", 2, applied=True),
    Step(r"/commits/\d+$", 1, applied=False),
)


class Copying:
    """A topic, the topic that a program copies it to, and that program's lives."""

    def __init__(
        self,
        directory: Path,
        cluster: Cluster,
        s3: S3,
        store: FaultyStore,
        config: Config,
        source: str,
        target: Target,
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        self._store = store
        self._source = source
        self._target = target
        self.sent = 0
        settings = Settings(
            directory,
            cluster,
            config.storage.uri,
            s3.options_at(store.endpoint),
            spark={"master": "local[2]", "conf": {"spark.driver.memory": "1g"}},
        )
        self._job = Job(
            config=str(settings.path),
            topics=[source],
            number="id",
            place=f"s3a://{s3.bucket}/copies-{uuid.uuid4()}",
            queries=["copy"],
            target=target.table,
            writing={"compression": "none", "batchingMaxMessages": "20"},
        )

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        publish(
            self._cluster.service_url,
            self._source,
            map(order, numbers),
            schema=json_schema(ORDER),
            batch=50,
        )
        self.sent += count

    def program(self) -> StreamProgram:
        return StreamProgram(self._directory, self._job)

    def die_at(self, step: Step) -> None:
        """Run a program that is killed at a step."""
        started: list[StreamProgram] = []
        seen: list[str] = []

        def is_step(method: str, target: str) -> bool:
            path = target.partition("?")[0]
            # A large object begins with a POST, and has its PUTs in parts.
            if method != "PUT" or re.search(step.path, path) is None:
                return False
            seen.append(path)
            return len(seen) == step.number

        def kill() -> bool:
            started[0].kill()
            return False

        rule = self._store.call(is_step, kill, applied=step.applied)
        started.append(self.program())
        assert started[0].code(240) == -9, f"{step}: {started[0].log}"
        assert rule.hits == 1
        self._store.heal()

    def finish(self) -> None:
        """Copy what is left, and compare."""
        last = self.program()
        assert last.code(240) == 0, last.log
        rows = self._target.rows("number", "origin", "__key")
        assert sorted(number for number, _, _ in rows) == list(range(self.sent))
        by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, origin, key in rows:
            by_key[origin, key].append(number)
        assert all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.fixture
def copying(
    cluster: Cluster,
    admin: Admin,
    s3: S3,
    lake_config: Config,
    namespace: str,
    make: Callable[..., Target],
    tmp_path: Path,
) -> Callable[[FaultyStore], Copying]:
    source = admin.create_topic(f"{namespace}/source", partitions=1)
    target = make("copy", "number BIGINT, origin STRING", partitions=2)
    return lambda store: Copying(tmp_path, cluster, s3, store, lake_config, source, target)


@pytest.mark.long
@pytest.mark.by_hand
@pytest.mark.timeout(1800)
def test_kill_at_each_step(copying: Callable[[FaultyStore], Copying], s3: S3) -> None:
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        for step in STEPS:
            copy.send(ROWS)
            copy.die_at(step)
        copy.finish()


@pytest.mark.long
@pytest.mark.by_hand
@pytest.mark.timeout(1800)
def test_kill_between_two_sends(
    copying: Callable[[FaultyStore], Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """Its broker takes so little a second that some of a micro-batch is there when it dies."""
    target = f"{namespace}/copy"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        admin.set_publish_rate(target, messages=150)
        for _ in range(3):
            before = admin.messages(target)
            copy.send(ROWS)
            program = copy.program()
            wait_until(
                "some of it is sent",
                lambda before=before: admin.messages(target) > before,  # type: ignore[misc]
                timeout=300,
            )
            program.kill()
            assert admin.messages(target) < copy.sent
        admin.set_publish_rate(target, messages=-1)
        copy.finish()
