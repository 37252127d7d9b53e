"""Batch reads by the v2 protocol: any bytes are decoded or refused."""

from contextlib import suppress

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.bookkeeper.v2 import HEADER_BYTES, decode_batch_header, split_entries
from reader.errors import CorruptError


@given(st.binary(max_size=120), st.integers(0, 5))
@settings(deadline=None)  # the first compiles
def test_any_content_is_split_or_refused(content: bytes, most: int) -> None:
    data = np.frombuffer(content, np.uint8)
    try:
        offsets, lengths = split_entries(data, most)
    except CorruptError:
        return
    found = [content[at : at + size] for at, size in zip(offsets, lengths, strict=True)]
    assert b"".join(len(one).to_bytes(4, "big") + one for one in found) == content


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_any_header_is_read_or_refused(opening: bytes) -> None:
    with suppress(CorruptError):
        assert 0 <= decode_batch_header(opening, 1 << 20).size <= 1 << 20
