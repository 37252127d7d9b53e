"""The broker's client against a scripted broker: each entry once, in order, or a clear error."""

import select
import socket
import time
import tracemalloc
from collections.abc import Iterator
from threading import Event

import pyarrow as pa
import pytest
from google.protobuf.text_format import MessageToString

from reader.errors import CorruptError, PulsarLakeError, UnavailableError
from reader.model import Partition, Position, SchemaInfo
from reader.pulsar.binary import BrokerClient, consumer
from reader.wire import pulsar_pb2 as api
from tests.unit.pulsar.binary import reads
from tests.unit.pulsar.binary.fake_broker import REACTIONS, FakeBroker, Session, entry, message


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker(reads.ENTRIES) as started:
        yield started


@pytest.fixture
def client(broker: FakeBroker) -> Iterator[BrokerClient]:
    with reads.client_of(broker.url) as made:
        yield made


def test_entries_come_as_they_are_stored(client: BrokerClient, broker: FakeBroker) -> None:
    assert reads.read(client) == reads.ALL
    assert MessageToString(broker.connects[0], as_one_line=True) == (
        'client_version: "pulsar-lake" protocol_version: 21 auth_method_name: "none" '
        "feature_flags { supports_auth_refresh: true supports_broker_entry_metadata: true }"
    )


@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 5), (299, 299), (10, 20), (5, 4)])
def test_a_range(client: BrokerClient, first: int, last: int) -> None:
    assert reads.read(client, first, last) == list(range(first, last + 1))


def test_ranges_that_follow_share_a_subscription(client: BrokerClient, broker: FakeBroker) -> None:
    broker.entries |= {(9, 0): entry(b"later"), (9, 1): entry(b"last")}
    broker.last = (9, 1)
    assert reads.read(client, 0, 99) == reads.ALL[:100]
    assert reads.read(client, 100, 250) == reads.ALL[100:251]
    assert reads.read(client, 251, 299) == reads.ALL[251:]
    assert reads.read(client, 0, 1, ledger=9) == [0, 1]
    assert broker.subscriptions == [(reads.LEDGER, 0)]
    assert reads.read(client, 3, 4) == [3, 4]  # back
    assert broker.subscriptions == [(reads.LEDGER, 0), (reads.LEDGER, 3)]


def test_what_is_given_up_goes_on_where_it_stands(client: BrokerClient, broker: FakeBroker) -> None:
    blocks = client.read(reads.PARTITION, reads.LEDGER, 0, 299, block_bytes=1)
    seen = [int(number) for number in next(blocks).entry_ids]
    blocks.close()
    assert reads.read(client, seen[-1] + 1) == reads.ALL[seen[-1] + 1 :]
    assert len(broker.subscriptions) == 1


@pytest.mark.parametrize(
    ("last", "wanted", "found"),
    [
        ((reads.LEDGER, 299), 350, reads.ALL),  # markers behind
        ((reads.LEDGER, 250), 299, reads.ALL[:251]),  # what follows is hidden: an open transaction
        ((reads.LEDGER + 2, 5), 350, reads.ALL),
    ],
)
def test_it_ends_where_the_broker_has_no_more(
    last: tuple[int, int], wanted: int, found: list[int]
) -> None:
    given = {at: data for at, data in reads.ENTRIES.items() if at[1] in found}
    if last[0] > reads.LEDGER:
        given[last] = entry(b"later")
    with FakeBroker(given) as broker, reads.client_of(broker.url, "250s") as client:
        broker.last = last
        began = time.monotonic()
        assert reads.read(client, 0, wanted) == found
        assert time.monotonic() - began < 200
        assert broker.heard.count(api.CommandGetLastMessageId) <= 1


@pytest.mark.parametrize("last", [(reads.LEDGER, -1), (-1, -1), (reads.LEDGER + 4, -1)])
@pytest.mark.parametrize("found", [reads.ALL, reads.ALL[:250], []])
def test_a_broker_that_knows_of_no_message_tells_how_far_it_is(
    last: tuple[int, int], found: list[int]
) -> None:
    given = {at: data for at, data in reads.ENTRIES.items() if at[1] in found}
    with FakeBroker(given) as broker, reads.client_of(broker.url, "250s") as client:
        broker.last = last
        broker.hidden = {(reads.LEDGER, number) for number in range(len(found), 350)}
        began = time.monotonic()
        assert reads.read(client, 0, 349) == found
        assert time.monotonic() - began < 200
        # Who had to doubt it would have asked again and again.
        assert broker.heard.count(api.CommandGetLastMessageId) <= 2


def test_a_last_message_that_is_a_marker() -> None:
    with FakeBroker(reads.ENTRIES) as broker, reads.client_of(broker.url) as client:
        broker.last = (reads.LEDGER, 305)
        broker.hidden = {(reads.LEDGER, number) for number in range(300, 306)}
        assert reads.read(client, 0, 305) == reads.ALL


