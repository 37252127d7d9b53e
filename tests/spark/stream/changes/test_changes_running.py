"""What changes while a stream runs: each message comes once, without a restart."""

import re
from pathlib import Path

from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.spark.stream.conftest import Make
from tests.spark.stream.runs import ids, reader, run, running


def test_topics_of_a_pattern_that_come(lake: PulsarLake, make: Make, tmp_path: Path) -> None:
    first = make(1)
    first.send(0, 20)
    pattern = reader(lake, topicsPattern=f"{first.namespace}/orders.*", startingPosition="latest")
    with running(pattern.format("pulsar").load(), tmp_path) as stream:
        wait_until("the start is kept", (tmp_path / "sources" / "0" / "bounds").exists)
        second = make(2)
        second.send(20, 20)
        first.send(40, 20)
        stream.wait_for(range(20, 60))
        topics = {row["__topic"] for batch in stream.batches for row in batch}
        assert topics == {first.name, second.name}


def test_two_streams_of_one_topic(lake: PulsarLake, make: Make, tmp_path: Path) -> None:
    """Also where they were asked for by the same words."""
    topic = make(2)
    topic.send(0, 60)
    stream = reader(lake, maxMessagesPerTrigger=40).table(topic.table)
    whole = reader(lake).table(topic.table)
    with running(stream, tmp_path / "one") as one, running(whole, tmp_path / "whole") as third:
        one.wait_for(range(60))
        with running(stream, tmp_path / "other") as other:
            topic.send(60, 60)
            for each in (one, other, third):
                each.wait_for(range(120))
                assert all(len(batch) <= 40 for batch in each.batches) or each is third


def test_a_topic_that_is_deleted_while_it_runs(
    lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20)
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(20))
        admin.delete_topic(topic.name)
        # Who is asked first once it is gone: the partition's broker, or how many partitions it has.
        assert re.search(f"{topic.short}(-partition-0)? does not exist", stream.failure())


def test_a_topic_of_a_pattern_that_is_deleted(
    lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path
) -> None:
    kept, dropped = make(1), make(1)
    kept.send(0, 20)
    dropped.send(20, 20)

    def pattern(**options: object) -> DataFrame:
        options["topicsPattern"] = f"{kept.namespace}/orders.*"
        found: DataFrame = reader(lake, **options).format("pulsar").load()
        return found

    with (
        running(pattern(), tmp_path / "stops") as stops,
        running(pattern(failOnDataLoss="false"), tmp_path / "goes on") as goes_on,
        running(
            pattern(failOnDataLoss="false", maxMessagesPerTrigger=15), tmp_path / "limited"
        ) as limited,
    ):
        stops.wait_for(range(40))
        goes_on.wait_for(range(40))
        limited.wait_for(range(40))
        admin.delete_topic(dropped.name)
        assert f"topic {dropped.short}, which was read, has been deleted" in stops.failure()
        kept.send(40, 20)
        goes_on.wait_for(range(60))
        limited.wait_for(range(60))
    assert ids(run(pattern(failOnDataLoss="false"), tmp_path / "stops")) == list(range(40, 60))
