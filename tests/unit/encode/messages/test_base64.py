"""Keys that are bytes, as base64: against Python's own."""

import base64

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.encode import base64_text
from reader.kernels.byte_spans import ByteSpans
from tests.support.examples import examples

BYTES = st.lists(st.none() | st.binary(max_size=40), max_size=20)


def encoded(strings: list[bytes | None], skip: int = 0) -> list[bytes | None]:
    array = pa.array(strings, pa.large_binary()).slice(skip)
    found = base64_text(ByteSpans.of(array))
    assert (found.starts <= found.ends).all()
    return [found[row] for row in range(len(found))]


def test_all_lengths_and_all_bytes() -> None:
    strings: list[bytes | None] = [bytes(range(256))[:size] for size in range(257)]
    assert encoded(strings) == [base64.b64encode(one or b"") for one in strings]


def test_none_and_nothing() -> None:
    assert encoded([]) == []
    assert encoded([None, b"", None]) == [None, b"", None]


@settings(max_examples=examples(200), deadline=None)
@given(BYTES, st.integers(0, 3))
def test_any_bytes(strings: list[bytes | None], skip: int) -> None:
    wanted = [None if one is None else base64.b64encode(one) for one in strings[skip:]]
    assert encoded(strings, skip) == wanted
