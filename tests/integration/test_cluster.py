"""The test servers themselves: they boot, die, come back, and fail on demand."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pulsar
import pytest
from botocore import exceptions

from testbed.admin import Admin, wait_until
from testbed.faults import FaultyStore
from testbed.process import ClusterError, Process, wait_for
from testbed.proxy import TcpProxy
from testbed.publish import (
    Message,
    PublishError,
    avro_schema,
    json_schema,
    primitive_schema,
    publish,
)
from testbed.s3 import S3
from tests.support.schemas import avro_record

ORDER = avro_record("Order", {"id": "long", "note": ["null", "string"]})


def read_all(client: Any, topic: str, count: int) -> list[Any]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    try:
        return [reader.read_next(timeout_millis=60_000) for _ in range(count)]
    finally:
        reader.close()


@pytest.mark.parametrize("batch", [0, 10])
@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_publish_returns_what_a_reader_gets(
    client: Any, topic_name: str, batch: int, compression: str
) -> None:
    messages = [
        Message(
            {"id": number, "note": None if number % 3 else "ü"},
            key=f"k{number % 3}",
            properties={"n": str(number)},
            event_time=1_700_000_000_000 + number,
        )
        for number in range(25)
    ]
    if compression != "ZLib":  # the client's reader discards such empty messages as corrupt
        messages.append(Message(None, key="k0"))
    sent = publish(
        client,
        topic_name,
        messages,
        schema=json_schema(ORDER),
        batch=batch,
        compression=compression,
        ids=True,
    )
    got = read_all(client, topic_name, len(sent))
    for wanted, message in zip(sent, got, strict=True):
        assert message.has_null_value() == (wanted.payload is None)
        assert message.data() == (wanted.payload or b"")
        assert (message.partition_key(), message.properties()) == (wanted.key, wanted.properties)
        assert message.event_timestamp() == (wanted.event_time or 0)
        at = message.message_id()
        place = (at.ledger_id(), at.entry_id(), at.partition(), at.batch_index())
        assert place == wanted.message_id


def test_schemas_are_registered(admin: Admin, client: Any, namespace: str) -> None:
    for schema, value, kind in (
        (avro_schema(ORDER), {"id": 1, "note": "x"}, "AVRO"),
        (json_schema(ORDER), b"not JSON, sent as it is", "JSON"),
        (primitive_schema("STRING"), "x", "STRING"),
    ):
        topic = f"persistent://{namespace}/{kind}"
        publish(client, topic, [value], schema=schema)
        assert [version["type"] for version in admin.schemas(topic)] == [kind]


def test_partitions_chunks_and_refusals(client: Any, admin: Admin, topic_name: str) -> None:
    admin.create_topic(topic_name, partitions=3)
    sent = publish(client, topic_name, [b"x"] * 9, ids=True)
    assert {message.message_id[2] for message in sent if message.message_id} == {0, 1, 2}
    assert len(admin.partitions(topic_name)) == 3
    chunked = topic_name + "-chunked"
    publish(client, chunked, [b"x" * 6_000_000], chunking=True)
    assert admin.internal_stats(chunked)["numberOfEntries"] == 2
    with pytest.raises(PublishError, match="MessageTooBig"):
        publish(client, topic_name, [b"x" * 6_000_000, b"x"])
    admin.delete_topic(topic_name)
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        admin.internal_stats(f"{topic_name}-partition-0")


def test_trim_deletes_what_nothing_holds(client: Any, admin: Admin, namespace: str) -> None:
    topic = admin.create_topic(f"{namespace}/trimmed")
    admin.set_retention(namespace, 0, 0)
    admin.create_subscription(topic, "hold")
    publish(client, topic, [b"x"] * 10)
    admin.seal(topic)
    admin.trim(topic)
    first, second = admin.ledgers(topic)
    admin.reset_cursor(topic, "hold", second, 0)
    admin.trim(topic)
    wait_until("the trim", lambda: first not in admin.ledgers(topic))


# --- object storage ---


@pytest.fixture
def store(s3: S3) -> Iterator[FaultyStore]:
    with FaultyStore(s3.endpoint) as proxy:
        yield proxy


def test_a_faulty_store_applies_and_lies(s3: S3, store: FaultyStore) -> None:
    direct, through = s3.client(), s3.client(store.endpoint, attempts=1)

    def put(key: str) -> int:
        try:
            through.put_object(Bucket=s3.bucket, Key=key, Body=b"body", IfNoneMatch="*")
        except exceptions.ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        except (exceptions.ConnectionClosedError, exceptions.EndpointConnectionError):
            return 0
        return 200

    assert put("fine") == 200
    assert put("fine") == 412
    for client in (direct, through):
        assert client.get_object(Bucket=s3.bucket, Key="fine")["Body"].read() == b"body"
        assert client.head_object(Bucket=s3.bucket, Key="fine")["ContentLength"] == 4

    rules = [
        store.refuse(lambda method, path: path.endswith("refused")),
        store.apply_then_500(lambda method, path: path.endswith("lied")),
        store.apply_then_drop(lambda method, path: path.endswith("dropped")),
    ]
    assert [put("refused"), put("lied"), put("dropped")] == [503, 500, 0]
    assert [rule.hits for rule in rules] == [1, 1, 1]
    assert [put("refused"), put("lied"), put("dropped")] == [200, 412, 412]
    assert {"dropped", "fine", "lied", "refused"} <= set(s3.keys())


def test_a_faulty_store_sees_conflicts_is_late_and_breaks_off(s3: S3, store: FaultyStore) -> None:
    through = s3.client(store.endpoint, attempts=1)
    store.conflict(lambda method, path: method == "PUT")
    with pytest.raises(exceptions.ClientError, match="ConditionalRequestConflict"):
        through.put_object(Bucket=s3.bucket, Key="broken", Body=b"body")
    through.put_object(Bucket=s3.bucket, Key="broken", Body=b"body")

    store.slow(lambda method, path: method == "GET", 0.5)
    begun = time.monotonic()
    assert through.get_object(Bucket=s3.bucket, Key="broken")["Body"].read() == b"body"
    assert time.monotonic() - begun >= 0.5

    store.truncate(lambda method, path: method == "GET")
    with pytest.raises((exceptions.IncompleteReadError, exceptions.ResponseStreamingError)):
        through.get_object(Bucket=s3.bucket, Key="broken")["Body"].read()
    assert through.get_object(Bucket=s3.bucket, Key="broken")["Body"].read() == b"body"
    assert store.hits == 3


# --- sockets ---


@pytest.fixture
def echo() -> Iterator[TcpProxy]:
    """A proxy in front of a server that sends back what it gets."""
    command = "import socketserver as s\nclass H(s.StreamRequestHandler):\n def handle(self):\n"
    command += "  while d := self.request.recv(9): self.request.sendall(d)\n"
    command += "t = s.ThreadingTCPServer(('127.0.0.1', 0), H); t.daemon_threads = True\n"
    command += "print(t.server_address[1], flush=True); t.serve_forever()"
    child = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child, TcpProxy(f"127.0.0.1:{int(child.stdout.readline())}") as proxy:
        yield proxy
        child.kill()


def test_a_proxy_stalls_stops_corrupts_and_drops(echo: TcpProxy) -> None:
    def connect() -> socket.socket:
        return socket.create_connection(("127.0.0.1", echo.port), timeout=30)

    def say(peer: socket.socket, words: bytes = b"abc") -> bytes:
        peer.sendall(words)
        return peer.recv(100)

    with connect() as peer:
        assert say(peer) == b"abc"
        echo.stall()
        peer.settimeout(0.3)
        with pytest.raises(TimeoutError):
            say(peer)
        peer.settimeout(30)
        echo.resume()
        assert peer.recv(3) == b"abc"
        echo.corrupt(bytes.upper)
        assert say(peer) == b"ABC"
        echo.resume()
        echo.drop_after(4)
        assert say(peer) == b"abc"
        assert say(peer) == b"a"
        assert _ended(peer)
    with connect() as peer:
        assert say(peer) == b"abc"
        echo.stop()
        assert _ended(peer)
    with pytest.raises(ConnectionRefusedError):
        connect()
    echo.resume()
    with connect() as peer:
        assert say(peer) == b"abc"
    assert echo.connections == 3


def _ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


# --- processes ---


def test_a_process_dies_with_its_parent(tmp_path: Path) -> None:
    script = "import time; from pathlib import Path; from testbed.process import Process\n"
    script += f"p = Process('child', ['sleep', '60'], Path({str(tmp_path / 'log')!r})); p.spawn()\n"
    script += "print(p.pid, flush=True); time.sleep(60)"
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    with parent:
        child = int(parent.stdout.readline())
        parent.kill()

    def gone() -> bool:
        state = Path(f"/proc/{child}/stat")
        try:
            return state.read_text().split()[2] == "Z"
        except OSError:
            return True

    wait_until("the child's end", gone)


@pytest.mark.parametrize(("word", "patience", "code"), [("exit 7", 60.0, 7), ("true", 0.3, -9)])
def test_a_process_may_shut_down_in_order_or_is_killed(
    tmp_path: Path, word: str, patience: float, code: int
) -> None:
    script = f"trap '{word}' TERM; echo up; while :; do sleep 0.05; done"
    process = Process("shell", ["sh", "-c", script], tmp_path / "log")
    process.spawn()
    wait_until("the trap", lambda: process.tail().endswith("up"))
    process.terminate(patience)
    assert (process.alive, process.wait(0)) == (False, code)


def test_a_dead_server_shows_the_end_of_its_log(tmp_path: Path) -> None:
    process = Process("liar", ["sh", "-c", "echo the reason; exit 3"], tmp_path / "log")
    process.spawn()
    begun = time.monotonic()
    with pytest.raises(ClusterError, match=r"liar died while waiting for it(?s:.*)the reason"):
        wait_for("it", lambda: False, [process])
    assert time.monotonic() - begun < 60, "of 120 s"
    assert os.getpid() != process.pid
