"""A topic's first and last messages, what follows them, and the commands that print them."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
import pytest

from offloader.config import Config
from reader import TopicReader, open_topic
from reader.errors import ConfigurationError, NotFoundError, UnavailableError
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.oracle import Oracle
from testbed.publish import publish
from testbed.usage import descendants
from tests.contract.against_java import offload_in_thread

Place = tuple[int, int, int, int]
_PLACE = ("__partition", "__ledgerId", "__entryId", "__batchIndex")


def places(rows: pa.Table) -> list[Place]:
    return [tuple(row[name] for name in _PLACE) for row in rows.select(_PLACE).to_pylist()]


def in_order(topic: TopicReader, *, newest: bool) -> list[Place]:
    """All messages: of the partitions' next ones always the first (from the end: the last)."""
    rows = topic.scan([*_PLACE, "__publishTime"]).read_all().to_pylist()
    parts: dict[int, list[tuple[Any, Place]]] = {}
    for row in sorted(rows, key=lambda row: tuple(row[n] for n in _PLACE), reverse=newest):
        place = tuple(row[name] for name in _PLACE)
        parts.setdefault(row["__partition"], []).append((row["__publishTime"], place))
    found: list[Place] = []
    while left := [index for index, part in sorted(parts.items()) if part]:
        take = max if newest else min
        index = take(left, key=lambda one: parts[one][0][0])
        found.append(parts[index].pop(0)[1])
    return found[::-1] if newest else found


@pytest.mark.parametrize("count", [0, 1, 7, 101, 599, 1000])
def test_the_ends_of_a_topic_on_both_sides(orders: str, lake_config: Config, count: int) -> None:
    with open_topic(lake_config, orders) as topic:
        assert places(topic.head(count)) == in_order(topic, newest=False)[:count]
        last = in_order(topic, newest=True)
        assert places(topic.tail(count)) == (last[-count:] if count else [])
        assert topic.tail(count, ["id"]).schema.names == ["id"]
        with pytest.raises(ConfigurationError, match="has no column ids"):
            topic.head(count, ["ids"])


@pytest.mark.parametrize("where", ["hot", "cold"])
def test_entries_that_are_no_messages(
    where: str, oracle: Oracle, admin: Admin, lake_config: Config, topic_name: str
) -> None:
    """Aborted ones and chunks, many more than the messages that are asked for."""

    def send(name: str, count: int, transaction: str | None = None) -> None:
        messages = [{"value": b"%s %d" % (name.encode(), n)} for n in range(count)]
        oracle.write(topic_name, messages, transaction=transaction)

    dropped = oracle.begin()
    send("dropped", 40, dropped)
    oracle.abort(dropped)
    send("first", 2)
    oracle.write(topic_name, [{"value": bytes(range(256)) * 100}], chunk_size=500)
    dropped = oracle.begin()
    send("dropped", 40, dropped)
    oracle.abort(dropped)
    if where == "cold":
        admin.seal(topic_name)
        offload_in_thread(lake_config, topic_name)
    with open_topic(lake_config, topic_name) as topic:
        assert topic.head(2)["value"].to_pylist() == [b"first 0", b"first 1"]
        assert topic.tail(1)["value"].to_pylist() == [bytes(range(256)) * 100]
        assert topic.tail(9)["value"].to_pylist()[:2] == [b"first 0", b"first 1"]


def test_a_topic_without_messages(admin: Admin, lake_config: Config, topic_name: str) -> None:
    admin.create_topic(topic_name, partitions=2)
    with open_topic(lake_config, topic_name) as topic:
        assert topic.head().num_rows == topic.tail().num_rows == 0
        assert "__publishTime" in topic.tail().schema.names
    with open_topic(lake_config, topic_name + "-of-nobody") as topic, pytest.raises(NotFoundError):
        topic.head()


# -- following -------------------------------------------------------------------------------------


def _numbers(first: int, stop: int) -> list[bytes]:
    return [b"%04d" % n for n in range(first, stop)]


class _Followed:
    """What ``follow`` gives, and what it says of servers that do not answer."""

    def __init__(self, topic: TopicReader, rows: int) -> None:
        self.said: list[UnavailableError] = []
        self.tables = topic.follow(rows, ["value"], self.said.append)

    def values(self, count: int) -> list[bytes]:
        """The next ``count`` values; sorted, as they may be of several partitions."""
        found: list[bytes] = []
        while len(found) < count:
            found += next(self.tables)["value"].to_pylist()
        return sorted(found)


@contextmanager
def following(config: Config, topic: str, rows: int = 0) -> Iterator[_Followed]:
    with open_topic(config, topic) as opened:
        followed = _Followed(opened, rows)
        with closing(followed.tables):
            assert next(followed.tables).num_rows == rows
            yield followed


