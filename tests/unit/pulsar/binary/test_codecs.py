"""Commands and answers as bytes, both ways, against the layout of PulsarApi.proto."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.errors import ConfigurationError, CorruptError
from reader.model import Position, SchemaInfo
from reader.pulsar.binary import commands
from reader.pulsar.binary.commands import Command
from reader.pulsar.binary.replies import (
    Challenge,
    Connected,
    ConsumerClosed,
    Failed,
    LastMessage,
    Located,
    Other,
    Ping,
    ProducerClosed,
    ProducerOpen,
    Receipt,
    Reply,
    SchemaFound,
    SendRefused,
    Success,
    decode_reply,
)
from reader.pulsar.binary.service_address import Address, parse_service_url
from reader.wire import Fields, encoded, signed, varint

MINUS_ONE = "ffffffffffffffffff01"

HELLO = "0a0b" + b"pulsar-lake".hex()
TOKEN = b"token".hex()

SENT = [
    (commands.ping(), "0812 920100"),
    (commands.pong(), "0813 9a0100"),
    (commands.flow(7, 1000), "080b 5a05 0807 10e807"),
    (commands.close_consumer(3, 7), "0810 820104 0807 1003"),
    (commands.close_producer(3, 7), "080f 7a04 0807 1003"),
    (
        commands.producer(3, 7, "t", "me", b"s", encrypted=False),
        "0805 2a12 0a0174 1007 1803 22026d65 2800 3a0173 4801",
    ),
    (
        commands.producer(3, 7, "t", None, None, encrypted=True),
        "0805 2a0b 0a0174 1007 1803 2801 4800",
    ),
    (commands.last_message_id(3, 7), "081d ea0104 0807 1003"),
    (commands.acknowledge(7, Position(2, 9)), "080a 520a 0807 1001 1a04 0802 1009"),
    (commands.lookup(3, "t", False), "0817 ba0107 0a0174 1003 1800"),
    (commands.lookup(3, "t", True), "0817 ba0107 0a0174 1003 1801"),
    (commands.get_schema(3, "t", None), "0822 920205 0803 120174"),
    (commands.get_schema(3, "t", bytes(8)), "0822 92020f 0803 120174 1a08 0000000000000000"),
    (commands.connect("none", None, None), f"0802 121b {HELLO} 2a046e6f6e65 2015 520408011001"),
    (
        commands.connect("token", b"x", "b:1"),
        f"0802 1224 {HELLO} 2a05{TOKEN} 1a0178 2015 3203623a31 5204 0801 1001",
    ),
    (commands.auth_response("token", b"x"), f"0825 aa021b {HELLO} 120a 0a05{TOKEN} 120178 1815"),
    (
        commands.subscribe(3, 7, "t", "s", Position(2, -1)),
        "0804 2226 0a0174 120173 1800 2007 2803 320173 4000"
        f" 4a0d 0802 10{MINUS_ONE} 5800 6800 7800",
    ),
    (
        commands.subscribe(3, 7, "t", "s", None),
        "0804 2217 0a0174 120173 1800 2007 2803 320173 4000 5800 6800 7800",
    ),
]


@pytest.mark.parametrize(("sent", "layout"), SENT)
def test_what_we_send(sent: bytes, layout: str) -> None:
    command = bytes.fromhex(layout)
    assert sent == struct.pack(">II", len(command) + 4, len(command)) + command


@pytest.mark.parametrize(
    ("head", "command"),
    [
        (commands.send(7, 5, 5, 1, 100), "0806 3206 0807 1005 1801"),
        (commands.send(7, 5, 8, 4, 100), "0806 3208 0807 1005 1804 3008"),
        (commands.send(7, 5, 5, 0, 100), "0806 3206 0807 1005 1800"),
    ],
)
def test_an_entry_follows_the_head_of_its_frame(head: bytes, command: str) -> None:
    inner = bytes.fromhex(command)
    assert head == struct.pack(">II", len(inner) + 4 + 100, len(inner)) + inner


def reply(kind: int, body: bytes = b"") -> bytes:
    return encoded((1, kind), (kind, body))


def position(ledger: int, entry: int) -> bytes:
    return encoded((1, ledger), (2, entry), (3, 4), (4, 2))


KEY, VALUE = b'{"type":"string"}', b'{"type":"int"}'
KEY_VALUE = b"".join(len(half).to_bytes(4, "big") + half for half in (KEY, VALUE))


THIRD = (3).to_bytes(8, "big")


def written(kind: int, data: bytes, *more: tuple[int, bytes]) -> bytes:
    return encoded((1, "name"), (3, data), (4, kind), *more)


def schema(kind: int, data: bytes, *more: tuple[int, bytes]) -> bytes:
    return reply(35, encoded((1, 8), (4, written(kind, data, *more)), (5, THIRD)))


def found(
    name: str, definition: str, kind: int, data: bytes, *more: tuple[int, bytes], **pairs: str
) -> SchemaFound:
    """The value, and the schema as the broker wrote it."""
    info = SchemaInfo(3, name, definition, pairs)
    return SchemaFound(8, info, written(kind, data, *more), THIRD)


HEARD: list[tuple[bytes, Reply]] = [
    (reply(3, encoded((1, "4.2"), (2, 21), (3, 5 << 20))), Connected(21, 5 << 20)),
    (reply(3, encoded((1, "2.2"), (2, 13))), Connected(13, 0)),
    (reply(18), Ping()),
    (reply(19), Other()),
    (reply(36, encoded((1, "4.2"), (2, encoded((1, "token"))))), Challenge()),
    (reply(13, encoded((1, 5))), Success(5)),
    (reply(14, encoded((1, 5), (2, 6), (3, "why"))), Failed(5, 6, "why")),
    (reply(14, encoded((1, -1), (2, 0), (3, b"\xff"))), Failed((1 << 64) - 1, 0, "\ufffd")),
    (reply(16, encoded((1, 5), (2, -1))), ConsumerClosed(5, "", "")),
    (
        reply(16, encoded((1, 5), (3, "pulsar://a:1"), (4, "pulsar+ssl://a:2"))),
        ConsumerClosed(5, "pulsar://a:1", "pulsar+ssl://a:2"),
    ),
    (reply(68, encoded((1, 5), (2, 1), (3, "pulsar://other:1"))), ConsumerClosed(5, "", "")),
    (reply(68, encoded((1, 5), (2, 0))), ProducerClosed(5, "", "")),
    (reply(24, encoded((1, "pulsar://a:1"), (3, 1), (4, 9))), Located(9, "pulsar://a:1", "")),
    (
        reply(24, encoded((1, "u"), (2, "v"), (3, 0), (4, 9), (5, 1), (8, 1))),
        Located(9, "u", "v", True, True, True),
    ),
    (reply(24, encoded((3, 2), (4, 9), (6, 4), (7, "no"))), Failed(9, 4, "no")),
    (reply(24, encoded((3, 2), (4, 9))), Failed(9, None, "")),
    (reply(30, encoded((1, position(7, 9)), (2, 6))), LastMessage(6, Position(7, 9))),
    (
        reply(30, encoded((1, position(-1, -1)), (2, 6), (3, position(7, -1)))),
        LastMessage(6, Position(-1, -1), Position(7, -1)),
    ),
    (reply(35, encoded((1, 8), (2, 11), (3, "none"))), Failed(8, 11, "none")),
    (
        schema(4, b"{}", (5, encoded((1, "a"), (2, "b")))),
        found("AVRO", "{}", 4, b"{}", (5, encoded((1, "a"), (2, "b"))), a="b"),
    ),
    (schema(0, b""), found("BYTES", "", 0, b"")),
    (schema(99, b""), found("TYPE_99", "", 99, b"")),
    (
        schema(15, KEY_VALUE),
        found(
            "KEY_VALUE",
            json.dumps({"key": {"type": "string"}, "value": {"type": "int"}}),
            15,
            KEY_VALUE,
        ),
    ),
    (schema(15, bytes(8)), found("KEY_VALUE", '{"key": "", "value": ""}', 15, bytes(8))),
    (
        reply(7, encoded((1, 2), (2, 9), (3, position(7, 3)), (4, -1))),
        Receipt(2, 9, Position(7, 3)),
    ),
    (reply(7, encoded((1, 2), (2, 9), (3, position(-1, -1)))), Receipt(2, 9, Position(-1, -1))),
    (reply(8, encoded((1, 2), (2, 9), (3, 22), (4, "large"))), SendRefused(2, 9, 22, "large")),
    (reply(17, encoded((1, 4), (2, "me"), (3, -1), (4, b"v"))), ProducerOpen(4, "me", -1, b"v")),
    (reply(17, encoded((1, 4), (2, "me"), (3, 1 << 62))), ProducerOpen(4, "me", 1 << 62, b"")),
    (reply(17, encoded((1, 4), (2, "me"))), ProducerOpen(4, "me", -1, b"")),
    (reply(15, encoded((1, 2), (2, -1), (3, "u"), (4, "t"))), ProducerClosed(2, "u", "t")),
    (reply(27, encoded((1, 5))), Other()),
    (reply(31, encoded((1, 5), (2, 1))), Other()),
    (reply(99, b"what is newer"), Other()),
]


@pytest.mark.parametrize(("data", "expected"), HEARD)
def test_what_brokers_say(data: bytes, expected: Reply) -> None:
    assert decode_reply(data) == expected


@pytest.mark.parametrize("data", [data for data, _ in HEARD])
def test_what_is_cut_off_is_accepted_or_corrupt(data: bytes) -> None:
    for end in range(len(data)):
        try:
            decode_reply(data[:end])
        except CorruptError:
            continue


@given(st.binary(max_size=80))
def test_garbage_is_accepted_or_corrupt(data: bytes) -> None:
    for kind in (3, 7, 8, 14, 15, 16, 17, 24, 30, 35, 68):
        for one in (data, reply(kind, data)):
            try:
                decode_reply(one)
            except CorruptError:
                continue


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_numbers(value: int) -> None:
    data = encoded((1, value))
    assert data == b"\x08" + varint(value)
    assert signed(Fields(data, "a message").number(1)) == value


def test_commands_have_the_numbers_of_their_fields() -> None:
    assert {int(one) for one in Command} >= {2, 3, 4, 9, 11, 13, 14, 16, 23, 24, 29, 30}


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
