"""What changes while a stream stands still or runs: its rows are the same, or it says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from offloader.config import Config
from reader import model
from reader.storage import open_storage
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import ids, reader, run
from tests.support.tables import maintainer


def test_a_new_partition_is_read_from_its_beginning(
    lake: PulsarLake, admin: Admin, make: Callable[[int], Topic], tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20)
    stream = reader(lake, startingPosition="latest").table(topic.table)
    assert run(stream, tmp_path) == []
    admin.grow_partitions(topic.name, 3)
    topic.send(20, 30)
    found = wait_until("rows of new partitions", lambda: run(stream, tmp_path))
    while len(ids(found)) < 30:
        found += run(stream, tmp_path)
    assert ids(found) == list(range(20, 50))
    assert {row["__partition"] for one in found for row in one} == {0, 1, 2}


def test_positions_are_the_first_and_the_last_that_are_read(
    lake: PulsarLake, admin: Admin, make: Callable[[int], Topic], tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 100)
    ledger = admin.ledgers(admin.partitions(topic.name)[0])[0]
    rows = lake.spark.table(topic.table).collect()
    wanted = sorted(row.id for row in rows if 2 <= row["__entryId"] <= 5)
    bounds = {"startingPosition": f"{ledger}:2", "endingPosition": f"{ledger}:5"}
    stream = reader(lake, **{name: json.dumps({"0": at}) for name, at in bounds.items()})
    assert ids(run(stream.table(topic.table), tmp_path / "positions")) == wanted
    times = sorted({row["__publishTime"] for row in rows})
    middle = times[len(times) // 2]
    later = sorted(row.id for row in rows if row["__publishTime"] >= middle)
    at = middle.astimezone().isoformat()
    stream = reader(lake, startingPosition=at).table(topic.table)
    assert ids(run(stream, tmp_path / "time")) == later
    stream = reader(lake, endingPosition=at).table(topic.table)
    upto = sorted(row.id for row in rows if row["__publishTime"] <= middle)
    assert ids(run(stream, tmp_path / "ending")) == upto


def test_lost_messages_stop_the_stream(
    lake: PulsarLake, admin: Admin, make: Callable[[int], Topic], tmp_path: Path
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


def test_ledgers_without_entries_come_and_go(
    lake: PulsarLake, admin: Admin, make: Callable[[int], Topic], tmp_path: Path
) -> None:
    """A topic that is unloaded gets a ledger, and Pulsar deletes the last one if it was empty."""
    topic = make(1)
    topic.send(0, 20)
    stream = reader(lake, startingPosition="latest").table(topic.table)
    assert run(stream, tmp_path / "latest") == []
    assert ids(run(reader(lake).table(topic.table), tmp_path / "earliest")) == list(range(20))
    ledgers = set()
    for name in ("latest", "earliest"):
        admin.seal(topic.name)
        ledgers.add(admin.ledgers(admin.partitions(topic.name)[0])[-1])
        assert ids(run(stream, tmp_path / name)) == []
    admin.seal(topic.name)
    topic.send(20, 20)
    assert len(ledgers - set(admin.ledgers(admin.partitions(topic.name)[0]))) > 0
    for name in ("latest", "earliest"):
        assert ids(run(stream, tmp_path / name)) == list(range(20, 40))


def test_a_topic_without_messages_is_unloaded(
    lake: PulsarLake, admin: Admin, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    topic = admin.create_topic(f"{namespace}/empty", partitions=0)
    stream = reader(lake, topic=f"{namespace}/empty").format("pulsar").load()
    assert run(stream, tmp_path) == []
    [first] = admin.ledgers(topic)
    for _ in range(2):
        admin.seal(topic)
    assert first not in admin.ledgers(topic)
    publish(cluster.service_url, topic, [b"one", b"two"])
    found = run(stream, tmp_path)
    assert [bytes(row.value) for batch in found for row in batch] == [b"one", b"two"]


def test_a_topic_of_which_pulsar_has_nothing_left(
    lake: PulsarLake,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
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


def test_rows_that_were_read_may_expire(
    lake: PulsarLake,
    lake_config: Config,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
) -> None:
    topic = make(1)

    def read(name: str) -> list[int]:
        return ids(run(reader(lake).table(topic.table), tmp_path / name))

    topic.send(0, 20)
    assert read("some") == list(range(20))
    topic.send(20, 20)
    assert read("all") == list(range(40))
    admin.seal(topic.name)
    offload(topic.name)
    topic.send(40, 20)
    topic.trim()
    late = maintainer(open_storage(lake_config.storage), ahead=2 * 86_400, retention="1d")
    assert late.maintain(model.Topic.parse(topic.name)).expired_rows == 40
    # Both are started again, and Spark asks for their last micro-batches, which have no rows now.
    assert read("all") == list(range(40, 60))
    with pytest.raises(StreamingQueryException, match=r"have expired.*failOnDataLoss=false"):
        read("some")


def test_several_topics_have_the_columns_of_all(
    lake: PulsarLake,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
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
