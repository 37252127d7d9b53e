"""What the demo relies on: its oracle sees every kind of difference."""

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from demo import queries
from demo.flights import COLUMNS, load_flights, messages, records
from demo.live import LiveProducer
from demo.view import changes_by_key, wrong_changes
from testbed.publish import Message


@pytest.fixture(scope="module")
def flights() -> Any:
    return load_flights()


def test_all_flights_in_order_of_departure(flights: Any) -> None:
    assert len(flights) == 336_776
    assert flights["departure"].is_monotonic_increasing
    assert flights["month"].is_monotonic_increasing
    assert not flights.duplicated().any()


def test_records_have_null_where_the_source_has_a_gap(flights: Any) -> None:
    cancelled = flights[flights["dep_time"].isna()].head(1)
    [record] = records(cancelled)
    assert tuple(record) == COLUMNS
    assert record["dep_delay"] is None
    assert isinstance(record["distance"], int)
    [message] = messages(flights.head(1))
    # 05:15 in New York on 1 January is 10:15 UTC.
    assert message.event_time == 1_357_035_300_000
    assert message.key == message.value["tailnum"] == "N14228"
    assert type(message.value["dep_delay"]) is int


def test_nothing_is_different_from_itself(flights: Any) -> None:
    truth = queries.expected(flights)
    rows = [
        SimpleNamespace(carrier=carrier, month=month, flights=count, delay=delay)
        for (carrier, month), (count, delay) in truth.items()
    ]
    assert queries.differences(queries.found(rows), truth) == ""
    assert sum(count for count, _ in truth.values()) == 336_776


@pytest.mark.parametrize(
    "ours",
    [
        {("AA", 1): (9, 2.5)},
        {("AA", 1): (10, 2.5 + 1e-7)},
        {("AA", 1): (10, None)},
        {},
        {("AA", 1): (10, 2.5), ("AA", 2): (1, 0.0)},
    ],
    ids=["count", "mean", "null", "missing", "too many"],
)
def test_each_difference_from_pandas_is_seen(ours: queries.Answer) -> None:
    assert queries.differences(ours, {("AA", 1): (10, 2.5)})


def test_means_may_differ_in_the_last_digits() -> None:
    assert queries.differences({("AA", 1): (3, 0.1 + 0.2)}, {("AA", 1): (3, 0.3)}) == ""


def test_what_does_not_change_in_december() -> None:
    answer = {("AA", 11): (10, 2.5), ("AA", 12): (3, None), ("UA", 1): (1, 0.0)}
    assert queries.total(answer) == 14
    assert queries.until_november(answer) == {("AA", 11): (10, 2.5), ("UA", 1): (1, 0.0)}


_VIEW = {("AA", 12): (10, 2.5), ("UA", 1): (1, None)}
_MESSAGES = [
    ("AA 12", b'{"carrier":"AA","month":12,"flights":4,"delay":1.5}'),
    ("UA 1", b'{"carrier":"UA","month":1,"flights":1}'),
    ("AA 12", b'{"carrier":"AA","month":12,"flights":10,"delay":2.5}'),
]


def test_changes_of_a_view_by_key() -> None:
    changes = changes_by_key(_MESSAGES)
    assert changes == {("AA", 12): [(4, 1.5), (10, 2.5)], ("UA", 1): [(1, None)]}
    assert wrong_changes(changes, _VIEW, 3) == ""


@pytest.mark.parametrize(
    ("messages", "updated"),
    [
        (_MESSAGES[1:], 3),
        (_MESSAGES[:2], 2),
        ([_MESSAGES[0], *_MESSAGES], 4),
        ([_MESSAGES[2], _MESSAGES[1], _MESSAGES[0], _MESSAGES[2]], 4),
        ([_MESSAGES[0], _MESSAGES[2]], 2),
        ([*_MESSAGES, ("UA 2", _MESSAGES[1][1])], 4),
    ],
    ids=["lost", "last lost", "twice", "out of order", "key missing", "another key"],
)
def test_each_wrong_change_of_a_view_is_seen(
    messages: list[tuple[str, bytes]], updated: int
) -> None:
    assert wrong_changes(changes_by_key(messages), _VIEW, updated)


def _as_spark_gives_it(frame: Any) -> pa.Table:
    columns = {
        name: pa.array(frame[name], from_pandas=True) for name in COLUMNS if name != "time_hour"
    }
    times = pa.array(frame["time_hour"] * 1000, pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.table(columns | {"time_hour": times})


def test_field_differences(flights: Any) -> None:
    some = flights.tail(5000)
    table = _as_spark_gives_it(some).sort_by([("distance", "ascending")])
    assert queries.field_differences(table, some) == ""
    assert queries.field_differences(table.slice(1), some) == "4999 rows, not 5000"
    for name, wrong in [("dep_delay", 77.0), ("tailnum", None), ("distance", 1), ("year", 2014)]:
        values = table[name].to_pylist()
        values[0] = wrong if values[0] != wrong else 0
        position = table.schema.get_field_index(name)
        changed = table.set_column(position, name, pa.array(values, table.schema.field(name).type))
        assert queries.field_differences(changed, some).startswith(name)


def test_timestamps_are_exact() -> None:
    assert queries.timestamp(1_795_246_757_638) == "TIMESTAMP '2026-11-21 07:39:17.638'"
    assert queries.moment(1_795_246_757_638).microsecond == 638_000


def test_the_live_producer_hurries_when_asked() -> None:
    sent: list[Message] = []
    begun = threading.Event()

    def send(stream: Iterator[Message]) -> None:
        for message in stream:
            sent.append(message)
            begun.set()

    stream = iter([Message(number) for number in range(1000)])
    with LiveProducer(stream, 1000, send, seconds=60) as live:
        assert begun.wait(60)
        assert live.running
        assert len(sent) < 1000
        assert live.finish() == 1000
    assert [one.value for one in sent] == list(range(1000))


def test_the_live_producer_raises_what_went_wrong() -> None:
    def send(stream: Iterator[Message]) -> None:
        next(stream)
        raise ValueError("no broker")

    with LiveProducer(iter([Message(1)]), 1, send, seconds=0.1) as live, pytest.raises(ValueError):
        live.finish()


def test_the_live_producer_stops_with_its_block() -> None:
    sent: list[Message] = []
    stream = iter([Message(number) for number in range(1000)])
    with LiveProducer(stream, 1000, sent.extend, seconds=60) as live:
        pass
    assert not live.running
    assert len(sent) < 1000
