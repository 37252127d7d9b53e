"""What changes while a stream stands still or runs: its rows are the same, or it says why not."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from tests.spark.stream.conftest import Make
from tests.spark.stream.runs import ids, reader, run
from tests.support.fixtures import Offload


def test_lost_messages_stop_the_stream(
    lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20)
    for name in ("stopped", "goes on"):
        assert ids(run(reader(lake).table(topic.table), tmp_path / name)) == list(range(20))
    topic.send(20, 20)
    admin.seal(topic.name)
    topic.send(40, 20)
    admin.seal(topic.name)
    topic.send(60, 20)
    topic.trim()
    with pytest.raises(StreamingQueryException, match=r"has been deleted.*failOnDataLoss=false"):
        run(reader(lake).table(topic.table), tmp_path / "stopped")
    stream = reader(lake, failOnDataLoss="false").table(topic.table)
    assert ids(run(stream, tmp_path / "goes on")) == list(range(60, 80))


def test_a_topic_of_which_pulsar_has_nothing_left(
    lake: PulsarLake, admin: Admin, make: Make, offload: Offload, tmp_path: Path
) -> None:
    """Its broker says that its last message is -1:-1; the table says where it ends."""
    topic = make(1)
    topic.send(0, 40)
    [part] = admin.partitions(topic.name)
    old = set(admin.ledgers(part))
    admin.seal(topic.name)
    offload(topic.name)
    admin.set_retention(topic.namespace, 0, 0)

    def is_trimmed() -> bool:
        admin.trim(topic.name)
        return not old & set(admin.ledgers(part))

    wait_until("all ledgers with entries are deleted", is_trimmed)
    stream = reader(lake, startingPosition="latest").table(topic.table)
    assert run(stream, tmp_path / "latest") == []
    whole = reader(lake, maxMessagesPerTrigger=25).table(topic.table)
    assert ids(run(whole, tmp_path / "whole")) == list(range(40))
    topic.send(40, 20)
    for name in ("latest", "whole"):
        assert ids(run(stream, tmp_path / name)) == list(range(40, 60))


def test_several_topics_have_the_columns_of_all(
    lake: PulsarLake, admin: Admin, make: Make, offload: Offload, tmp_path: Path
) -> None:
    one, other = make(1), make(2)
    one.send(0, 20)
    other.send(20, 20, note="other")
    for topic in (one, other):
        admin.seal(topic.name)
        offload(topic.name)
    one.send(40, 20)
    other.send(60, 20, note="other")
    admin.seal(other.name)
    stream = reader(lake, topics=f"{one.short},{other.short}").format("pulsar").load()
    found = run(stream, tmp_path)
    assert ids(found) == list(range(80))
    notes = {row.id: row.note for batch in found for row in batch}
    assert notes == {number: "other" if number // 20 % 2 else None for number in range(80)}
