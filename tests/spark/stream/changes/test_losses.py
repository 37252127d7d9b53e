"""Messages that are gone before a stream has read them: never passed by without a word."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row

from offloader.config import Config
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from reader import model
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.storage import open_storage
from reader.stream import StreamOffset, StreamOptions, Tails, TopicStream
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import ids, reader, run, running
from tests.support.tables import maintainer, settings


@pytest.fixture
def offloaded(admin: Admin, make: Callable[[int], Topic], offload: Callable[[str], None]) -> Topic:
    """Of one partition, with 20 orders in a sealed ledger, which the table has, too."""
    topic = make(1)
    topic.send(0, 20)
    admin.seal(topic.name)
    offload(topic.name)
    return topic


def test_rows_of_one_ledger_expire_at_two_times(
    lake: PulsarLake,
    lake_config: Config,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A micro-batch that is run again in between would have fewer rows."""
    monkeypatch.setattr("offloader.maintenance.selection.SLACK", 0)
    topic = make(1)
    topic.send(0, 20)
    time.sleep(1)
    middle = time.time()
    time.sleep(1)
    topic.send(20, 20)
    admin.seal(topic.name)
    offload(topic.name)
    topic.send(40, 20)
    topic.trim()
    storage, name = open_storage(lake_config.storage), model.Topic.parse(topic.name)

    def expired(at: float) -> int:
        """How many do where it is ``at`` (s since the epoch), however long that takes."""
        now = int(at * 1000)
        options = settings(storage, retention="1h").offload
        standing = TableMaintainer(
            storage, options, clocks=Clocks(ms=lambda: now), storage_clock_ms=lambda *_: now
        )
        return standing.maintain(name).expired_rows

    assert expired(middle + 3600) == 20
    seen: list[Row] = []

    def fail(frame: DataFrame) -> list[Row]:
        seen.extend(frame.collect())
        raise RuntimeError("the sink is down")

    with pytest.raises(StreamingQueryException, match="the sink is down"):
        run(reader(lake).table(topic.table), tmp_path, collect=fail)
    assert ids([seen]) == list(range(20, 60))
    assert expired(time.time() + 2 * 3600) == 20
    with pytest.raises(StreamingQueryException, match="have expired"):
        run(reader(lake).table(topic.table), tmp_path)


def test_rows_of_a_partition_that_waits_for_another_expire(
    lake_config: Config,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
) -> None:
    """With a limit the older one is read first."""
    topic = make(2)
    topic.send_to(0, 0, 20)
    time.sleep(0.1)
    topic.send_to(1, 20, 20)
    admin.seal(f"{topic.name}-partition-1")
    offload(topic.name)
    name = model.Topic.parse(topic.name)
    with Clients(lake_config) as clients, Tails(clients) as tails:
        stream = _stream(clients, tails, topic, maxMessagesPerTrigger="10")
        first = stream.bounds()[0]
        second = stream.next(first)[0]
        late = maintainer(clients.storage, ahead=2 * 3600, retention="1h")
        assert late.maintain(name).expired_rows == 20
        with Tails(clients) as others:  # started again
            stream = _stream(clients, others, topic, maxMessagesPerTrigger="10")
            with pytest.raises(ConfigurationError, match="have expired"):
                _read_on(stream, second)


def test_a_ledger_is_deleted_before_the_first_micro_batch(
    lake: PulsarLake, admin: Admin, make: Callable[[int], Topic], tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20)
    waits = reader(lake, minMessagesPerTrigger=1000, maxTriggerDelay="1h").table(topic.table)
    with running(waits, tmp_path):
        wait_until("its place is kept", (tmp_path / "sources" / "0" / "bounds").exists)
    admin.seal(topic.name)
    topic.send(20, 20)
    topic.trim()
    admin.seal(topic.name)  # its broker counts anew, and may delete what was sent last, too
    topic.send(40, 1)
    with pytest.raises(StreamingQueryException, match="has been deleted"):
        run(reader(lake).table(topic.table), tmp_path)


def test_the_beginning_of_a_new_partition_is_deleted(
    lake: PulsarLake, cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path
) -> None:
    admin.set_retention(namespace, 0, 0)
    short = f"{namespace}/grown"
    topic = admin.create_topic(short, partitions=1)
    stream = reader(lake, topic=short).format("pulsar").load()
    assert run(stream, tmp_path) == []
    admin.grow_partitions(topic, 2)
    part = f"{topic}-partition-1"
    publish(cluster.service_url, part, [b"first"])
    first = set(admin.ledgers(part))
    publish(cluster.service_url, part, [b"more"] * 5_100)  # more entries than a ledger takes

    def is_gone() -> bool:
        admin.trim(part)
        return not first & set(admin.ledgers(part))

    wait_until("its first ledger is deleted", is_gone)
    with pytest.raises(StreamingQueryException, match="were deleted before they were read"):
        run(stream, tmp_path)


