"""A version number means a definition within one life of the registry only."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo, StoredTimes
from reader.payload import PayloadDecoder, payload_fields, remember
from tests.unit.payload.cases import Given, avro_bytes, rows, versions
from tests.unit.payload.test_evolution import record

AB, BA = record({"a": "long", "b": "long"}), record({"b": "long", "a": "long"})
A, C = record({"a": "long"}), record({"a": "long", "c": "long"})
NO_TIME = -(2**63)


def registered(given: Given, at: int, version: int = 0) -> SchemaInfo:
    (info,) = versions(given)
    return SchemaInfo(version, info.type, info.definition, info.properties, timestamp=at)


def stored(
    *published: int, stamped: int | None = None, replicated: bool = False, created: int = 0
) -> StoredTimes:
    """Times of messages that were published at so many ms."""
    times = np.array(published, np.int64) * 1000
    stamps = np.full(len(times), NO_TIME if stamped is None else stamped * 1000)
    ledgers, entries = np.ones(len(times), np.int64), np.arange(len(times))
    return StoredTimes.of(
        stamps, times, np.full(len(times), replicated), ledgers, entries, no_time=NO_TIME
    ).not_before(created * 1000, {})


def read(
    schemas: tuple[SchemaInfo, ...], payload: bytes, times: StoredTimes | None, version: int = 0
) -> tuple[Any, str | None]:
    """The row of a message, and its problem."""
    made = PayloadDecoder(schemas, payload_fields(schemas))
    found = made.decode(
        ByteSpans.of(pa.array([payload], pa.large_binary())), np.array([version]), stored=times
    )
    return rows(found)[0], found.problems.get(0)


MESSAGE = avro_bytes(AB, {"a": 0, "b": 1000})
NOTHING = {"a": None, "b": None}
THEN, NOW = registered(("AVRO", AB), 100_000), registered(("AVRO", BA), 200_000)
REMEMBERED = remember((THEN,), (NOW,))
OLDER = (
    "schema version 0 was registered after the message was published (if the producer's clock was "
    "behind: pulsar.clock_difference)"
)
UNCERTAIN = (
    "schema version 0 was deleted and registered anew at about the time when the message was "
    "published: which definition it has is not certain"
)


@pytest.mark.parametrize(
    ("schemas", "times", "row", "problem"),
    [
        # Only the registry: what is older than its oldest definition is of an earlier life.
        ((NOW,), stored(150_000), {"b": None, "a": None}, OLDER),
        ((NOW,), stored(198_999, stamped=198_999), {"b": None, "a": None}, OLDER),
        ((NOW,), stored(199_100, stamped=199_100), {"b": 0, "a": 1000}, None),  # two brokers
        ((NOW,), stored(150_000, stamped=200_001), {"b": 0, "a": 1000}, None),
        ((NOW,), stored(199_500), {"b": 0, "a": 1000}, None),  # clocks may differ by a second
        ((NOW,), stored(150_000, replicated=True), {"b": 0, "a": 1000}, None),
        ((NOW,), stored(0, created=90_000), {"b": 0, "a": 1000}, None),  # a clock in 1970
        ((NOW,), None, {"b": 0, "a": 1000}, None),
        # A ledger that was opened after the deletion has messages of the newest life alone.
        (REMEMBERED, stored(0, created=210_000), {"a": 1000, "b": 0}, None),
        (REMEMBERED, stored(0, replicated=True, created=210_000), {"a": 1000, "b": 0}, None),
        (REMEMBERED, stored(0, replicated=True, created=190_000), NOTHING, UNCERTAIN),
        (REMEMBERED, stored(0, replicated=True, created=200_500), NOTHING, UNCERTAIN),
        # The clocks of producers may be far from the brokers'.
        ((NOW,), stored(150_000).within(51_000_000), {"b": 0, "a": 1000}, None),
        ((NOW,), stored(150_000).within(49_000_000), {"b": None, "a": None}, OLDER),
        ((NOW,), stored(0, replicated=True).within(51_000_000), {"b": 0, "a": 1000}, None),
        ((NOW,), stored(0, stamped=198_999).within(51_000_000), {"b": None, "a": None}, OLDER),
        (REMEMBERED, stored(150_000).within(51_000_000), NOTHING, UNCERTAIN),
        # The table remembers the earlier life.
        (REMEMBERED, stored(150_000), {"a": 0, "b": 1000}, None),
        (REMEMBERED, stored(250_000), {"a": 1000, "b": 0}, None),
        (REMEMBERED, stored(0, stamped=198_999), {"a": 0, "b": 1000}, None),
        (REMEMBERED, stored(0, stamped=199_700), NOTHING, UNCERTAIN),  # another broker's clock
        (REMEMBERED, stored(0, stamped=201_000), {"a": 1000, "b": 0}, None),
        (REMEMBERED, stored(199_500), NOTHING, UNCERTAIN),
        (REMEMBERED, stored(200_500), NOTHING, UNCERTAIN),
        (REMEMBERED, stored(150_000, replicated=True), NOTHING, UNCERTAIN),
        (REMEMBERED, stored(50_000), NOTHING, OLDER),
    ],
)  # fmt: skip
def test_a_schema_that_was_registered_anew(
    schemas: tuple[SchemaInfo, ...], times: StoredTimes | None, row: Any, problem: str | None
) -> None:
    assert read(schemas, MESSAGE, times) == (row, problem)


def test_the_same_schema_registered_anew() -> None:
    """Its content identifies it, so that it does not matter which life a message is of."""
    again = registered(("AVRO", AB), 200_000)
    both = remember((THEN,), (again,))
    assert [info.life for info in both] == [0, 1]
    for times in (stored(150_000), stored(199_500), stored(150_000, replicated=True)):
        assert read(both, MESSAGE, times) == ({"a": 0, "b": 1000}, None)


def test_a_version_within_a_life_is_not_held_to_its_own_time() -> None:
    """Numbers are given once in a life; a slow clock of a producer hides nothing."""
    schemas = (registered(("AVRO", A), 100_000), registered(("AVRO", C), 300_000, 1))
    payload = avro_bytes(C, {"a": 1, "c": 2})
    assert read(schemas, payload, stored(200_000), 1) == ({"a": 1, "c": 2}, None)


def test_a_schema_that_was_deleted_without_force() -> None:
    """Numbers go on: the table knows version 0, which the registry does not list."""
    after = (registered(("AVRO", C), 300_000, 2),)
    known = remember((registered(("AVRO", A), 100_000),), after)
    assert [(info.version, info.life) for info in known] == [(0, 0), (2, 0)]
    payload = avro_bytes(A, {"a": 1})
    for times in (stored(200_000), stored(400_000), None):
        assert read(known, payload, times) == ({"a": 1, "c": None}, None)
    for unknown in (stored(200_000), None):  # also of messages older than what is listed
        assert read(after, payload, unknown) == (
            {"a": None, "c": None},
            "schema version 0 is not in the registry",
        )
    assert remember(known, ()) == known


def test_many_lives_and_the_versions_of_each() -> None:
    first = remember((), (registered(("AVRO", A), 100_000), registered(("AVRO", C), 110_000, 1)))
    second = remember(first, (registered(("AVRO", C), 200_000),))
    newest = (registered(("AVRO", A), 300_000), registered(("AVRO", AB), 310_000, 1))
    third = remember(second, newest)
    assert remember(third, newest) == third
    payload = avro_bytes(C, {"a": 1, "c": 2})
    assert read(third, payload, stored(150_000), 1)[0] == {"a": 1, "c": 2, "b": None}
    assert read(third, payload, stored(250_000), 0)[0] == {"a": 1, "c": 2, "b": None}
    assert read(third, payload, stored(350_000), 1)[0] == {"a": 1, "c": None, "b": 2}
    assert read(third, payload, stored(250_000), 1)[1] == "schema version 1 is not in the registry"


def test_messages_of_two_lives_in_one_batch() -> None:
    payloads = [MESSAGE, avro_bytes(BA, {"b": 2000, "a": 100}), MESSAGE]
    made = PayloadDecoder(REMEMBERED, payload_fields(REMEMBERED))
    found = made.decode(
        ByteSpans.of(pa.array(payloads, pa.large_binary())),
        np.zeros(3, np.int64),
        stored=stored(150_000, 250_000, 160_000),
    )
    assert [(row["a"], row["b"]) for row in rows(found)] == [(0, 1000), (100, 2000), (0, 1000)]
    assert not found.problems


def test_a_later_version_does_not_move_the_begin_of_its_life() -> None:
    """The broker's clock was set back before it was registered."""
    later = registered(("AVRO", C), 50_000, version=1)
    known = remember(remember((THEN,), (NOW,)), (NOW, later))
    assert read(known, MESSAGE, stored(150_000, stamped=150_000)) == (
        {**NOTHING, "c": None, "a": 0, "b": 1000},
        None,
    )
