"""The run as a whole: everything is started, broken, mended and counted."""

import json
import random
import statistics
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from offloader.config import load_config
from reader.model import Topic
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.faults import FaultyStore
from testbed.process import wait_for
from testbed.proxy import TcpProxy
from testbed.s3 import S3
from tests.faults.daemon import Daemon, Held, flat, held_by
from tests.faults.injectors import Injector, clocks, network, servers, store, streaming
from tests.faults.queries import Questions
from tests.faults.report import Report
from tests.faults.stream_driver import StreamDriver
from tests.faults.streams import Kind, Stream
from tests.support.running import Settings

_KINDS = (
    Kind("single", partitions=0, batch=0, rate=60, json=False),
    Kind("plain", partitions=0, batch=50, rate=400, json=False),
    Kind("records", partitions=3, batch=20, rate=300, json=True),
)
_DOWN_SECONDS = 300


def run(seed: int, seconds: float, directory: Path, say: Callable[[str], None]) -> Report:
    """One run; the second half without kills of the offloader, to see what it holds.

    Raises AssertionError (``WrongAnswerError``) at the first wrong answer, a lost or doubled
    message, or an offloader that ends by itself.
    """
    with ExitStack() as stack:
        cluster = stack.enter_context(
            ProcessCluster(
                bookies=3,
                max_entries_per_ledger=500,
                broker_config={"brokerDeduplicationEnabled": True},
            )
        )
        s3 = stack.enter_context(S3())
        admin = stack.enter_context(Admin(cluster.admin_url))
        faulty = stack.enter_context(FaultyStore(s3.endpoint))
        proxies = {
            one.address: stack.enter_context(TcpProxy(one.address)) for one in cluster.bookies
        }
        web = stack.enter_context(TcpProxy(cluster.admin_url.removeprefix("http://")))
        namespace = f"public/faults-{uuid.uuid4().hex[:8]}"
        admin.create_namespace(namespace)
        admin.set_retention(namespace, 0, 0)
        settings = _settings(directory, cluster, s3, faulty, proxies, web, namespace)
        streams = [_stream(cluster, admin, namespace, kind) for kind in _KINDS]
        daemon = Daemon(settings, directory / "clock")
        copies = _copies(admin, f"{namespace}-copies")
        driver = StreamDriver(directory / "streaming", settings, streams, copies)
        lake = stack.enter_context(PulsarLake(load_config(settings.path)))
        injectors = [
            Injector("servers", seed, servers(cluster, _unloader(admin, streams), daemon), (3, 12)),
            Injector("network", seed, network(list(proxies.values()), web), (1, 6)),
            Injector("store", seed, store(faulty), (1, 6)),
            Injector("clock", seed, clocks(daemon), (10, 60)),
            Injector("streaming", seed, streaming(driver), (8, 25)),
        ]
        questions = Questions(lake, streams, seed)
        daemon.start()
        stack.callback(daemon.end, directory / "offloader.log")
        # Without retention, what is published before there is a hold is Pulsar's to delete.
        wait_for("the holds", lambda: _held(admin, streams), timeout=_DOWN_SECONDS, interval=1)
        for stream in streams:
            stream.start()
        driver.start()
        stack.callback(driver.end)
        begun = time.monotonic()
        try:
            for injector in injectors:
                injector.start()
            held = _ask_until(begun, seconds, questions, daemon, driver, say)
        finally:
            for injector in injectors:
                injector.stop()
            faulty.heal()
            for proxy in (*proxies.values(), web):
                proxy.resume()
            for stream in streams:
                stream.stop(_DOWN_SECONDS)
        refused = [one for stream in streams for one in stream.refused]
        assert not refused, f"the broker refused messages: {refused[:5]}"
        say("everything is mended; waiting for the offloader")
        ended = time.monotonic()
        _drain(settings, admin, streams, daemon)
        lag = time.monotonic() - ended
        messages = sum(questions.finally_all(stream) for stream in streams)
        daemon.stop()
        commits = sum(_check_table(settings, stream) for stream in streams)
        driver.finish()
        streamed = driver.check()
        asked = questions.asked
        return Report(
            seed=seed,
            seconds=ended - begun,
            messages=messages,
            rows_compared=asked.checked,
            answers=dict(asked.right),
            clear_errors=dict(asked.errors),
            query_seconds=(statistics.median(asked.seconds), max(asked.seconds)),
            faults=dict(sum((one.injected for one in injectors), Counter[str]())),
            requests_hit=faulty.hits,
            offloader_killed=daemon.killed,
            offloader_errors=dict(daemon.errors()),
            commits=commits,
            lag_seconds=lag,
            memory={name: flat(samples)[:2] for name, samples in held.items()},
            files={name: flat(samples)[2:] for name, samples in held.items()},
            stream=streamed,
            stream_errors=dict(driver.errors()),
            bugs=asked.unclear + driver.bugs() + daemon.bugs(),
        )


