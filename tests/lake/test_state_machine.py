"""Random publish, seal, offload, maintain, crash, trim and query steps agree with a plain list."""

from __future__ import annotations

import uuid
from contextlib import nullcontext, suppress
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from offloader.config import Config
from offloader.convert import spark_jobs
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.support.steps import at_step


class CrashError(Exception):
    """The offloader dies here."""


def die(*args: object, **kwargs: object) -> None:
    raise CrashError


class Messages(RuleBasedStateMachine):
    """One partition; the model is the list of what was published, in order."""

    cluster: Cluster
    admin: Admin
    lake: PulsarLake
    config: Config
    namespace: str

    def __init__(self) -> None:
        super().__init__()
        self.topic = f"{self.namespace}/steps-{uuid.uuid4().hex[:8]}"
        self.model: list[bytes] = []
        self.kept: list[tuple[Any, list[bytes]]] = []
        self.admin.create_topic(self.topic)
        self.offload()  # takes the hold, as a running offloader has

    def turn(self) -> None:
        with AdminClient(self.config.pulsar) as client:
            offloader = TopicOffloader(
                Clients(self.config, admin=client),
                self.config.offload,
                spark_jobs(lambda: self.lake.spark.sparkContext),
            )
            while offloader.turn(Topic.parse(self.topic), now=True).more:
                pass

    def rows(self, frame: Any) -> list[bytes]:
        table = frame.select("value", "__ledgerId", "__entryId", "__batchIndex").toArrow()
        rows = sorted(
            (r["__ledgerId"], r["__entryId"], r["__batchIndex"], bytes(r["value"]))
            for r in table.to_pylist()
        )
        return [row[3] for row in rows]

    @rule(count=st.integers(1, 40), batch=st.sampled_from([0, 7]))
    def publish(self, count: int, batch: int) -> None:
        first = len(self.model)
        values = [b"message %d" % number for number in range(first, first + count)]
        publish(self.cluster.service_url, f"persistent://{self.topic}", values, batch=batch)
        self.model += values

    @rule()
    def seal(self) -> None:
        self.admin.seal(self.topic)

    @rule()
    def offload(self) -> None:
        self.turn()

    @precondition(lambda self: self.model)
    @rule(step=st.sampled_from(["files-written", "committed"]))
    def crash(self, step: str) -> None:
        self.admin.seal(self.topic)
        with suppress(CrashError), at_step(step, die):
            self.turn()

    @rule(step=st.sampled_from(["", "maintenance-written", "maintenance-committed"]))
    def maintain(self, step: str) -> None:
        """Any two files are worth one here; and it may die."""
        with (
            patch("offloader.maintenance.selection.GROWTH", 1),
            suppress(CrashError),
            at_step(step, die) if step else nullcontext(),
        ):
            TableMaintainer(open_storage(self.config.storage), self.config.offload).maintain(
                Topic.parse(self.topic), vacuum=True
            )

    @rule()
    def trim(self) -> None:
        self.admin.trim(self.topic)

    @rule()
    def query(self) -> None:
        assert self.rows(self.lake.table(self.topic)) == self.model

    @precondition(lambda self: len(self.kept) < 2)
    @rule()
    def keep_a_dataframe(self) -> None:
        self.kept.append((self.lake.table(self.topic), list(self.model)))

    def teardown(self) -> None:
        self.query()
        for frame, expected in self.kept:
            assert self.rows(frame) == expected


@pytest.mark.timeout(600)
def test_random_steps_agree_with_a_list(
    cluster: Cluster, admin: Admin, namespace: str, lake: PulsarLake, lake_config: Config
) -> None:
    admin.set_retention(namespace, 0, 0)
    made = type(
        "Machine",
        (Messages,),
        {
            "cluster": cluster,
            "admin": admin,
            "lake": lake,
            "config": lake_config,
            "namespace": namespace,
        },
    )
    run_state_machine_as_test(
        made,
        settings=settings(
            max_examples=4,
            stateful_step_count=14,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
