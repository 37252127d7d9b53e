"""Reads of entries by the v3 protocol: golden bytes, and what a slow decoder would say."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.bookkeeper import prewarm
from reader.bookkeeper.v3 import MAX_FRAME, answer_table, encode_reads, first_size, split_answers
from reader.errors import CorruptError
from reader.wire import fields
from tests.support.examples import examples
from tests.unit.bookkeeper.fake_bookie import answer, varint

Answer = tuple[int, int, bytes | None]


def split(data: bytes) -> tuple[list[Answer], int]:
    buffer = np.frombuffer(data, np.uint8)
    table, used = split_answers(buffer, len(data), answer_table(len(data)))
    found = [
        (request, status, data[at : at + size] if size >= 0 else None)
        for request, status, at, size in table.T.tolist()
    ]
    return found, used


def slow_split(data: bytes) -> tuple[list[Answer], int]:
    found, at = [], 0
    while len(data) - at >= 4:
        if first_size_of(data[at:]) - 4 > MAX_FRAME:
            raise CorruptError("too long")
        if len(data) - at < first_size_of(data[at:]):
            break
        end = at + first_size_of(data[at:])
        found.append(slow_decode(data[at + 4 : end]))
        at = end
    return found, at


def first_size_of(data: bytes) -> int:
    return first_size(np.frombuffer(data, np.uint8), len(data))


def slow_decode(frame: bytes) -> Answer:
    """Field by field, with the codec of the handshake."""
    request, status, body = -1, -1, None
    for number, value in fields(frame, "an answer"):
        if number == 2 and isinstance(value, int):
            status = value
        for inner, found in inside(number, value):
            if number == 1 and inner == 3 and isinstance(found, int):
                request = found
            elif number == 100 and inner == 1 and isinstance(found, int):
                status = found
            elif number == 100 and inner == 4 and isinstance(found, bytes):
                body = found
    if not 0 <= request < 1 << 63 or not 0 <= status < 1 << 63:
        raise CorruptError("no header")
    return request, status, body


def inside(number: int, value: int | bytes) -> Iterator[tuple[int, int | bytes]]:
    if number in (1, 100) and isinstance(value, bytes):
        yield from fields(value, "an answer")


def test_golden_frames() -> None:
    frames = encode_reads(2, np.array([300, 1]), np.array([1, 1 << 35]))
    assert frames.tobytes().hex() == (
        "00000010" + "0a06080310011801" + "a20605080210ac02"
        "00000014" + "0a0b0803100118808080808001" + "a2060408021001"
    )
    response = answer(5, 0, 2, 300, b"body")
    assert split(response + b"\x00") == ([(5, 0, b"body")], len(response))
    assert split(response + answer(1 << 50, 402, 2, 1)) == (
        [(5, 0, b"body"), (1 << 50, 402, None)],
        len(response) + len(answer(1 << 50, 402, 2, 1)),
    )


@pytest.mark.parametrize("size", range(1, 40))
def test_cut_responses_are_one_error_or_incomplete(size: int) -> None:
    whole = answer(5, 0, 2, 300, b"body")[4:]
    frame = whole[: min(size, len(whole) - 1)]
    both(len(frame).to_bytes(4, "big") + frame)


@pytest.mark.parametrize("size", [512 << 20 | 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_frames_that_are_too_long_are_refused(size: int) -> None:
    with pytest.raises(CorruptError, match="too long"):
        split(size.to_bytes(4, "big") + b"x")


def both(data: bytes) -> tuple[list[Answer], int] | None:
    """What both decoders say; None where both refuse."""
    try:
        expected = slow_split(data)
    except CorruptError:
        with pytest.raises(CorruptError):
            split(data)
        return None
    assert split(data) == expected
    return expected


_NUMBERS = st.integers(0, (1 << 63) - 1)
_ANSWERS = st.builds(
    answer, _NUMBERS, st.sampled_from([0, 402, 403, 502]), _NUMBERS, _NUMBERS,
    st.none() | st.binary(max_size=300),
)  # fmt: skip


@given(st.lists(_ANSWERS, max_size=5), st.integers(0, 400))
@settings(max_examples=examples(200), deadline=None)  # the first compiles
def test_answers_are_taken_apart(answers: list[bytes], cut: int) -> None:
    data = b"".join(answers)
    assert both(data[: max(0, len(data) - cut)]) is not None


@given(st.lists(_ANSWERS, min_size=1, max_size=3), st.data())
@settings(max_examples=examples(300), deadline=None)
def test_garbled_answers_are_read_as_the_slow_way_or_refused(
    answers: list[bytes], data: st.DataObject
) -> None:
    garbled = bytearray(b"".join(answers))
    for _ in range(data.draw(st.integers(1, 3))):
        garbled[data.draw(st.integers(4, len(garbled) - 1))] = data.draw(st.integers(0, 255))
    both(bytes(garbled))


@given(st.binary(max_size=60))
@settings(max_examples=examples(300), deadline=None)
def test_garbage_is_read_as_the_slow_way_or_refused(frame: bytes) -> None:
    both(len(frame).to_bytes(4, "big") + frame)


@given(_NUMBERS, st.lists(st.tuples(_NUMBERS, _NUMBERS), min_size=1, max_size=5))
@settings(max_examples=examples(100), deadline=None)
def test_requests_are_as_protobuf_writes_them(ledger: int, wanted: list[tuple[int, int]]) -> None:
    expected = b""
    for entry, request in wanted:
        header = b"\x08\x03\x10\x01\x18" + varint(request)
        read = b"\x08" + varint(ledger) + b"\x10" + varint(entry)
        frame = b"\x0a" + varint(len(header)) + header + b"\xa2\x06" + varint(len(read)) + read
        expected += len(frame).to_bytes(4, "big") + frame
    columns: npt.NDArray[np.int64] = np.array(wanted, np.int64).T.copy()
    assert encode_reads(ledger, columns[0], columns[1]).tobytes() == expected


def test_kernels_are_compiled_by_an_answer_that_is_taken() -> None:
    prewarm()
