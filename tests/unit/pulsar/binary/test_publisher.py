"""Opening producers: names that are taken, moves, refusals, schemas as their brokers write them."""

import json
from typing import Any

import pytest

from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import SchemaInfo
from reader.pulsar.binary import OutgoingEntry, Publisher
from reader.pulsar.binary.schema_messages import SchemaFound
from reader.wire import pulsar_pb2 as api
from tests.unit.pulsar.binary.fake_broker import FakeBroker, Reaction, Session
from tests.unit.pulsar.binary.fake_topic import FakeTopic, Sent
from tests.unit.pulsar.binary.reads import PARTITION, Time, publisher_of


def publish(publisher: Publisher, sequence: int, **more: Any) -> None:
    one = publisher.producer(PARTITION, name="me", **more)
    metadata = api.MessageMetadata(producer_name="me", sequence_id=sequence, publish_time=1)
    one.send(OutgoingEntry(sequence, sequence, 1, metadata.SerializeToString(), b"x"))
    one.flush()
    one.close()


# -- names that are taken --------------------------------------------------------------------------


def test_a_name_that_is_taken_for_a_while(broker: FakeBroker, topic: FakeTopic) -> None:
    topic.busy = 3
    with publisher_of(broker.url) as publisher:
        publish(publisher, 0)
    assert topic.ids() == [0]
    assert len(topic.asked) == 4
    assert len(broker.connects) == 2, "connections stay"
    assert len({one.producer_id for one in topic.asked}) == 4, "the same number is answered blindly"


def test_a_name_that_stays_taken(broker: FakeBroker, topic: FakeTopic) -> None:
    topic.busy, passed = 1000, Time()
    with publisher_of(broker.url, "5s", time=passed) as publisher:
        with pytest.raises(UnavailableError) as caught:
            publish(publisher, 0, seconds=0.6)
    assert 0.3 < passed.waited < 0.6
    error = caught.value
    assert error.message == f"another producer of that name is connected to {PARTITION}"
    assert error.hint is not None
    assert error.hint.startswith("another run of the same query? NamingException")
    assert topic.stored == []


def test_a_name_may_be_waited_for_longer_than_an_answer(
    broker: FakeBroker, topic: FakeTopic
) -> None:
    topic.busy, passed = 4, Time()
    with publisher_of(broker.url, "0.3s", time=passed) as publisher:
        publish(publisher, 0, seconds=5)
    assert topic.ids() == [0]
    assert passed.waited > 0.3


# -- where it is served ----------------------------------------------------------------------------


def located(url: str, *, redirect: bool) -> Reaction:
    def answer(session: Session, command: api.CommandLookupTopic) -> None:
        session.send(
            api.CommandLookupTopicResponse(
                brokerServiceUrl=url,
                response="Redirect" if redirect else "Connect",
                request_id=command.request_id,
                authoritative=redirect,
            )
        )

    return answer


@pytest.mark.parametrize("redirect", [True, False])
def test_a_broker_that_names_another(broker: FakeBroker, topic: FakeTopic, redirect: bool) -> None:
    with FakeBroker() as first:
        elsewhere = FakeTopic(first)
        first.reactions[api.CommandLookupTopic] = located(broker.url, redirect=redirect)
        with publisher_of(first.url) as publisher:
            publish(publisher, 0)
            assert publisher.most_bytes(PARTITION) == 5 << 20
    assert topic.ids() == [0]
    assert elsewhere.opened == []


def test_a_topic_that_moves(broker: FakeBroker, topic: FakeTopic) -> None:
    """It is looked up anew for each producer."""
    with FakeBroker() as second:
        there = FakeTopic(second)
        with publisher_of(broker.url) as publisher:
            publish(publisher, 0)
            broker.reactions[api.CommandLookupTopic] = located(second.url, redirect=False)
            publish(publisher, 1)
    assert (topic.ids(), there.ids()) == ([0], [1])


