"""What the broker's client gives becomes what the entry decoder makes of the same entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from reader.decode import MAX_PROPERTIES, EntryDecoder
from reader.model.columns import BROKER_LOSSY, METADATA_NAMES
from reader.sources.broker.broker_messages import Found, messages_of, publish_time
from tests.unit.decode.entries import PARTITION, block_of, entry, rows_of

COLUMNS = [name for name in METADATA_NAMES if name not in BROKER_LOSSY][1:-2]


@dataclass
class Message:
    """As pulsar-client gives it: times are unsigned."""

    published: int = 1_700_000_000_123
    event: int = 0
    payload: bytes = b"x"
    broken: list[str] = field(default_factory=list)
    pairs: dict[str, str] = field(default_factory=dict)

    def _text(self, name: str, value: Any) -> Any:
        if name in self.broken:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, name)
        return value

    def partition_key(self) -> Any:
        return self._text("key", "")

    def ordering_key(self) -> Any:
        return self._text("ordering", "")

    def properties(self) -> Any:
        return self._text("properties", dict(self.pairs))

    def producer_name(self) -> Any:
        return self._text("producer", "p-1")

    def publish_timestamp(self) -> int:
        return self.published % (1 << 64)

    def event_timestamp(self) -> int:
        return self.event % (1 << 64)

    def schema_version(self) -> str:
        return ""

    def has_null_value(self) -> bool:
        return False

    def data(self) -> bytes:
        return self.payload


TIMES = [1, -1, 0, 1_760_000_000_000_000_000, 2**63 - 1, -(2**63), 2**63 // 1000, -(2**63) // 1000]


@pytest.mark.parametrize("event", TIMES)
@pytest.mark.parametrize("published", TIMES)
def test_times_of_any_size_are_the_same_from_broker_and_bookies(event: int, published: int) -> None:
    raw = entry(b"x", publish_time=published, event_time=event)
    (decoded,) = EntryDecoder(PARTITION, columns=COLUMNS).decode(block_of([raw]))
    message = Message(published, event)
    given = messages_of([Found.of(message, (42, 10, -1))], partition=PARTITION, wanted=COLUMNS)
    (expected,), (found,) = rows_of(decoded), rows_of(given)
    assert (found["rescued"] is None) == (expected["rescued"] is None)
    if expected["rescued"]:
        assert found["rescued"] == (b"x", expected["rescued"][1])
    assert found | {"rescued": None} == expected | {"rescued": None}
    assert publish_time(message) == expected["__publishTime"]


@pytest.mark.parametrize("more", [0, 1])
def test_more_properties_than_are_shown(more: int) -> None:
    pairs = {f"{n:x}": "v" for n in range(MAX_PROPERTIES + more)}
    raw = entry(b"x", properties=list(pairs.items()))
    (decoded,) = EntryDecoder(PARTITION, columns=COLUMNS).decode(block_of([raw]))
    message = Message(pairs=pairs)
    given = messages_of([Found.of(message, (42, 10, -1))], partition=PARTITION, wanted=COLUMNS)
    name = "__messageProperties"
    assert given.columns[name].to_pylist() == decoded.columns[name].to_pylist()
    reasons = [[why for _, why in one.rescued.values()] for one in (given, decoded)]
    assert reasons == [[f"more than {MAX_PROPERTIES} properties"][:more]] * 2


@pytest.mark.parametrize("rescue", [True, False])
def test_what_is_rescued_does_not_depend_on_the_columns(rescue: bool) -> None:
    broken = ["key", "properties", "producer", "ordering"]
    broken_one = Message(2**63 - 1, 2**62, broken=broken)
    batch = [Found.of(Message(), (1, 0, 0)), Found.of(broken_one, (1, 0, 1))]
    texts = [
        "publish time out of range",
        "event time out of range",
        "producer name is not UTF-8",
        "key is not UTF-8",
        "a property is not UTF-8",
    ]
    found = messages_of(batch, partition=PARTITION, wanted=(), rescue=rescue)
    assert found.rescued == ({1: (b"x", "; ".join(texts))} if rescue else {})


def test_an_ordering_key_that_only_the_client_cannot_give() -> None:
    """In BookKeeper it is bytes, and so no reason to rescue a message of which it is not asked."""
    batch = [Found.of(Message(broken=["ordering"]), (1, 0, -1))]
    assert messages_of(batch, partition=PARTITION, wanted=("__key",)).rescued == {}
    found = messages_of(batch, partition=PARTITION, wanted=("__orderingKey",))
    assert found.rescued == {0: (b"x", "ordering key is not UTF-8")}