def test_the_table_lies_elsewhere(
    lake_config: Config,
    offloaded: Topic,
    tmp_path: Path,
) -> None:
    """As a query says, and not the rows that Pulsar has left."""
    offloaded.send(20, 20)
    offloaded.trim()
    elsewhere = type(lake_config.storage).model_validate({"uri": str(tmp_path)})
    other = lake_config.model_copy(update={"storage": elsewhere})
    with Clients(other) as clients, Tails(clients) as tails:
        stream = _stream(clients, tails, offloaded)
        with pytest.raises(ConfigurationError, match="was moved for the table at"):
            _read_on(stream, stream.bounds()[0])


def test_a_topic_is_made_again_while_the_stream_stands(
    lake_config: Config,
    admin: Admin,
    make: Callable[[int], Topic],
    offload: Callable[[str], None],
) -> None:
    """And looked at, by Trigger.AvailableNow, while the new one is empty."""
    topic = make(1)
    topic.send(0, 40)
    admin.seal(topic.name)
    offload(topic.name)

    def run_once(start: StreamOffset | None) -> StreamOffset:
        with Clients(lake_config) as clients, Tails(clients) as tails:
            stream = _stream(clients, tails, topic)
            start = start or stream.bounds()[0]
            end = stream.next(start, until=stream.end())[0]
            stream.plan(start, end)
            return end

    first = run_once(None)
    admin.delete_topic(topic.name)
    admin.create_topic(topic.short, partitions=1)
    admin.internal_stats(f"{topic.name}-partition-0")
    second = run_once(first)
    topic.send(100, 40)
    with pytest.raises(ConfigurationError, match="was deleted and made again"):
        run_once(second)


def test_a_topic_is_made_again_with_other_partitions(
    lake_config: Config, admin: Admin, make: Callable[[int], Topic]
) -> None:
    """The partition that has gone has no end that could be before what was read."""
    topic = make(2)
    topic.send(0, 40)
    with Clients(lake_config) as clients, Tails(clients) as tails:
        first = _stream(clients, tails, topic).end()
    admin.delete_topic(topic.name)
    admin.create_topic(topic.short, partitions=1)
    topic.send_to(0, 40, 1)
    with Clients(lake_config) as clients, Tails(clients) as tails:
        stream = _stream(clients, tails, topic)
        for until in (None, first):
            with pytest.raises(ConfigurationError, match="made again with other partitions"):
                stream.next(first, until=until)


def test_a_cluster_that_is_set_up_anew(lake_config: Config, make: Callable[[int], Topic]) -> None:
    """Its ledgers' numbers begin again, and new messages lie before what was read."""
    topic = make(1)
    topic.send(0, 20)
    with Clients(lake_config) as clients, Tails(clients) as tails:
        [(partition, one)] = _stream(clients, tails, topic).end().partitions.items()
        later = replace(one, at=model.Position(one.at.ledger + 1_000_000, 3))
        with pytest.raises(ConfigurationError, match="restored or set up anew"):
            _stream(clients, tails, topic).next(StreamOffset({partition: later}))


def test_the_subscription_of_somebody_else_is_refused(
    lake: PulsarLake,
    admin: Admin,
    offloaded: Topic,
    tmp_path: Path,
) -> None:
    """The offloader's, by which Pulsar keeps what is in no table."""
    offloaded.send(20, 20)
    [part] = admin.partitions(offloaded.name)
    stream = reader(lake, subscription="pulsar-lake").table(offloaded.table)
    with pytest.raises(StreamingQueryException, match="is there already, and not a stream's"):
        run(stream, tmp_path)
    assert admin.backlog(part, "pulsar-lake") > 0


def _stream(clients: Clients, tails: Tails, topic: Topic, **options: str) -> TopicStream:
    def fail(loss: str) -> None:
        raise AssertionError(loss)

    return TopicStream(
        clients, StreamOptions.of({"topic": topic.short, **options}), tails, warn=fail
    )


def _read_on(stream: TopicStream, at: StreamOffset) -> None:
    """Plan all that there is from an offset on."""
    while (end := stream.next(at)[0]) != at:
        stream.plan(at, end)
        at = end
