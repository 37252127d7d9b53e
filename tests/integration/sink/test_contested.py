"""Several that send the same, or want the same name, at once: each row once all the same."""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pulsar
import pyarrow as pa
import pytest

from reader import sink
from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError
from reader.model import Topic
from testbed.admin import Admin
from tests.integration.sink.named_writes import at_entries, decided, payloads, send, stored

VALUES = payloads(20_000, 100)
BATCH = "20"


class Pause:
    """Of a sender, at an entry: it does what has to happen then, and waits until it is let go."""

    def __init__(self, act: Callable[[], Any] = lambda: None) -> None:
        self._act = act
        self._reached, self._let_go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._act()
        self._reached.set()
        assert self._let_go.wait(300)

    def reached(self) -> None:
        assert self._reached.wait(240)

    def end(self) -> None:
        self._let_go.set()


@pytest.mark.parametrize("unloaded", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_sender_that_goes_on_when_another_has_sent_everything(
    admin: Admin, clients: Clients, topic_name: str, unloaded: bool
) -> None:
    """The topic was unloaded; or the sender holds the name in silence: then its broker takes it for
    dead after a minute, and gives the name to the next one."""
    admin.create_topic(topic_name)
    _, manifest = decided(clients, topic_name, VALUES, batchingMaxMessages=BATCH)
    pause = Pause((lambda: admin.unload(topic_name)) if unloaded else (lambda: None))
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(send, clients, manifest, fresh=True, now=at_entries({300: pause}))
        try:
            pause.reached()
            send(clients, manifest, fresh=False)
            assert stored(clients, topic_name) == VALUES
        finally:
            pause.end()
        assert late.result(120) > 0
    assert stored(clients, topic_name) == VALUES


def test_two_drivers_of_one_query(admin: Admin, clients: Clients, topic_name: str) -> None:
    """The second one waits for the name, and sends the same."""
    admin.create_topic(topic_name, 2)
    keys = [f"k{number % 50}" for number in range(len(VALUES))]
    _, manifest = decided(clients, topic_name, VALUES, keys=keys, batchingMaxMessages=BATCH)
    pause = Pause()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(send, clients, manifest, fresh=True, now=at_entries({100: pause}))
        try:
            pause.reached()
            second = pool.submit(send, clients, manifest, fresh=False)
            with pytest.raises(TimeoutError):
                second.result(3)
        finally:
            pause.end()
        assert first.result(120) == 0
        assert second.result(120) > 0
    assert sorted(stored(clients, topic_name)) == VALUES


def test_the_driver_that_decided_comes_last(
    admin: Admin, clients: Clients, topic_name: str
) -> None:
    """It cannot know who was there before it, and says so; the next attempt knows."""
    admin.create_topic(topic_name)
    _, manifest = decided(clients, topic_name, VALUES, batchingMaxMessages=BATCH)
    assert send(clients, manifest, fresh=False) == 0
    with pytest.raises(PulsarLakeError, match="does anybody else send as pulsar-lake-the-query"):
        send(clients, manifest, fresh=True)
    assert send(clients, manifest, fresh=False) > 0
    assert stored(clients, topic_name) == VALUES


def test_a_storage_that_was_set_back(admin: Admin, clients: Clients, topic_name: str) -> None:
    """To before a version that was sent: the next one's rows are not taken for that one's."""
    admin.create_topic(topic_name)
    objects = clients.storage.objects()

    def version(number: int) -> tuple[sink.NamedWrite, sink.Manifest]:
        values = payloads(300, 100)[100 * number :][:100]
        return decided(clients, topic_name, values, version=number)

    write, first = version(0)
    send(clients, first, fresh=True)
    write.sent(first)
    backup = {one.path: objects.get(one.path) for one in objects.below(write.directory)}
    write, second = version(1)
    send(clients, second, fresh=True)
    write.sent(second)
    objects.delete([one.path for one in objects.below(write.directory)])
    for path, data in backup.items():
        assert data is not None
        objects.put(path, data)

    write, third = version(2)
    for fresh in (True, False, False):
        with pytest.raises(PulsarLakeError, match="that no manifest knows"):
            send(clients, third, fresh=fresh)
    assert stored(clients, topic_name) == payloads(200, 100)
    write.give_up(2)  # with delivery = at-least-once
    _, fourth = decided(clients, topic_name, payloads(300, 100)[200:], version=3)
    send(clients, fourth, fresh=False)  # the first attempt has died
    assert stored(clients, topic_name) == payloads(300, 100)


def test_a_schema_that_grows_between_two_tasks(
    admin: Admin, clients: Clients, topic_name: str
) -> None:
    """Of rows that name their topic: each task asks for it by itself."""
    admin.create_topic(topic_name)
    write = sink.NamedWrite(clients, "the-query", topic_name)
    files = []
    for task in range(2):
        admin.upload_schema(topic_name, "AVRO", record(("a", "b")[: task + 1]))
        target = sink.resolve_target(clients, Topic.parse(topic_name))
        sink.require_deduplication(clients, target.topic, enable=True)
        staging = sink.StagingWriter(clients, write.directory)
        writer = sink.RowWriter(clients, sink.SinkOptions.of({}), target, staging, None, 0)
        writer.write(pa.record_batch({"a": pa.array([task] * 5, pa.int32())}))
        writer.finish()
        files.append(staging.finish(5))
    for number, order in enumerate(((0, 1), (1, 0), (0, 1, 0))):
        named = sink.NamedWrite(clients, f"the-query-{number}", topic_name)
        found = named.decide(0, [files[task] for task in order], encrypted=False)
        assert found is not None
        send(clients, found[0], fresh=True)
    tasks = [0, 1, 1, 0, 0, 1, 0]
    assert stored(clients, topic_name, "a") == [task for task in tasks for _ in range(5)]


def test_a_topic_that_is_made_again(admin: Admin, clients: Clients, topic_name: str) -> None:
    """Between what its rows were encoded for, and when they are sent."""
    admin.create_topic(topic_name)
    fields = ("a", "b")
    for count in (1, 2):
        admin.upload_schema(topic_name, "AVRO", record(fields[:count]))
    target = sink.resolve_target(clients, Topic.parse(topic_name))
    rows = pa.record_batch({"a": pa.array([1, 2], pa.int32())})
    admin.request(
        "DELETE",
        f"/v2/persistent/{topic_name.removeprefix('persistent://')}",
        params={"force": "true", "deleteSchema": "true"},
    )
    admin.create_topic(topic_name)
    admin.upload_schema(topic_name, "AVRO", record(fields))
    with sink.DirectSender(clients, encrypted=False) as sender:
        writer = sink.RowWriter(clients, sink.SinkOptions.of({}), target, sender, None, 0)
        writer.write(rows)
        with pytest.raises(ConfigurationError, match="was the topic deleted and made again"):
            writer.finish()
    assert stored(clients, topic_name, "a") == []


def record(names: Sequence[str]) -> str:
    fields = [{"name": name, "type": ["null", "int"], "default": None} for name in names]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def test_a_topic_that_another_producer_takes_for_itself(
    admin: Admin, client: pulsar.Client, clients: Clients, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    _, manifest = decided(clients, topic_name, VALUES, batchingMaxMessages=BATCH)
    taken: list[Any] = []

    def take() -> None:
        mode = pulsar.ProducerAccessMode.ExclusiveWithFencing
        taken.append(client.create_producer(topic_name, access_mode=mode, producer_name="mine"))

    now = at_entries({300: take})
    with pytest.raises(ConfigurationError, match=r"an exclusive producer has .*: mine") as error:
        send(clients, manifest, fresh=True, now=now)
    assert len(str(error.value).splitlines()) == 1
    taken[0].close()
    send(clients, manifest, fresh=False)
    assert stored(clients, topic_name) == VALUES
