"""A stream into topics, killed with SIGKILL (or its tasks) at each step: each row once."""

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from offloader.config import Config
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore, Rule
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

    def program(self, log: str = "stream.log", **changes: Any) -> StreamProgram:
        """A program that ends when it has copied all that there is, but for what is changed."""
        return StreamProgram(self._directory, replace(self._job, **changes), log=log)

    def die_at(self, step: Step) -> None:
        """Run a program that is killed at a step."""
        started: list[StreamProgram] = []
        rule = self._call_at(step, lambda: started[0].kill())
        started.append(self.program())
        assert started[0].code(240) == -9, f"{step}: {started[0].log}"
        assert rule.hits == 1, f"{step}: {started[0].log}"
        self._store.heal()

    def lose_tasks_at(self, step: Step, program: StreamProgram) -> None:
        """Copy more by a program that runs on, whose tasks are killed at a step."""

        def kill() -> None:
            assert program.kill_some(TASKS)

        rule = self._call_at(step, kill)
        self.send(ROWS)
        self.wait_for(program)
        assert rule.hits == 1, f"{step}: {program.log}"
        self._store.heal()

    def _call_at(self, step: Step, act: Callable[[], None]) -> Rule:
        seen: list[str] = []

        def is_step(method: str, target: str) -> bool:
            path = target.partition("?")[0]
            # A large object begins with a POST, and has its PUTs in parts.
            if method != "PUT" or re.search(step.path, path) is None:
                return False
            seen.append(path)
            return len(seen) == step.number

        def call() -> bool:
            act()
            return False

        return self._store.call(is_step, call, applied=step.applied)

    def wait_for(self, program: StreamProgram) -> None:
        """Wait until a program that runs on has copied all, and compare."""

        def is_copied() -> bool:
            assert program.running, program.log
            return sum(len(one.rows("number")) for one in self._targets) >= self.sent

        wait_until("all rows", is_copied, timeout=240, interval=1)
        self.check()

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


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_kill_at_each_step(copying: Callable[..., Copying], s3: S3) -> None:
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        for step in STEPS:
            copy.send(ROWS)
            copy.die_at(step)
        copy.finish()


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


@pytest.mark.timeout(900)
def test_tasks_that_are_killed(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """While they stage, and between two sends; their driver lives."""
    target = f"{namespace}/copy"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store)
        program = copy.program(now=False)
        try:
            for step in IN_TASKS:
                copy.lose_tasks_at(step, program)
            before = admin.messages(target)
            admin.set_publish_rate(target, messages=SLOW)
            copy.send(ROWS)
            wait_until("some of it is sent", lambda: admin.messages(target) > before, 240)
            assert program.kill_some(TASKS)
            assert admin.messages(target) < before + ROWS
            admin.set_publish_rate(target, messages=-1)
            copy.wait_for(program)
        finally:
            program.kill()


@pytest.mark.timeout(900)
def test_drivers_of_rows_that_name_their_topic(
    copying: Callable[..., Copying], s3: S3, admin: Admin, namespace: str
) -> None:
    """Two of one checkpoint at once: Spark ends one of them, or both. One that is killed while it
    sends, and one behind its first manifest. What all have sent is there once."""
    odd = f"{namespace}/odd"
    with FaultyStore(s3.endpoint) as store:
        copy = copying(store, ("even", "odd"))
        # The second one's start may take most of a minute: the first one still sends then.
        admin.set_publish_rate(odd, messages=8)
        first = begin_to_send(copy, admin, odd)
        second = copy.program("second.log")
        wait_until("the second one to begin", lambda: second.events("started"), timeout=120)
        assert first.running
        admin.set_publish_rate(odd, messages=-1)
        for program in (second, first):
            program.code(300)

        admin.set_publish_rate(odd, messages=SLOW)
        sent = copy.sent
        program = begin_to_send(copy, admin, odd)
        program.kill()
        assert admin.messages(odd) < (sent + copy.sent) // 2
        admin.set_publish_rate(odd, messages=-1)
        copy.send(ROWS)
        copy.die_at(STEPS[4])
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