def test_a_topic_without_messages(client: BrokerClient, broker: FakeBroker) -> None:
    broker.entries, broker.last = {}, (-1, -1)
    assert reads.read(client) == []


def test_what_the_broker_leaves_out_is_not_there() -> None:
    odd = {at: data for at, data in reads.ENTRIES.items() if at[1] % 2}
    with FakeBroker(odd) as broker, reads.client_of(broker.url) as client:
        assert reads.read(client) == reads.ALL[1::2]


# -- what moves and breaks -------------------------------------------------------------------------


def test_a_consumer_that_is_closed_in_the_middle(client: BrokerClient, broker: FakeBroker) -> None:
    moved: list[object] = []

    def move(session: Session, consumer: int, at: tuple[int, int]) -> None:
        if at[1] == 150 and not moved:
            moved.append(at)
            session.close_consumer(consumer)

    broker.before_message = move
    assert reads.read(client) == reads.ALL
    assert broker.subscriptions == [(reads.LEDGER, 0), (reads.LEDGER, 150)]
    assert broker.heard.count(api.CommandLookupTopic) == 2


def test_a_consumer_that_moves_to_a_named_broker(broker: FakeBroker) -> None:
    with FakeBroker(reads.ENTRIES) as other:

        def move(session: Session, consumer: int, at: tuple[int, int]) -> None:
            if at[1] == 150:
                session.close_consumer(consumer, other.url)

        broker.before_message = move
        with reads.client_of(broker.url) as client:
            assert reads.read(client) == reads.ALL
        assert other.subscriptions == [(reads.LEDGER, 150)]
        assert api.CommandLookupTopic not in other.heard
        assert broker.heard.count(api.CommandLookupTopic) == 1


@pytest.mark.parametrize("cut", [0, 3, 8, 20, -1])
def test_a_connection_that_ends_within_a_frame(broker: FakeBroker, cut: int) -> None:
    done: list[object] = []

    def break_off(session: Session, consumer: int, at: tuple[int, int]) -> None:
        if at[1] == 77 and not done:
            done.append(at)
            session.send(message(consumer, at, reads.ENTRIES[at])[:cut])
            session.connection.shutdown(socket.SHUT_WR)
            while session.connection.recv(1 << 16):
                pass  # until the client has read all that came before, and closes its side
            raise ConnectionError

    broker.before_message = break_off
    with reads.client_of(broker.url) as client:
        assert reads.read(client) == reads.ALL
    assert broker.subscriptions == [(reads.LEDGER, 0), (reads.LEDGER, 77)]


def test_entries_that_come_again_are_given_once(client: BrokerClient, broker: FakeBroker) -> None:
    def again(session: Session, consumer: int, at: tuple[int, int]) -> None:
        for back in range(max(at[1] - 3, 0), at[1]):
            session.send(message(consumer, (reads.LEDGER, back), reads.ENTRIES[reads.LEDGER, back]))

    broker.before_message = again
    assert reads.read(client) == reads.ALL


def test_entries_of_another_consumer_are_none_of_ours(broker: FakeBroker) -> None:
    def foreign(session: Session, consumer: int, at: tuple[int, int]) -> None:
        session.send(message(consumer + 1000, (reads.LEDGER, at[1] + 1), b"foreign"))

    broker.before_message = foreign
    with reads.client_of(broker.url) as client:
        assert reads.read(client) == reads.ALL


def test_pings_are_answered_between_entries(client: BrokerClient, broker: FakeBroker) -> None:
    def ping(session: Session, consumer: int, at: tuple[int, int]) -> None:
        session.send(api.CommandPing())

    broker.before_message = ping
    assert reads.read(client) == reads.ALL
    assert reads.read(client, 0, 3) == reads.ALL[:4]
    assert broker.heard.count(api.CommandPong) >= 290


def test_silence_is_an_error_after_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(session: Session, command: api.CommandFlow) -> None:
        pass

    with FakeBroker(reads.ENTRIES, {api.CommandFlow: nothing}) as broker:
        clock = reads.Passing(0.1, reads.idle(broker, monkeypatch))
        with reads.client_of(broker.url, "2s", time=clock) as client:
            with pytest.raises(UnavailableError, match="silent"):
                reads.read(client)
            assert 2 <= clock.waited < 4


