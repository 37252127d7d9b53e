"""The daemon over a namespace: topics come, grow, go and fail; small ones share Spark jobs."""

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config, OffloadOverride
from offloader.schedule.scheduler import Scheduler
from offloader.service.console import Console
from offloader.service.daemon import Daemon
from offloader.service.signals import Stop
from reader.clients import Clients
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, publish
from tests.support.running import check_nothing_lost

Serve = Callable[..., AbstractContextManager[Daemon]]


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def serve(
    config: Config,
    lake: PulsarLake,
    pulsar: AdminClient,
    said: io.StringIO,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Serve:
    """Runs a daemon of some names in a thread; keywords are settings of ``[offload]``."""
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "state"))

    @contextmanager
    def run(*names: str, **offload: Any) -> Iterator[Daemon]:
        settings = {"interval": timedelta(seconds=1), **offload}
        own = config.model_copy(update={"offload": config.offload.model_copy(update=settings)})
        stop = Stop()
        with Console(said) as console:
            daemon = Daemon(
                own,
                Clients(own, admin=pulsar),
                names,
                console=console,
                stop=stop,
                context=lambda: lake.spark.sparkContext,
            )
            thread = threading.Thread(target=daemon.run)
            thread.start()
            try:
                yield daemon
            finally:
                stop.request()
                thread.join(120)
        assert not thread.is_alive()

    return run


def send(cluster: Cluster, topic: Topic, count: int = 20) -> list[Message]:
    messages = [f"{topic}-{n}".encode() for n in range(count)]
    return publish(cluster.service_url, topic.full_name, messages, batch=10, ids=True)


def known(scheduler: Scheduler) -> Mapping[str, Any]:
    return {one.topic.name: one for one in scheduler.states()}


def settled(scheduler: Scheduler, *names: str) -> bool:
    """Whether all these topics have been looked at."""
    states = known(scheduler)
    return all(name in states and states[name].share is not None for name in names)


def test_a_namespace_is_served(
    cluster: Cluster,
    admin: Admin,
    config: Config,
    pulsar: AdminClient,
    serve: Serve,
    said: io.StringIO,
    namespace: str,
) -> None:
    admin.set_retention(namespace, 0, 0)
    names = [f"topic-{n}" for n in range(12)]
    topics = [Topic.parse(f"{namespace}/{name}") for name in names]
    off = Topic.parse(f"{namespace}/off")
    for topic in [*topics, off]:
        admin.create_topic(topic.full_name)
    override = [OffloadOverride(topics=f"{namespace}/off", enabled=False)]
    with serve(f"{namespace}/*", override=override) as daemon:
        scheduler = daemon.scheduler
        wait_until("the holds", lambda: settled(scheduler, *names), 120)
        assert admin.subscriptions(off.full_name) == []
        sent = {topic: send(cluster, topic) for topic in topics}
        for topic in topics:
            admin.seal(topic.full_name)
        requests = [scheduler.request(topic) for topic in topics]
        for request in requests:
            assert len(request.result(120).committed) == 1
            assert request.progress.state == "done"
        for topic in topics:
            assert check_nothing_lost(open_storage(config.storage), admin, topic, sent[topic]) == 20
        assert daemon.jobs < len(topics), "small topics share Spark jobs"

        # One grows, one is new, one goes.
        grown = Topic.parse(f"{namespace}/grows")
        admin.create_topic(grown.full_name, 1)
        wait_until("the new topic", lambda: settled(scheduler, "grows"), 120)
        admin.grow_partitions(grown.full_name, 3)
        wait_until(
            "the new partitions' hold",
            lambda: all(
                admin.subscriptions(one) == ["pulsar-lake"]
                for one in admin.partitions(grown.full_name)
            ),
            120,
        )
        admin.delete_topic(topics[0].full_name)
        wait_until("its end", lambda: topics[0].name not in known(scheduler))

        name = topics[1].full_name
        wait_until("the counts", lambda: name in pulsar.loaded(pulsar.brokers()))
        assert "pulsar-lake" in pulsar.loaded(pulsar.brokers())[name].subscriptions
        assert "error" not in said.getvalue()


def test_the_brokers_counts_tell_of_size(
    cluster: Cluster, admin: Admin, config: Config, serve: Serve, namespace: str
) -> None:
    topic = Topic.parse(f"{namespace}/orders")
    admin.create_topic(topic.full_name)
    with serve(f"{namespace}/*", threshold_bytes=300, max_age=timedelta(hours=1)) as daemon:
        wait_until("the first observation", lambda: settled(daemon.scheduler, "orders"))
        send(cluster, topic)
        admin.seal(topic.full_name)
        send(cluster, topic)

        def rows() -> int:
            table = TopicTable.open(open_storage(config.storage), topic)
            return sum(one.rows for one in table.ledgers()) if table else 0

        wait_until("the commit", lambda: rows() == 20, timeout=180)


def test_open_ledgers_are_rolled_over(
    cluster: Cluster, admin: Admin, config: Config, serve: Serve, namespace: str
) -> None:
    topic = Topic.parse(f"{namespace}/slow")
    admin.create_topic(topic.full_name, 2)
    sent = send(cluster, topic, 40)
    roll = {"rollover_after": timedelta(seconds=3), "max_age": timedelta(seconds=0)}
    with serve(f"{namespace}/*", **roll):

        def rows() -> int:
            table = TopicTable.open(open_storage(config.storage), topic)
            return sum(one.rows for one in table.ledgers()) if table else 0

        wait_until("both partitions", lambda: rows() == len(sent), timeout=180)
    ledgers = [admin.ledgers(one) for one in admin.partitions(topic.full_name)]
    assert all(len(those) <= 2 for those in ledgers), "an empty ledger is not rolled over"
