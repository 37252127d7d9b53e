"""How many ledgers a token may hold: more than a topic has, and not what a few bytes blow up to."""

from __future__ import annotations

import base64
import json
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
