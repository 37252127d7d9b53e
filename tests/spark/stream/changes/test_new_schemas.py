"""Schemas that change while a stream runs: what is new stops it once, and nothing is lost."""

from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.admin import Admin
from tests.spark.stream.conftest import Make
from tests.spark.stream.runs import ids, reader, run, running


def _record(name: str, **fields: object) -> dict[str, Any]:
    """An Avro schema; all fields but ``id`` may be null."""
    members = [
        {"name": one, "type": kind if one == "id" else ["null", kind], "default": None}
        for one, kind in fields.items()
    ]
    for one in members:
        if one["name"] == "id":
            del one["default"]
    return {"type": "record", "name": name, "fields": members}


def _place(**more: object) -> dict[str, Any]:
    return _record("Place", id="long", town="string", **more)


def _orders(place: Mapping[str, Any], **more: object) -> dict[str, Any]:
    stops = {"type": "array", "items": {**place, "name": "Stop"}}
    shops = {"type": "map", "values": {**place, "name": "Shop"}}
    return _record("Order", id="long", place=place, stops=stops, shops=shops, **more)


def _values(first: int, stop: int, place: Mapping[str, object]) -> list[dict[str, object]]:
    at = {"id": 1, "town": "Ulm", **place}
    return [
        {"id": number, "place": at, "stops": [at, at], "shops": {"a": at}}
        for number in range(first, stop)
    ]


@pytest.mark.parametrize("where", ["hot", "cold"])
def test_members_that_are_added(
    where: str,
    lake: PulsarLake,
    admin: Admin,
    make: Make,
    offload: Callable[[str], None],
    tmp_path: Path,
) -> None:
    topic = make(1)
    old, new = _orders(_place()), _orders(_place(zip="string"))
    topic.send_as(old, _values(0, 20, {}))
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(20))
        if where == "hot":
            topic.send_as(new, _values(20, 40, {"zip": "89073"}))
            told = stream.failure()
            assert "has got the columns place.zip, stops.zip, shops.zip since" in told
            assert "restart the query" in told
    if where == "cold":
        frame = reader(lake).table(topic.table)
        topic.send_as(new, _values(20, 40, {"zip": "89073"}))
        admin.seal(topic.name)
        offload(topic.name)
        topic.send_as(new, _values(40, 41, {"zip": "89073"}))
        topic.trim()
        with running(frame, tmp_path) as stream:
            assert "place.zip" in stream.failure()
            assert stream.ids == []
    batches = run(reader(lake).table(topic.table), tmp_path)  # the one that failed is one of them
    assert ids(batches) == list(range(20, 40 if where == "hot" else 41))
    for row in chain.from_iterable(batches):
        members = [row.place, *row.stops, row.shops["a"]]
        assert {one.zip for one in members} == {"89073"}
        assert {one.town for one in members} == {"Ulm"}


def test_a_column_that_is_added_and_one_that_is_removed(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    topic = make(1)
    topic.send(0, 20, note="old")
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(20))
        topic.send(20, 20)
        stream.wait_for(range(40))
        assert {row.note for rows in stream.batches for row in rows if row.id >= 20} == {None}
        topic.send(40, 20, note="new", more="x")
        told = stream.failure()
        assert "has got the columns more since the stream was started" in told
        assert stream.ids == list(range(40))
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(40, 60))
        topic.send(60, 20)
        stream.wait_for(range(40, 80))
        assert {row.more for row in stream.batches[0]} == {"x"}


def test_a_type_that_is_changed(lake: PulsarLake, admin: Admin, make: Make, tmp_path: Path) -> None:
    """The column stays as it is, and what does not fit it is rescued."""
    topic = make(1)
    admin.set_schema_compatibility(topic.namespace, "ALWAYS_COMPATIBLE")
    topic.send_as(_record("O", id="long", size="long"), [{"id": 0, "size": 5}])
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for([0])
        topic.send_as(_record("O", id="long", size="string"), [{"id": 1, "size": "big"}])
        stream.wait_for([0, 1])
        [row] = stream.batches[-1]
        assert row.size is None
        assert b"big" in bytes(row["__rescued"])
        assert row["__error"]


@pytest.mark.long
def test_a_topic_of_a_pattern_that_does_not_fit(
    lake: PulsarLake, make: Make, tmp_path: Path
) -> None:
    first = make(1)
    first.send(0, 20)

    def pattern() -> DataFrame:
        options = {"topicsPattern": f"{first.namespace}/orders.*"}
        found: DataFrame = reader(lake, **options).format("pulsar").load()
        return found

    with running(pattern(), tmp_path) as stream:
        stream.wait_for(range(20))
        second = make(1)
        second.send_as(_record("O", id="string", amount="double"), [{"id": "a", "amount": 1.0}])
        told = stream.failure()
        assert (
            f"topic {second.short} cannot be in one stream with the others: its column id" in told
        )
        first.send(20, 20)
    with pytest.raises(Exception, match="cannot be one stream: column id is"):
        pattern()
