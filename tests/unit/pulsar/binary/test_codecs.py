"""Commands and answers as bytes, both ways, against the layout of PulsarApi.proto."""

import json
import struct

import pytest
from google.protobuf.message import Message
from google.protobuf.text_format import MessageToString, Parse
from hypothesis import given
from hypothesis import strategies as st

from reader.errors import ConfigurationError, CorruptError
from reader.model import SchemaInfo
from reader.pulsar.binary.broker_errors import failed_answer, refusal
from reader.pulsar.binary.commands import framed, parsed_command
from reader.pulsar.binary.schema_messages import SchemaFound, schema_found
from reader.pulsar.binary.service_address import Address, parse_service_url
from reader.wire import encoded
from reader.wire import pulsar_pb2 as api

MINUS_ONE = "ffffffffffffffffff01"
HELLO = "0a0b" + b"pulsar-lake".hex()
TOKEN = b"token".hex()

SENT = [
    (api.CommandPing, "", "0812 920100"),
    (api.CommandPong, "", "0813 9a0100"),
    (api.CommandFlow, "consumer_id: 7 messagePermits: 1000", "080b 5a05 0807 10e807"),
    (api.CommandCloseConsumer, "consumer_id: 7 request_id: 3", "0810 820104 0807 1003"),
    (api.CommandCloseProducer, "producer_id: 7 request_id: 3", "080f 7a04 0807 1003"),
    (
        api.CommandProducer,
        'topic: "t" producer_id: 7 request_id: 3 producer_name: "me" encrypted: false schema: "s" '
        "user_provided_producer_name: true",
        "0805 2a12 0a0174 1007 1803 22026d65 2800 3a0173 4801",
    ),
    (api.CommandGetLastMessageId, "consumer_id: 7 request_id: 3", "081d ea0104 0807 1003"),
    (
        api.CommandAck,
        "consumer_id: 7 ack_type: Cumulative message_id { ledgerId: 2 entryId: 9 }",
        "080a 520a 0807 1001 1a04 0802 1009",
    ),
    (
        api.CommandLookupTopic,
        'topic: "t" request_id: 3 authoritative: true',
        "0817 ba0107 0a0174 1003 1801",
    ),
    (api.CommandGetSchema, 'request_id: 3 topic: "t"', "0822 920205 0803 120174"),
    (
        api.CommandGetSchema,
        'request_id: 3 topic: "t" schema_version: "version8"',
        "0822 92020f 0803 120174 1a08 76657273696f6e38",
    ),
    (
        api.CommandConnect,
        'client_version: "pulsar-lake" auth_data: "x" protocol_version: 21 auth_method_name: '
        '"token" proxy_to_broker_url: "b:1" feature_flags { supports_auth_refresh: true '
        "supports_broker_entry_metadata: true }",
        f"0802 1224 {HELLO} 1a0178 2015 2a05{TOKEN} 3203623a31 5204 0801 1001",
    ),
    (
        api.CommandAuthResponse,
        'client_version: "pulsar-lake" response { auth_method_name: "token" auth_data: "x" } '
        "protocol_version: 21",
        f"0825 aa021b {HELLO} 120a 0a05{TOKEN} 120178 1815",
    ),
    (
        api.CommandSubscribe,
        'topic: "t" subscription: "s" subType: Exclusive consumer_id: 7 request_id: 3 '
        'consumer_name: "s" durable: false start_message_id { ledgerId: 2 entryId: -1 } '
        "read_compacted: false initialPosition: Latest force_topic_creation: false",
        "0804 2226 0a0174 120173 1800 2007 2803 320173 4000"
        f" 4a0d 0802 10{MINUS_ONE} 5800 6800 7800",
    ),
]


@pytest.mark.parametrize(("kind", "text", "layout"), SENT)
def test_what_we_send(kind: type[Message], text: str, layout: str) -> None:
    data = bytes.fromhex(layout)
    assert framed(Parse(text, kind())) == struct.pack(">II", len(data) + 4, len(data)) + data


def test_an_entry_follows_the_head_of_its_frame() -> None:
    command = api.CommandSend(producer_id=7, sequence_id=5, num_messages=4, highest_sequence_id=8)
    inner = bytes.fromhex("0806 3208 0807 1005 1804 3008")
    assert framed(command, 100) == struct.pack(">II", len(inner) + 4 + 100, len(inner)) + inner


def reply(kind: int, body: bytes = b"") -> bytes:
    return encoded((1, kind), (kind, body))


