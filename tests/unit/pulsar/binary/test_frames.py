"""Frames, however they are cut, and whatever comes instead of them."""

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.errors import CorruptError
from reader.pulsar.binary.commands import framed
from reader.pulsar.binary.frames import ENTRY, LEDGER, LENGTH, MESSAGES, OFFSET, FrameReader
from reader.wire import encoded
from reader.wire.pulsar_pb2 import CommandPing
from tests.unit.pulsar.binary.fake_broker import entry, message

CONSUMER = 5
Item = tuple[int, int, bytes, int] | bytes
PING = framed(CommandPing())[8:]


def items_of(reader: FrameReader, pieces: list[bytes]) -> list[Item]:
    """Entries (ledger, entry, bytes, messages) and commands, in their order."""
    found: list[Item] = []
    kept = []
    for piece in pieces:
        while piece:
            room = reader.room()
            count = min(len(room), len(piece))
            room[:count] = piece[:count]
            reader.received(count)
            piece = piece[count:]
            while True:
                while (rows := reader.messages()) is not None:
                    kept.append((len(found), rows))
                    found += [b""] * rows.values.shape[1]
                if (command := reader.command()) is None:
                    break
                found.append(command)
    # At the end: what was given out is never written to again.
    for at, rows in kept:
        for column, values in enumerate(rows.values.T):
            data = rows.arena[values[OFFSET] : values[OFFSET] + values[LENGTH]].tobytes()
            found[at + column] = (
                int(values[LEDGER]), int(values[ENTRY]), data, int(values[MESSAGES])
            )  # fmt: skip
    return found


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


def followed(arena: int = 64 << 10) -> FrameReader:
    reader = FrameReader(arena)
    reader.follow(CONSUMER, -1, -1)
    return reader


items_of(followed(), [message(CONSUMER, (1, 1), b"")])  # compiles, before a time counts


@given(
    st.lists(
        st.one_of(
            st.just("ping"), st.tuples(st.integers(0, 70_000), st.sampled_from([None, 1, 7, 300]))
        ),
        max_size=12,
    ),
    st.lists(st.integers(1, 40_000), max_size=20),
)
def test_frames_are_the_same_however_they_are_cut(
    sent: list[str | tuple[int, int | None]], sizes: list[int]
) -> None:
    stream = b""
    expected: list[Item] = []
    for number, one in enumerate(sent):
        if isinstance(one, str):
            stream += framed(CommandPing())
            expected.append(PING)
        else:
            data = entry(bytes([number]) * one[0], one[1])
            stream += message(CONSUMER, (3, number), data)
            expected.append((3, number, data, one[1] or 1))
    assert items_of(followed(), cut(stream, sizes)) == expected


BROKER_METADATA = b"\x0e\x02\x00\x00\x00\x02\x08\x01"
METADATA = encoded((1, "p"), (2, 1), (3, 1), (11, 9))


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (entry(b"x"), 1),
        (entry(b"x", 9), 9),
        (BROKER_METADATA + entry(b"x", 9), 9),
        (struct.pack(">I", len(METADATA)) + METADATA, 9),  # without a checksum
        (b"", 1),
        (b"\x0e", 1),
        (b"\x0e\x01", 1),
        (b"\x0e\x02\xff\xff\xff\xff", 1),
        (entry(b"", 0), 1),
        (entry(b"", -1), 1),
        (b"\x00\x00\x00\x02\x58\xff", 1),  # the count is cut off
        (b"\xff\xff\xff\xff", 1),
        (b"\x00\x00\x00\x01\x07", 1),
    ],
)
def test_how_many_messages_an_entry_counts_for(data: bytes, count: int) -> None:
    assert items_of(followed(), [message(CONSUMER, (1, 1), data)]) == [(1, 1, data, count)]


def test_fields_that_are_newer_than_we_are() -> None:
    position = encoded((1, 1), (2, 2), (3, 0), (4, 5), (5, 1), (5, 2), (9, "new"))
    body = encoded((9, "new"), (1, CONSUMER), (2, position), (3, 1), (4, 77), (5, 3), (70, 1))
    command = encoded((1, 9), (9, body))
    frame = struct.pack(">II", len(command) + 6, len(command)) + command + b"ab"
    assert items_of(followed(), [frame]) == [(1, 2, b"ab", 1)]


def test_only_what_follows_the_position_of_the_consumer_that_is_followed() -> None:
    reader = followed()
    reader.follow(CONSUMER, 3, 4)
    sent = [(CONSUMER, at) for at in ((2, 9), (3, 4), (3, 5), (3, 5), (3, 2), (4, 0))]
    sent += [(CONSUMER + 1, (4, 1)), (CONSUMER, (4, 2))]
    stream = b"".join(message(consumer, at, b"x") for consumer, at in sent)
    found = [item[:2] for item in items_of(reader, [stream])]
    assert found == [(3, 5), (4, 0), (4, 2)]


_VALID = message(CONSUMER, (3, 1), entry(b"payload", 3)) + framed(CommandPing())


@given(
    st.one_of(
        st.binary(max_size=300),
        st.tuples(
            st.integers(0, len(_VALID) - 1), st.binary(min_size=1, max_size=8)
        ).map(lambda change: _VALID[: change[0]] + change[1] + _VALID[change[0] + 1 :]),
    ),
    st.lists(st.integers(1, 60), max_size=6),
)  # fmt: skip
def test_garbage_is_accepted_or_one_error(data: bytes, sizes: list[int]) -> None:
    before = pa.total_allocated_bytes()
    reader = followed()
    try:
        for item in items_of(reader, cut(data, sizes)):
            assert isinstance(item, bytes) or len(item[2]) <= len(data)
    except CorruptError:
        pass
    assert pa.total_allocated_bytes() - before < 4 << 20


def test_a_large_frame_takes_as_much_as_has_come_of_it() -> None:
    reader = followed()
    size = 200 << 20
    reader.room()[:8] = struct.pack(">II", size, 20)
    reader.received(8)
    sent = 8
    while sent < 5 << 20:
        assert reader.messages() is None
        room = reader.room()
        assert len(room) <= max(2 * sent, 64 << 10)
        np.frombuffer(room, np.uint8)[:] = 0
        reader.received(len(room))
        sent += len(room)
    # Its command is not one that begins with zeros, which is known once it is whole alone.
    assert reader.messages() is None
    assert reader.command() is None