def test_a_broker_that_does_not_serve_it_yet(broker: FakeBroker, topic: FakeTopic) -> None:
    left = 3
    usual = broker.reactions[api.CommandProducer]

    def not_yet(session: Session, command: api.CommandProducer) -> None:
        nonlocal left
        left -= 1
        if left:
            session.error(command.request_id, 6, "not served by this instance")
        else:
            usual(session, command)

    broker.reactions[api.CommandProducer] = not_yet
    with publisher_of(broker.url) as publisher:
        publish(publisher, 0)
    assert topic.ids() == [0]
    assert broker.heard.count(api.CommandLookupTopic) == 3


def test_a_broker_that_does_not_answer(broker: FakeBroker, topic: FakeTopic) -> None:
    passed = Time()

    def silent(session: Session, command: api.CommandProducer) -> None:
        passed.now += 2

    broker.reactions[api.CommandProducer] = silent
    with publisher_of(broker.url, "2s", time=passed) as publisher:
        with pytest.raises(UnavailableError, match="an answer is not there in time"):
            publish(publisher, 0)
    assert passed.waited == 2


def test_a_connection_that_ended_meanwhile(broker: FakeBroker, topic: FakeTopic) -> None:
    with publisher_of(broker.url) as publisher:
        publish(publisher, 0)
        broker.hang_up()
        publisher.resume()
        publish(publisher, 1)
    assert topic.ids() == [0, 1]


def test_a_connection_that_ends_while_it_sends(broker: FakeBroker, topic: FakeTopic) -> None:
    def hang_up(session: Session, sent: Sent) -> bool:
        topic.push(sent)
        broker.hang_up()
        return False

    topic.before = hang_up
    with publisher_of(broker.url) as publisher:
        with pytest.raises(UnavailableError):
            publish(publisher, 0)
        topic.before = lambda session, sent: True
        publish(publisher, 0)  # there already
        publish(publisher, 1)
    assert topic.ids() == [0, 1]


@pytest.mark.parametrize(
    ("code", "kind", "text", "times"),
    [
        (3, ConfigurationError, "no permission for producing to", 1),
        (4, ConfigurationError, "no permission for producing to", 1),
        (11, NotFoundError, "does not exist", 1),
        (15, ConfigurationError, "is terminated: nothing can be published any more", 1),
        (17, ConfigurationError, "refuses", 1),
        (18, ConfigurationError, "the schema is not compatible with that of", 1),
        (22, ConfigurationError, "refuses what is sent to", 1),
        (7, UnavailableError, "backlog quota of .* is exceeded", 2),
        (8, UnavailableError, "backlog quota of .* is exceeded", 2),
        (6, UnavailableError, "does not serve producing to", 2),
        (16, UnavailableError, "another producer of that name is connected to", 2),
        (16, ConfigurationError, "an exclusive producer has .*, exclusive producer: x", 1),
        (16, ConfigurationError, "takes no more producers.*, reached max producers limit", 1),
        (16, UnavailableError, "another producer.*, exclusive producer: is already connected", 2),
        (25, ConfigurationError, "an exclusive producer has", 1),
    ],
)
def test_what_a_broker_refuses(
    broker: FakeBroker, code: int, kind: type[PulsarLakeError], text: str, times: int
) -> None:
    said = f"so it is{text.rpartition('.*')[2]}" if ".*" in text and code == 16 else "so it is"

    def refuse(session: Session, command: api.CommandProducer) -> None:
        session.error(command.request_id, code, said)

    broker.reactions[api.CommandProducer] = refuse
    with publisher_of(broker.url, "2s", time=Time()) as publisher:
        with pytest.raises(kind, match=text) as caught:
            publish(publisher, 0)
    assert "so it is" in str(caught.value)
    assert (broker.heard.count(api.CommandProducer) > 1) == (times > 1)


# -- schemas ---------------------------------------------------------------------------------------

