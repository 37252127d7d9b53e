"""A chunked message that is never completed: once in a stream that has passed it, too."""

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row

from offloader.config import Config
from offloader.convert import spark_jobs
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Position, Topic
from reader.model.columns import FIRST_CHUNK
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.corpus.topics.chunks import Chunked
from tests.contract.java import body
from tests.spark.stream.runs import reader, run


class Abandoned:
    """A topic of bytes, and messages of it that are never completed."""

    def __init__(self, lake: PulsarLake, config: Config, oracle: Oracle, admin: Admin, topic: str):
        self.local_name = Topic.parse(topic).local_name
        self._lake, self._config, self._oracle, self._admin = lake, config, oracle, admin
        self._topic = topic

    def write(self, *texts: str) -> None:
        for text in texts:
            self._oracle.write(self._topic, [{"value": text.encode()}])

    def begin(self, name: str, between: str) -> str:
        """Two chunks of three, with a message between; what ``told`` gives of its row."""
        message = Chunked(self._oracle, self._topic, name, body(3_000), 3)
        _, ledger, entry, _ = message.send(0)
        self.write(between)
        message.send(1)
        return f"incomplete {ledger}:{entry}"

    def offload(self, *, give_up: bool) -> None:
        timeout = dt.timedelta(0) if give_up else dt.timedelta(hours=1)
        options = self._config.offload.model_copy(update={"chunk_timeout": timeout})
        self._admin.seal(self._topic)
        with Clients(self._config) as clients:
            jobs = spark_jobs(lambda: self._lake.spark.sparkContext)
            offloader = TopicOffloader(clients, options, jobs)
            offloader.turn(Topic.parse(self._topic), now=True)

    def stream(self, **options: Any) -> DataFrame:
        found = reader(self._lake, topic=self.local_name, **options).format("pulsar").load()
        assert isinstance(found, DataFrame)
        return found


@pytest.fixture
def abandoned(
    lake: PulsarLake, lake_config: Config, oracle: Oracle, admin: Admin, topic_name: str
) -> Abandoned:
    return Abandoned(lake, lake_config, oracle, admin, topic_name)


def told(rows: Sequence[Row]) -> list[str]:
    """The value of each row, or its kind and where it begins."""
    return sorted(
        f"{row['__kind']} {Position(*(row[name] for name in FIRST_CHUNK))}"
        if row["value"] is None
        else bytes(row["value"]).decode()
        for row in rows
    )


def test_it_comes_once_to_a_stream_that_has_passed_it(
    lake: PulsarLake, abandoned: Abandoned, topic_name: str, tmp_path: Path
) -> None:
    def errors(checkpoint: str) -> list[list[str]]:
        """What there is of each micro-batch."""
        return [told(rows) for rows in run(stream, tmp_path / checkpoint)]

    def fail(frame: DataFrame) -> list[Row]:
        frame.collect()
        raise RuntimeError("the sink is down")

    abandoned.write("first")
    stream = abandoned.stream()
    a = abandoned.begin("A", "within A")
    abandoned.write("last")
    values = sorted(["first", "within A", "last"])
    assert errors("passed") == [values]
    with pytest.raises(StreamingQueryException, match="the sink is down"):
        run(stream, tmp_path / "failed", collect=fail)
    abandoned.offload(give_up=False)
    assert errors("passed") == []
    assert errors("cold") == [values]
    abandoned.offload(give_up=True)
    assert errors("passed") == [[a]]
    assert errors("cold") == [[a]]
    assert errors("failed") == [values, [a]]
    everything = sorted([*values, a])
    assert errors("later") == [everything]
    assert (
        told(lake.table(topic_name).select("__kind", *FIRST_CHUNK, "value").collect()) == everything
    )


def test_its_file_lies_inside_another(abandoned: Abandoned, tmp_path: Path) -> None:
    """And is read after it: the stream goes on, and not back."""
    abandoned.write("m0")
    stream = abandoned.stream(maxMessagesPerTrigger=6)
    error = abandoned.begin("A", "m1")
    later = [f"m{number}" for number in range(2, 11)]
    abandoned.write(*later)
    for give_up in (False, True):
        abandoned.offload(give_up=give_up)
    abandoned.write("d0", "d1")
    batches = run(stream, tmp_path)
    found = told([row for rows in batches for row in rows])
    assert found == sorted(["m0", error, "m1", *later, "d0", "d1"])
    assert len(batches) > 1


def test_it_lay_before_the_stream_began(abandoned: Abandoned, tmp_path: Path) -> None:
    abandoned.write("before")
    abandoned.begin("A", "between")
    stream = abandoned.stream(startingPosition="latest")
    assert run(stream, tmp_path) == []
    for give_up in (False, True):
        abandoned.offload(give_up=give_up)
    abandoned.write("after")
    found = [row for rows in run(stream, tmp_path) for row in rows]
    assert told(found) == ["after"]