def test_a_broker_that_is_gone_is_noticed_before_the_timeout(
    broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck: list[socket.socket] = []
    over = Event()

    def hang(session: Session, consumer: int, at: tuple[int, int]) -> None:
        if at[1] == 100 and not stuck:
            stuck.append(session.connection)
            over.wait(60)  # it answers no PING either

    def is_waited_for() -> bool:
        ended = select.poll()
        for one in stuck:
            ended.register(one, select.POLLRDHUP)
        return bool(stuck) and not ended.poll(0)

    broker.before_message = hang
    monkeypatch.setattr(consumer, "ASK_AGAIN_SECONDS", 0.1)
    with reads.client_of(broker.url, "600s", time=reads.Passing(5.0, is_waited_for)) as client:
        assert reads.read(client) == reads.ALL, "later it would be an error"
    assert api.CommandPing not in broker.heard[-1:]
    assert broker.subscriptions == [(reads.LEDGER, 0), (reads.LEDGER, 100)]
    over.set()


def test_a_drip_is_silence(broker: FakeBroker) -> None:
    dripping = Event()

    def drip(session: Session, consumer: int, at: tuple[int, int]) -> None:
        dripping.set()
        for byte in message(consumer, at, reads.ENTRIES[at]):
            session.send(bytes([byte]))
            Event().wait(0.25)

    broker.before_message = drip
    clock = reads.Passing(0.05, dripping.is_set)
    with reads.client_of(broker.url, "1s", time=clock) as client:
        with pytest.raises(UnavailableError, match="silent"):
            reads.read(client)
        assert clock.waited < 4, "an entry would take a minute"


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff" * 64,
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x08\x00\x00\x00\xff" + b"x" * 32,
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x09",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        (600 << 20).to_bytes(4, "big") + b"x" * 32,
    ],
)
def test_garbage_is_corrupt(broker: FakeBroker, garbage: bytes) -> None:
    broker.before_message = lambda session, consumer, at: session.send(garbage)
    with reads.client_of(broker.url) as client, pytest.raises(CorruptError):
        reads.read(client)


def test_a_frame_of_a_great_size_takes_no_memory_before_its_bytes(broker: FakeBroker) -> None:
    broker.before_message = lambda session, consumer, at: session.send(
        (500 << 20).to_bytes(4, "big") + (30).to_bytes(4, "big") + b"\x08\x09"
    )
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with reads.client_of(broker.url, "1s") as client, pytest.raises(PulsarLakeError):
        reads.read(client)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert pa.total_allocated_bytes() - before < 8 << 20


def test_entries_larger_than_a_block(client: BrokerClient, broker: FakeBroker) -> None:
    large = {(reads.LEDGER, n): entry(bytes([n]) * (300_000 + n)) for n in range(20)}
    broker.entries, broker.last = large, (reads.LEDGER, 19)
    found = {}
    for block in client.read(reads.PARTITION, reads.LEDGER, 0, 19, block_bytes=100_000):
        for number, at, size in zip(block.entry_ids, block.offsets, block.lengths, strict=True):
            found[reads.LEDGER, int(number)] = block.arena[at : at + size].tobytes()
    assert found == large


def test_a_reader_that_takes_its_time(broker: FakeBroker) -> None:
    time = reads.Time()
    with reads.client_of(broker.url, "1s", time=time) as client:
        blocks = client.read(reads.PARTITION, reads.LEDGER, 0, 299, block_bytes=1)
        found = [int(number) for number in next(blocks).entry_ids]
        broker.hang_up()
        time.now += 1.1
        found += [int(number) for block in blocks for number in block.entry_ids]
        assert found == reads.ALL


def test_memory_does_not_grow_with_the_topic(client: BrokerClient, broker: FakeBroker) -> None:
    size = 200_000
    broker.entries = {(reads.LEDGER, n): entry(bytes([n]) * size) for n in range(200)}
    broker.last = (reads.LEDGER, 199)
    before = pa.total_allocated_bytes()
    most = 0
    for block in client.read(reads.PARTITION, reads.LEDGER, 0, 199, block_bytes=4 * size):
        assert len(block) <= 4
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 5 * 4 * size


# -- kept ------------------------------------------------------------------------------------------


def test_what_ended_meanwhile_is_opened_anew(client: BrokerClient, broker: FakeBroker) -> None:
    assert reads.read(client, 0, 99) == reads.ALL[:100]
    broker.hang_up()
    client.resume()
    assert reads.read(client, 100) == reads.ALL[100:]
    assert len(broker.connects) == 4


def test_pings_while_idle_are_answered_at_resume(client: BrokerClient, broker: FakeBroker) -> None:
    assert reads.read(client, 0, 299) == reads.ALL
    for one in broker.sessions:
        one.send(api.CommandPing())
    for _ in range(3000):  # until they have arrived
        client.resume()
        if broker.heard.count(api.CommandPong) == 2:
            break
        Event().wait(0.02)
    assert broker.heard.count(api.CommandPong) == 2
    assert reads.read(client, 0, 5) == reads.ALL[:6]
    assert len(broker.connects) == 2


