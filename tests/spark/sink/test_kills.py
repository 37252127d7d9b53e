"""A stream into topics, killed with SIGKILL (or its tasks) at each step: each row once."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
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
from tests.support.stream_program import TASKS, Job, StreamProgram

ROWS = 1500
SLOW = 15
"""Messages a second and partition: 25 s at least for what a program sends to a topic."""


class Step(NamedTuple):
    """A request to the store at which something dies: before it is done, or once it is.

    ``path``: a regular expression. ``number``: of the requests that match, from 1 on.
    """

    path: str
    number: int
    applied: bool


STEPS = (
    Step(r"/offsets/\d+$", 1, applied=True),  # tasks are about to encode
    Step(r"sink/.+/\w+\.entries$", 1, applied=False),
    Step(r"sink/.+/\w+\.entries$", 1, applied=True),
    Step(r"sink/.+/\d+\.manifest$", 1, applied=False),
    Step(r"sink/.+/\d+\.manifest$", 1, applied=True),
    Step(r"sink/.+/\d+\.manifest$", 2, applied=False),  # everything is sent
    Step(r"sink/.+/\d+\.manifest$", 2, applied=True),
    Step(r"/commits/\d+$", 1, applied=False),
)
IN_TASKS = STEPS[1:3]
"""Those at which tasks run."""


class Copying:
    """A topic, the topics that a program copies it to, and that program's lives."""

    def __init__(
        self,
        directory: Path,
        cluster: Cluster,
        s3: S3,
        store: FaultyStore,
        config: Config,
        source: str,
        targets: Sequence[Target],
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        self._store = store
        self._source = source
        self._targets = targets
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
            target=targets[0].table,
            routed=[one.topic for one in targets] if len(targets) > 1 else [],
            # Batches are staged compressed, and what is small has no file of its own.
            writing={"compression": "none", "batchingMaxMessages": "1"},
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

    def program(self, log: str = "stream.log") -> StreamProgram:
        return StreamProgram(self._directory, self._job, log=log)

    def die_at(self, step: Step) -> None:
        """Run a program that is killed at a step."""
        program = self._killed_at(step, lambda program: program.kill())
        assert program.code(240) == -9, f"{step}: {program.log}"
        self._store.heal()

    def lose_tasks_at(self, step: Step) -> None:
        """Run a program whose tasks are killed at a step: Spark tries them again."""

        def kill(program: StreamProgram) -> None:
            assert program.kill_some(TASKS)

        program = self._killed_at(step, kill)
        assert program.code(240) == 0, f"{step}: {program.log}"
        self._store.heal()

    def _killed_at(self, step: Step, kill: Callable[[StreamProgram], None]) -> StreamProgram:
        started: list[StreamProgram] = []
        seen: list[str] = []

        def is_step(method: str, target: str) -> bool:
            path = target.partition("?")[0]
            # A large object begins with a POST, and has its PUTs in parts.
            if method != "PUT" or re.search(step.path, path) is None:
                return False
            seen.append(path)
            return len(seen) == step.number

        def call() -> bool:
            kill(started[0])
            return False

        rule = self._store.call(is_step, call, applied=step.applied)
        started.append(self.program())
        started[0].code(240)
        assert rule.hits == 1, f"{step}: {started[0].log}"
        return started[0]

    def finish(self) -> None:
        """Copy what is left, and compare."""
        last = self.program()
        assert last.code(240) == 0, last.log
        self.check()

    def check(self) -> None:
        copied = []
        for place, target in enumerate(self._targets):
            rows = target.rows("number", "origin", "__key")
            assert all(number % len(self._targets) == place for number, _, _ in rows)
            by_key: dict[tuple[str, str], list[int]] = defaultdict(list)
            for number, origin, key in rows:
                by_key[origin, key].append(number)
            assert all(numbers == sorted(numbers) for numbers in by_key.values())
            copied += [number for number, _, _ in rows]
        assert sorted(copied) == list(range(self.sent))


@pytest.fixture
def copying(
    cluster: Cluster,
    admin: Admin,
    s3: S3,
    lake_config: Config,
    namespace: str,
    make: Callable[..., Target],
    tmp_path: Path,
) -> Callable[..., Copying]:
    source = admin.create_topic(f"{namespace}/source", partitions=1)

    def start(store: FaultyStore, names: Sequence[str] = ("copy",)) -> Copying:
        targets = [make(name, "number BIGINT, origin STRING", partitions=2) for name in names]
        return Copying(tmp_path, cluster, s3, store, lake_config, source, targets)

    return start


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_kill_at_each_step(copying: Callable[..., Copying], s3: S3) -> None:
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        for step in STEPS:
            copy.send(ROWS)
            copy.die_at(step)
        copy.finish()


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_kill_between_two_sends(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """Its broker takes so little a second that some of a micro-batch is there when it dies."""
    target = f"{namespace}/copy"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        admin.set_publish_rate(target, messages=SLOW)
        for _ in range(3):
            program = begin_to_send(copy, admin, target)
            program.kill()
            assert admin.messages(target) < copy.sent
        admin.set_publish_rate(target, messages=-1)
        copy.finish()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_rows_that_name_their_topic(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store, ("even", "odd"))
        admin.set_publish_rate(f"{namespace}/odd", messages=SLOW)
        program = begin_to_send(copy, admin, f"{namespace}/odd")
        program.kill()
        assert admin.messages(f"{namespace}/odd") < copy.sent // 2
        admin.set_publish_rate(f"{namespace}/odd", messages=-1)
        copy.send(ROWS)
        copy.die_at(STEPS[4])
        copy.finish()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_tasks_that_are_killed(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """While they stage, and between two sends; their driver lives."""
    target = f"{namespace}/copy"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        for step in IN_TASKS:
            copy.send(ROWS)
            copy.lose_tasks_at(step)
            copy.check()
        admin.set_publish_rate(target, messages=SLOW)
        program = begin_to_send(copy, admin, target)
        assert program.kill_some(TASKS)
        assert admin.messages(target) < copy.sent
        admin.set_publish_rate(target, messages=-1)
        assert program.code(240) == 0, program.log
        copy.check()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_two_drivers_of_one_checkpoint(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """Spark ends one of them, or both: what they have sent is there once."""
    target = f"{namespace}/copy"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        # The second one's start may take most of a minute: the first one still sends then.
        admin.set_publish_rate(target, messages=8)
        first = begin_to_send(copy, admin, target)
        second = copy.program("second.log")
        wait_until("the second one to begin", lambda: second.events("started"), timeout=120)
        assert first.running
        second.code(300)
        admin.set_publish_rate(target, messages=-1)
        first.code(300)
        copy.send(ROWS)
        copy.finish()


def begin_to_send(copy: Copying, admin: Admin, target: str) -> StreamProgram:
    """A program that has sent some of what comes new, and not all."""
    before = admin.messages(target)
    copy.send(ROWS)
    program = copy.program()
    wait_until(
        "some of it is sent",
        lambda: admin.messages(target) > before or not program.running,
        timeout=300,
    )
    assert program.running, program.log
    return program
