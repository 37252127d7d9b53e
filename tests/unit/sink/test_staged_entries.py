"""Staged entries as bytes, and garbage."""

import struct
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.encode import EncodedEntry
from reader.errors import CorruptError
from reader.sink.staged_entries import read_entries, staged_entry
from tests.support.examples import examples
from tests.unit.encode.messages.encoding import Row, encode

U32 = st.integers(0, (1 << 32) - 1)
ENTRIES = st.lists(
    st.builds(EncodedEntry, U32, st.binary(max_size=50), st.binary(max_size=50), U32), max_size=8
)


def staged(entries: list[EncodedEntry]) -> bytes:
    return b"".join(piece for one in entries for piece in staged_entry(one))


def read(data: bytes) -> list[EncodedEntry]:
    found = list(read_entries(memoryview(data)))
    return [replace(one, payload=bytes(one.payload)) for one in found]


def test_the_layout_of_an_entry() -> None:
    """docs/formats.md"""
    entry = EncodedEntry(3, b"meta", b"payload", chunk=2)
    assert staged([entry]) == struct.pack("<IIIIII", 3, 2, 0, 0, 4, 7) + b"meta" + b"payload"
    [batch] = encode([Row(b"x" * 100)] * 3)
    data = staged([batch])
    messages, chunk, codec, size, metadata, payload = struct.unpack_from("<IIIIII", data)
    assert (messages, chunk, codec, size) == (3, 0, 2, len(batch.payload))
    assert data[24 : 24 + metadata] == batch.metadata
    block = data[24 + metadata :]
    assert pa.Codec("lz4_raw").decompress(block, size, asbytes=True) == batch.payload
    assert len(data) == 24 + metadata + payload
    assert read(data) == [batch]


@given(ENTRIES)
def test_what_is_staged_is_what_is_read(entries: list[EncodedEntry]) -> None:
    assert read(staged(entries)) == entries


@given(ENTRIES, st.integers(0, 400))
def test_what_is_cut_off_is_accepted_or_corrupt(entries: list[EncodedEntry], size: int) -> None:
    data = staged(entries)
    try:
        found = read(data[:size])
    except CorruptError:
        return
    assert found == entries[: len(found)]


@settings(max_examples=examples(300))
@given(st.binary(max_size=120))
def test_garbage_is_accepted_or_corrupt(data: bytes) -> None:
    with suppress(CorruptError):
        found = read(data)
        if all(one.codec is None for one in found):  # other bytes may be the same block of LZ4
            assert staged(found) == data


@settings(max_examples=examples(300))
@given(st.binary(max_size=120), st.integers(0, 6), U32)
def test_garbage_as_a_batch_is_accepted_or_corrupt(block: bytes, codec: int, size: int) -> None:
    data = struct.pack("<IIIIII", 3, 0, codec, size, 0, len(block)) + block
    with suppress(CorruptError):
        for one in read(data):
            assert len(one.payload) == (size if codec else len(block))


@pytest.mark.parametrize(("messages", "chunk", "ids"), [(1, 0, 1), (7, 0, 7), (0, 1, 1), (1, 3, 1)])
def test_how_many_sequence_ids_an_entry_takes(messages: int, chunk: int, ids: int) -> None:
    assert EncodedEntry(messages, b"", b"", chunk).ids == ids