def test_released_topics_have_no_consumer(broker: FakeBroker) -> None:
    with reads.client_of(broker.url, time=reads.Time()) as client:
        client.last_position(reads.PARTITION)
        next(client.read(reads.PARTITION, reads.LEDGER, 0, 299, block_bytes=1))
        client.release()
        assert not any(one.next for one in broker.sessions)
        assert reads.read(client) == reads.ALL
        assert len(broker.connects) == 2


def test_the_last_position_takes_one_subscription(client: BrokerClient, broker: FakeBroker) -> None:
    for _ in range(3):
        assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 299)
    broker.last = (reads.LEDGER, 300)
    assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 300)
    assert len(broker.subscriptions) == 1
    broker.hang_up()
    assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 300)


def test_the_last_positions_of_several_are_asked_for_at_once(broker: FakeBroker) -> None:
    several = [Partition(reads.PARTITION.topic, index) for index in range(3)]
    waiting: list[tuple[Session, api.CommandGetLastMessageId]] = []

    def together(session: Session, command: api.CommandGetLastMessageId) -> None:
        waiting.append((session, command))
        if len(waiting) == len(several):
            for one in reversed(waiting):
                REACTIONS[api.CommandGetLastMessageId](*one)
            waiting.clear()

    with reads.client_of(broker.url) as client:
        broker.reactions[api.CommandGetLastMessageId] = together
        for _ in range(2):
            found = client.last_positions(several)
            assert found == dict.fromkeys(several, Position(reads.LEDGER, 299))
        assert len(broker.subscriptions) == 3


def test_a_consumer_that_the_broker_has_forgotten_is_made_anew(broker: FakeBroker) -> None:
    with reads.client_of(broker.url) as client:
        assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 299)
        first = len(broker.subscriptions)

        def forgotten(session: Session, command: api.CommandGetLastMessageId) -> None:
            if len(broker.subscriptions) == first:
                session.error(command.request_id, 1, "Consumer not found")
            else:
                REACTIONS[api.CommandGetLastMessageId](session, command)

        broker.reactions[api.CommandGetLastMessageId] = forgotten
        assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 299)


def test_a_broker_that_cannot_say_the_last_position_keeps_no_subscriptions(
    broker: FakeBroker,
) -> None:
    def unable(session: Session, command: api.CommandGetLastMessageId) -> None:
        session.error(command.request_id, 6, "its bookies do not answer")

    broker.reactions[api.CommandGetLastMessageId] = unable
    with reads.client_of(broker.url, "2s", time=reads.Time()) as client:
        with pytest.raises(UnavailableError, match="its bookies do not answer"):
            client.last_position(reads.PARTITION)
        assert len(broker.subscriptions) > 1
        del broker.reactions[api.CommandGetLastMessageId]
        assert client.last_position(reads.PARTITION) == Position(reads.LEDGER, 299)
        assert sum(len(one.next) for one in broker.sessions) == 1


def test_entries_that_came_while_idle(broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "ASK_AGAIN_SECONDS", 60.0)
    with reads.client_of(broker.url, "60s") as client:
        blocks = client.read(reads.PARTITION, reads.LEDGER, 0, 299, block_bytes=1)
        seen = [int(number) for number in next(blocks).entry_ids]
        blocks.close()
        client.resume()
        assert reads.read(client, seen[-1] + 1) == reads.ALL[seen[-1] + 1 :]
        assert api.CommandPing not in broker.heard, "it came after 10 s of waiting for a byte more"


def test_schemas(client: BrokerClient, broker: FakeBroker) -> None:
    asked: list[api.CommandGetSchema] = []

    def schema(session: Session, command: api.CommandGetSchema) -> None:
        asked.append(command)
        answer = api.CommandGetSchemaResponse(request_id=command.request_id)
        if command.schema_version == b"\x00" * 7 + b"\x09":
            answer.error_code = api.ServerError.TopicNotFound
        else:
            found = api.Schema(schema_data=b'{"type":"record"}', type=4)
            found.properties.add(key=b"a", value=b"b")
            answer.schema = found.SerializeToString()
            answer.schema_version = b"\x00" * 7 + b"\x02"
        session.send(answer)

    broker.reactions[api.CommandGetSchema] = schema
    expected = SchemaInfo(2, "AVRO", '{"type":"record"}', {"a": "b"})
    assert client.schema(reads.PARTITION, None) == expected
    assert client.schema(reads.PARTITION, b"\x00" * 7 + b"\x09") is None
    topic = "persistent://public/default/orders"
    assert asked[0] == api.CommandGetSchema(request_id=asked[0].request_id, topic=topic)


def test_a_challenge_without_end_is_an_error(broker: FakeBroker) -> None:
    def challenge(session: Session, command: object) -> None:
        session.send(api.CommandAuthChallenge())

    broker.reactions |= {api.CommandConnect: challenge, api.CommandAuthResponse: challenge}
    with reads.client_of(broker.url, "0.5s", token="t") as client, pytest.raises(UnavailableError):
        reads.read(client)