AVRO = '{"type":"record","name":"R","fields":[]}'
NAMED = api.Schema(
    schema_data=AVRO.encode(), type=4, properties=[api.KeyValue(key=b"a", value=b"b")]
).SerializeToString()
NEWER = b"\x9a\x06\x05newer"
"""Field 99."""


def with_schema(message: bytes | None, version: bytes = b"\x00" * 7 + b"\x02") -> Reaction:
    def answer(session: Session, command: api.CommandGetSchema) -> None:
        found = api.CommandGetSchemaResponse(schema=message, schema_version=version)
        if message is None:
            error = api.ServerError.TopicNotFound
            found = api.CommandGetSchemaResponse(error_code=error, error_message=b"no schema")
        found.request_id = command.request_id
        session.send(found)

    return answer


def schema_of(broker: FakeBroker, message: bytes | None) -> SchemaFound | None:
    broker.reactions[api.CommandGetSchema] = with_schema(message)
    with publisher_of(broker.url) as publisher:
        return publisher.schema(PARTITION)


@pytest.mark.parametrize(
    "message",
    [
        NAMED + NEWER,
        b"\x20\x01\x1a\x00\x0a\x00",  # fields in another order
        api.Schema(schema_data=b"\xff\xfe", type=77).SerializeToString(),
    ],
)
def test_a_schema_is_given_back_as_it_came(
    publisher: Publisher, broker: FakeBroker, topic: FakeTopic, message: bytes
) -> None:
    found = schema_of(broker, message)
    assert found is not None
    assert found.message == message
    assert found.version == b"\x00" * 7 + b"\x02"
    assert found.schema.version == 2
    publish(publisher, 0, schema=found.message)
    assert topic.opened[0].schema == message


def test_a_topic_without_a_schema(broker: FakeBroker) -> None:
    assert schema_of(broker, None) is None


def test_a_schema_that_may_not_be_seen(publisher: Publisher, broker: FakeBroker) -> None:
    def refuse(session: Session, command: api.CommandGetSchema) -> None:
        error = api.ServerError.AuthorizationError
        session.send(api.CommandGetSchemaResponse(request_id=command.request_id, error_code=error))

    broker.reactions[api.CommandGetSchema] = refuse
    with pytest.raises(ConfigurationError, match="no permission for the schema of"):
        publisher.schema(PARTITION)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (AVRO, AVRO),
        ("", AVRO),  # a half that is STRING has no definition
        ("", ""),
        ('{"type":"record","name":"Ä","fields":[]}', "\U0001f511"),
    ],
)
def test_both_halves_of_a_schema(broker: FakeBroker, key: str, value: str) -> None:
    """``u32 size`` and the text of each, as brokers have it; as JSON, as the REST API has it."""

    def half(text: str) -> object:
        return json.loads(text) if text.startswith("{") else text

    definition = json.dumps({"key": half(key), "value": half(value)}, ensure_ascii=False)
    halves = (text.encode() for text in (key, value))
    data = b"".join(len(one).to_bytes(4, "big") + one for one in halves)
    message = api.Schema(schema_data=data, type=15).SerializeToString()
    found = schema_of(broker, message)
    assert found is not None
    assert found.message == message
    assert found.schema.type == "KEY_VALUE"
    assert json.loads(found.schema.definition) == json.loads(definition)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (0, "BYTES"),
        (1, "STRING"),
        (2, "JSON"),
        (4, "AVRO"),
        (9, "INT64"),
        (20, "PROTOBUF_NATIVE"),
        (22, "EXTERNAL"),
    ],
)
def test_each_type_of_schema(broker: FakeBroker, number: int, kind: str) -> None:
    properties = [api.KeyValue(key=b"a", value=b"b")]
    message = api.Schema(schema_data=AVRO.encode(), type=number, properties=properties)
    found = schema_of(broker, message.SerializeToString())
    assert found is not None
    assert found.schema == SchemaInfo(2, kind, AVRO, {"a": "b"})