@pytest.mark.journey
def test_each_message_once_while_ledgers_move(
    cluster: Cluster, admin: Admin, namespace: str, lake_config: Config
) -> None:
    topic = admin.create_topic(f"{namespace}/followed", partitions=1)
    part = f"{topic}-partition-0"
    admin.set_retention(namespace, 0, 0)
    admin.create_subscription(topic, "pulsar-lake")

    def send(first: int, stop: int, to: str = part) -> None:
        publish(cluster.service_url, to, _numbers(first, stop), batch=3)

    send(0, 50)
    with following(lake_config, topic, rows=10) as followed:
        send(50, 60)
        assert followed.values(10) == _numbers(50, 60)
        admin.seal(topic)
        send(60, 80)
        assert followed.values(20) == _numbers(60, 80)
        # Written, offloaded and deleted before it looks again.
        send(80, 90)
        admin.seal(topic)
        old = admin.ledgers(part)
        offload_in_thread(lake_config, topic)
        admin.trim(topic)
        wait_until("the ledgers to be gone", lambda: not set(old[:-1]) & set(admin.ledgers(part)))
        send(90, 100)
        assert followed.values(20) == _numbers(80, 100)
        admin.grow_partitions(topic, 2)
        admin.wait_recovered(topic)
        send(100, 105, f"{topic}-partition-1")
        assert followed.values(5) == _numbers(100, 105)
        send(105, 107)
        assert followed.values(2) == _numbers(105, 107)
        assert followed.said == []
        # The offloader's, and the one that watches.
        wait_until("two subscriptions", lambda: len(admin.subscriptions(part)) == 2)
    admin.wait_for_subscriptions(part, ["pulsar-lake"])


def test_a_transactions_messages_come_with_its_commit(
    oracle: Oracle, lake_config: Config, topic_name: str
) -> None:
    oracle.write(topic_name, [{"value": b"before"}])
    with following(lake_config, topic_name, rows=1) as followed:
        kept = oracle.begin()
        oracle.write(topic_name, [{"value": b"kept"}], transaction=kept)
        oracle.write(topic_name, [{"value": b"plain, behind it"}])
        oracle.commit(kept)
        assert followed.values(2) == [b"kept", b"plain, behind it"]


# -- the commands ----------------------------------------------------------------------------------

_ENDS = 240  # seconds: a process on a busy machine

_MAIN = """
import sys
from offloader.cli.app import main
try:
    main()
finally:
    heavy = {"pandas", "pyspark", "py4j", "offloader.service", "offloader.convert"} & {*sys.modules}
    assert not heavy, heavy
"""


def started(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _MAIN, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.journey
def test_head_and_tail(orders: str, environment: dict[str, str], lake_config: Config) -> None:
    with open_topic(lake_config, orders) as topic:
        first, last = (rows["id"].to_pylist() for rows in (topic.head(3), topic.tail(2)))
    name = orders.removeprefix("persistent://")
    with started(environment, "head", name, "-n", "3", "--format", "json") as process:
        out, err = process.communicate(timeout=_ENDS)
    assert (process.returncode, err) == (0, "")
    rows = json.loads(out)
    assert [row["id"] for row in rows] == first
    assert [*rows[0]][:4] == ["id", "name", "price", "at"]
    assert "__publishTime" in rows[0]
    arguments = ("--columns", "__partition,id", "--format", "csv")
    with started(environment, "tail", orders, "-n", "2", *arguments) as process:
        out, err = process.communicate(timeout=_ENDS)
    assert (process.returncode, err) == (0, "")
    head, *lines = out.splitlines()
    assert head == "__partition,id"
    assert [int(line.split(",")[1]) for line in lines] == last
    with started(environment, "head", name, "--columns", "nope") as process:
        out, err = process.communicate(timeout=_ENDS)
    assert (process.returncode, out) == (1, "")
    assert re.fullmatch(r"error: topic \S+ has no column nope .*\n", err)


def test_tail_follows_until_it_is_interrupted(
    cluster: Cluster, admin: Admin, environment: dict[str, str], topic_name: str
) -> None:
    publish(cluster.service_url, topic_name, _numbers(0, 20))
    with started(environment, "tail", topic_name, "-f", "-n", "2", "--columns", "value") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().rstrip() for _ in range(4)]
        assert lines == ["value", "--------", "MDAxOA==", "MDAxOQ=="]
        assert descendants(process.pid) == []
        publish(cluster.service_url, topic_name, _numbers(20, 22))
        assert [process.stdout.readline() for _ in range(2)] == ["MDAyMA==\n", "MDAyMQ==\n"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=_ENDS)
    assert (process.returncode, out, err) == (130, "", "")
    admin.wait_for_subscriptions(topic_name, [])


def test_a_reader_that_goes_away_ends_it(
    cluster: Cluster, environment: dict[str, str], topic_name: str
) -> None:
    publish(cluster.service_url, topic_name, _numbers(0, 2))
    with started(environment, "tail", topic_name, "-f", "--format", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["__entryId"] == 0
        process.stdout.close()
        publish(cluster.service_url, topic_name, _numbers(2, 4))
        assert process.wait(timeout=_ENDS) == 1
        assert process.stderr.read() == ""
