"""A chunked message that is never completed: once in a stream that has passed it, too."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Topic
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.against_java import body
from tests.contract.test_chunks import Chunked
from tests.spark.stream.runs import reader, run


def test_it_comes_once_to_a_stream_that_has_passed_it(
    lake: PulsarLake,
    lake_config: Config,
    oracle: Oracle,
    admin: Admin,
    topic_name: str,
    tmp_path: Path,
) -> None:
    parsed = Topic.parse(topic_name)

    def errors(checkpoint: str) -> list[list[str]]:
        """What there is of each micro-batch."""
        found = run(stream, tmp_path / checkpoint)
        return [told(rows) for rows in found]

    def told(rows: list[Row]) -> list[str]:
        return sorted(row["__error"] or bytes(row["value"]).decode() for row in rows)

    def write(text: str) -> None:
        oracle.write(topic_name, [{"value": text.encode()}])

    def offload(*, give_up: bool) -> None:
        timeout = dt.timedelta(0) if give_up else dt.timedelta(hours=1)
        options = lake_config.offload.model_copy(update={"chunk_timeout": timeout})
        admin.seal(topic_name)
        with Clients(lake_config) as clients:
            TopicOffloader(clients, options, lambda: lake.spark.sparkContext).turn(parsed, now=True)

    def abandoned(name: str) -> str:
        """Two chunks of three, with a message between; the error of its row."""
        message = Chunked(oracle, topic_name, name, body(3_000), 3)
        _, ledger, entry, _ = message.send(0)
        write(f"within {name}")
        message.send(1)
        begin = f"its first chunk is entry {ledger}:{entry}"
        return f"chunked message that was never completed: {begin}"

    def fail(frame: DataFrame) -> list[Row]:
        frame.collect()
        raise RuntimeError("the sink is down")

    write("first")
    stream = reader(lake, topic=parsed.local_name).format("pulsar").load()
    a = abandoned("A")
    write("last")
    values = sorted(["first", "within A", "last"])
    assert errors("passed") == [values]
    with pytest.raises(StreamingQueryException, match="the sink is down"):
        run(stream, tmp_path / "failed", collect=fail)
    offload(give_up=False)
    assert errors("passed") == []
    assert errors("cold") == [values]
    offload(give_up=True)
    assert errors("passed") == [[a]]
    assert errors("cold") == [[a]]
    assert errors("failed") == [values, [a]]
    assert errors("later") == [sorted([*values, a])]
    b = abandoned("B")
    assert errors("passed") == [["within B"]]
    for give_up in (False, True):
        offload(give_up=give_up)
    assert errors("passed") == [[b]]
    assert errors("cold") == [sorted(["within B", b])]
    everything = sorted([*values, a, "within B", b])
    assert errors("at the end") == [everything]
    rows = lake.table(topic_name).select("__error", "value").collect()
    assert told(rows) == everything