def position(ledger: int, entry: int) -> bytes:
    return encoded((1, ledger), (2, entry), (3, 4), (4, 2))


CLOSED = encoded((1, 5), (2, -1), (3, "pulsar://a:1"), (4, "pulsar+ssl://a:2"))
URLS = 'assignedBrokerServiceUrl: "pulsar://a:1" assignedBrokerServiceUrlTls: "pulsar+ssl://a:2"'

HEARD: list[tuple[bytes, type[Message] | None, str]] = [
    (
        reply(3, encoded((1, "4.2"), (2, 21), (3, 5 << 20))),
        api.CommandConnected,
        "max_message_size: 5242880",
    ),
    (reply(18), api.CommandPing, ""),
    (reply(19), api.CommandPong, ""),
    (reply(36, encoded((1, "4.2"), (2, encoded((1, "token"))))), api.CommandAuthChallenge, ""),
    (reply(13, encoded((1, 5))), api.CommandSuccess, "request_id: 5"),
    (
        reply(14, encoded((1, 5), (2, 6), (3, "why"))),
        api.CommandError,
        'request_id: 5 error: ServiceNotReady message: "why"',
    ),
    (reply(16, CLOSED), api.CommandCloseConsumer, f"consumer_id: 5 request_id: -1 {URLS}"),
    (reply(15, CLOSED), api.CommandCloseProducer, f"producer_id: 5 request_id: -1 {URLS}"),
    (
        reply(68, encoded((1, 5), (2, 1))),
        api.CommandTopicMigrated,
        "resource_id: 5 resource_type: Consumer",
    ),
    (
        reply(24, encoded((1, "u"), (2, "v"), (3, 0), (4, 9), (5, 1), (8, 1))),
        api.CommandLookupTopicResponse,
        'brokerServiceUrl: "u" brokerServiceUrlTls: "v" response: Redirect request_id: 9 '
        "authoritative: true proxy_through_service_url: true",
    ),
    (
        reply(30, encoded((1, position(-1, -1)), (2, 6), (3, position(7, -1)))),
        api.CommandGetLastMessageIdResponse,
        "last_message_id { ledgerId: -1 entryId: -1 } request_id: 6 "
        "consumer_mark_delete_position { ledgerId: 7 entryId: -1 }",
    ),
    (
        reply(35, encoded((1, 8), (4, b"as it came"), (5, b"v"))),
        api.CommandGetSchemaResponse,
        'request_id: 8 schema: "as it came" schema_version: "v"',
    ),
    (
        reply(7, encoded((1, 2), (2, 9), (3, position(7, 3)))),
        api.CommandSendReceipt,
        "producer_id: 2 sequence_id: 9 message_id { ledgerId: 7 entryId: 3 }",
    ),
    (
        reply(8, encoded((1, 2), (2, 9), (3, 22), (4, "large"))),
        api.CommandSendError,
        'producer_id: 2 sequence_id: 9 error: NotAllowedError message: "large"',
    ),
    (
        reply(17, encoded((1, 4), (2, "me"), (3, 1 << 62), (4, b"v"))),
        api.CommandProducerSuccess,
        'request_id: 4 producer_name: "me" last_sequence_id: 4611686018427387904 '
        'schema_version: "v"',
    ),
    (reply(27, encoded((1, 5))), None, ""),
    (reply(31, encoded((1, 5), (2, 1))), None, ""),
    (reply(99, b"what is newer"), None, ""),
    (reply(1), None, ""),
]


@pytest.mark.parametrize(("data", "kind", "text"), HEARD)
def test_what_brokers_say(data: bytes, kind: type[Message] | None, text: str) -> None:
    command = parsed_command(data)
    if kind is None:
        assert command is None
    else:
        assert isinstance(command, kind)
        assert MessageToString(command, as_one_line=True) == text


def test_an_id_that_a_broker_does_not_say_is_minus_one() -> None:
    command = parsed_command(reply(17, encoded((1, 4), (2, "me"))))
    assert isinstance(command, api.CommandProducerSuccess)
    assert command.last_sequence_id == -1


# -- errors ----------------------------------------------------------------------------------------