def _settings(
    directory: Path,
    cluster: ProcessCluster,
    s3: S3,
    faulty: FaultyStore,
    proxies: dict[str, TcpProxy],
    web: TcpProxy,
    namespace: str,
) -> Settings:
    return Settings(
        directory,
        cluster,
        f"{s3.uri}/{uuid.uuid4()}",
        s3.options_at(faulty.endpoint),
        pulsar={
            "admin_url": f"http://{web.address}",
            "timeout": "8s",
            "bookie_timeout": "3s",
            "bookies": {bookie: proxy.address for bookie, proxy in proxies.items()},
        },
        spark={"master": "local[2]", "conf": {"spark.driver.memory": "1g"}},
        topics=[f"{namespace}/*"],
        max_age="3s",
        grace="2s",
        maintenance_interval="10s",
    )


def _stream(cluster: ProcessCluster, admin: Admin, namespace: str, kind: Kind) -> Stream:
    topic = admin.create_topic(f"{namespace}/{kind.name}", kind.partitions)
    return Stream(cluster.service_url, topic, kind)


def _copies(admin: Admin, namespace: str) -> str:
    """A topic that a streaming query writes to, of which Pulsar keeps everything."""
    admin.create_namespace(namespace)
    admin.set_retention(namespace, -1, -1)
    topic = admin.create_topic(f"{namespace}/copies", partitions=2)
    fields = [{"name": "number", "type": "long"}, {"name": "origin", "type": "string"}]
    record = {"type": "record", "name": "Copy", "fields": fields}
    admin.upload_schema(topic, "AVRO", json.dumps(record))
    return topic


def _unloader(admin: Admin, streams: Sequence[Stream]) -> Callable[[random.Random], None]:
    def unload(chance: random.Random) -> None:
        admin.seal(chance.choice(streams).topic)

    return unload


def _ask_until(
    begun: float,
    seconds: float,
    questions: Questions,
    daemon: Daemon,
    driver: StreamDriver,
    say: Callable[[str], None],
) -> dict[str, list[Held]]:
    """Ask for so long; what offloader and this process held in the second half."""
    held: dict[str, list[Held]] = {"offloader": [], "queries": []}
    told = begun
    while (now := time.monotonic()) < begun + seconds:
        questions.ask()
        if now > begun + seconds / 2:
            daemon.may_be_killed = False
        daemon.check_alive()
        driver.check_alive()
        if not daemon.may_be_killed:
            held["offloader"].append(daemon.held())
            held["queries"].append(held_by(questions.spark_pid))
        if now > told + 60:
            told = now
            asked = questions.asked
            say(
                f"{now - begun:5.0f} s: {sum(asked.right.values())} queries right, "
                f"{sum(asked.errors.values())} errors, {asked.checked:,} rows compared"
            )
    return held


def _held(admin: Admin, streams: Sequence[Stream]) -> bool:
    return all(
        "pulsar-lake" in admin.subscriptions(partition)
        for stream in streams
        for partition in admin.partitions(stream.topic)
    )


def _drain(settings: Settings, admin: Admin, streams: Sequence[Stream], daemon: Daemon) -> None:
    """Close what is open, and wait until everything is in the tables."""
    for stream in streams:
        admin.seal(stream.topic)

    def complete() -> bool:
        daemon.check_alive()
        return all(_rows(settings, stream) >= stream.sent for stream in streams)

    wait_for("the tables to be complete", complete, timeout=_DOWN_SECONDS, interval=1)


def _rows(settings: Settings, stream: Stream) -> int:
    table = TopicTable.open(settings.storage, Topic.parse(stream.topic))
    if table is None:
        return 0
    files = table.files()
    return sum(files["num_records"].to_pylist())


def _check_table(settings: Settings, stream: Stream) -> int:
    """Each number is there once, read without Spark and without our reader; its commits."""
    table = TopicTable.open(settings.storage, Topic.parse(stream.topic))
    assert table is not None
    rows = table.dataset().to_table(["id" if stream.kind.json else "value", "__error"])
    assert rows["__error"].null_count == len(rows), f"{stream.topic} has rescued rows"
    if stream.kind.json:
        numbers = rows["id"].to_numpy()
    else:
        numbers = np.array([int(value[:12]) for value in rows["value"].to_pylist()])
    assert np.array_equal(np.sort(numbers), np.arange(stream.sent)), f"{stream.topic} is not right"
    return table.version
