"""How many ledgers a token may hold: more than a topic has, and not what a few bytes blow up to."""

import base64
import json
import tracemalloc
import zlib

import pyarrow as pa
import pytest

from reader.errors import ConfigurationError
from reader.model import Partition, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.snapshot import Snapshot
from reader.plan.snapshot_token import from_token, to_token, token_size
from tests.unit.plan.test_snapshot import FakeAdmin, content

TOPIC = Topic("public", "default", "orders")


def snapshot(count: int) -> Snapshot:
    """Of ledgers with long ids and ends."""
    part, why = Partition(TOPIC, -1), TierReason(Reason.SEALED)
    hot = tuple(
        Segment(part, 999_999 * n, "sealed", Tier.BOOKKEEPER, why, 499_999, 500_000, 0)
        for n in range(1, count + 1)
    )
    return Snapshot(TOPIC, "", None, pa.schema([]), pa.schema([]), (), hot)


def test_a_hundred_thousand_ledgers_are_read_again() -> None:
    made = snapshot(100_000)
    token = to_token(made)
    assert token_size(token) < 4 << 20
    again = from_token(FakeAdmin(), TOPIC, token).hot
    assert [(one.ledger_id, one.last_entry) for one in again] == [
        (one.ledger_id, one.last_entry) for one in made.hot
    ]


def test_a_short_token_of_very_many_is_refused() -> None:
    value = content(to_token(snapshot(1)))
    plain = json.dumps(value | {"parts": {"-1": [[1, 0, 0, 0]] * 1_000_000}}).encode()
    token = base64.b64encode(zlib.compress(plain), b"_.").decode().rstrip("=")
    assert len(token) < 64 << 10
    with pytest.raises(ConfigurationError, match="token"):
        from_token(FakeAdmin(), TOPIC, token)


def compressed(block: bytes, times: int) -> bytes:
    """Return ``block``, repeated, as a zlib stream: its compressed form is repeated, too."""
    stream, checksum = zlib.compressobj(9), 1
    head, again = (stream.compress(block) + stream.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    for _ in range(times):
        checksum = zlib.adler32(block, checksum)
    return head + again * (times - 1) + b"\x03\x00" + checksum.to_bytes(4, "big")


@pytest.mark.parametrize("byte", [b"0", b"[", b'"', b" "])
def test_a_token_that_is_a_bomb_is_refused_by_its_size(byte: bytes) -> None:
    block = byte * (1 << 20)
    assert zlib.decompress(compressed(block, 3)) == block * 3
    bomb = compressed(block, 256)
    token = base64.b64encode(bomb, b"_.").decode().rstrip("=")
    tracemalloc.start()
    try:
        with pytest.raises(ConfigurationError, match="token"):
            from_token(FakeAdmin(), TOPIC, token)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