FAILED: list[tuple[bytes, str | None]] = [
    (reply(14, encoded((1, 5), (2, 6), (3, "why"))), "why"),
    (reply(14, encoded((1, 5), (2, 6), (3, b"\xff"))), "\ufffd"),
    (reply(14, encoded((1, 5), (2, 99))), "error 99"),
    (reply(24, encoded((1, "u"), (3, 1), (4, 9))), None),
    (reply(24, encoded((1, "u"), (3, 0), (4, 9))), None),
    (reply(24, encoded((3, 2), (4, 9), (6, 6), (7, "no"))), "no"),
    (reply(24, encoded((1, "u"), (3, 1), (4, 9), (6, 6))), "error 6"),
    (reply(24, encoded((3, 2), (4, 9))), "error None"),
    (reply(24, encoded((3, 7), (4, 9))), "error None"),
    (reply(35, encoded((1, 8), (2, 6), (3, "none"))), "none"),
    (reply(35, encoded((1, 8), (2, 6), (4, b""))), "error 6"),
    (reply(35, encoded((1, 8))), "error None"),
    (reply(35, encoded((1, 8), (4, b""))), None),
    (reply(13, encoded((1, 5))), None),
]


@pytest.mark.parametrize(("data", "expected"), FAILED)
def test_an_answer_that_is_an_error(data: bytes, expected: str | None) -> None:
    answer = parsed_command(data)
    assert answer is not None
    failed = failed_answer(answer)
    found = None if failed is None else refusal(failed, "t").message
    assert found == (expected and f"the broker does not serve t: {expected}")


# -- schemas ---------------------------------------------------------------------------------------

KEY, VALUE = b'{"type":"string"}', b'{"type":"int"}'
KEY_VALUE = b"".join(len(half).to_bytes(4, "big") + half for half in (KEY, VALUE))


@pytest.mark.parametrize(
    ("kind", "data", "name", "definition"),
    [
        (4, b"{}", "AVRO", "{}"),
        (0, b"", "BYTES", ""),
        (99, b"", "TYPE_99", ""),
        (1, b"\xff", "STRING", "\ufffd"),
        (
            15,
            KEY_VALUE,
            "KEY_VALUE",
            json.dumps({"key": {"type": "string"}, "value": {"type": "int"}}),
        ),
        (15, bytes(8), "KEY_VALUE", '{"key": "", "value": ""}'),
    ],
)
def test_a_schema(kind: int, data: bytes, name: str, definition: str) -> None:
    pair = encoded((1, "a"), (2, b"\xff"))
    message = encoded((1, "name"), (3, data), (4, kind), (5, pair))
    version = (3).to_bytes(8, "big")
    found = schema_found(api.CommandGetSchemaResponse(schema=message, schema_version=version))
    info = SchemaInfo(3, name, definition, {"a": "\ufffd"})
    assert found == SchemaFound(info, message, version)


# -- garbage ---------------------------------------------------------------------------------------


def read(data: bytes) -> None:
    """Read a command as far as its connection does."""
    command = parsed_command(data)
    failed = None if command is None else failed_answer(command)
    if failed is None and isinstance(command, api.CommandGetSchemaResponse):
        schema_found(command)


@pytest.mark.parametrize("data", [*(data for data, _, _ in HEARD), *(data for data, _ in FAILED)])
def test_what_is_cut_off_is_accepted_or_corrupt(data: bytes) -> None:
    for end in range(len(data)):
        try:
            read(data[:end])
        except CorruptError:
            continue


@given(st.binary(max_size=80))
def test_garbage_is_accepted_or_corrupt(data: bytes) -> None:
    for kind in (3, 7, 8, 14, 15, 16, 17, 24, 30, 35, 68):
        for one in (data, reply(kind, data), reply(35, encoded((4, data)))):
            try:
                read(one)
            except CorruptError:
                continue


@pytest.mark.parametrize("data", [b"", b"\x10\x01", b"\x08\x00"])
def test_a_command_without_a_type_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError, match="has no type"):
        parsed_command(data)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("pulsar://a", [Address("a", 6650, False)]),
        ("pulsar+ssl://a", [Address("a", 6651, True)]),
        (
            "pulsar://a:1,b,c:3/",
            [Address("a", 1, False), Address("b", 6650, False), Address("c", 3, False)],
        ),
        ("pulsar+ssl://[::1]:7", [Address("::1", 7, True)]),
    ],
)
def test_service_urls(url: str, expected: list[Address]) -> None:
    assert list(parse_service_url(url)) == expected


@pytest.mark.parametrize("url", ["http://a:1", "pulsar://", "pulsar://a:b", "pulsar://a,,b", "a:1"])
def test_what_is_no_service_url(url: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_service_url(url)
