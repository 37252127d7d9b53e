"""Fields added inside structs: old files stay readable, hot rows match at once, nothing is lost."""

from typing import Any

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import avro_schema, publish
from tests.support.fixtures import Offload


def _schema(*more: dict[str, Any]) -> Any:
    inner = [{"name": "a", "type": "long"}, *more]

    def record(name: str) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": inner}

    return avro_schema(
        {
            "type": "record",
            "name": "Outer",
            "fields": [
                {"name": "one", "type": ["null", record("One")], "default": None},
                {"name": "many", "type": {"type": "array", "items": record("Many")}},
                {"name": "named", "type": {"type": "map", "values": record("Named")}},
            ],
        }
    )


ADDED = {"name": "b", "type": ["null", "string"], "default": None}


def test_members_added_later(
    cluster: Cluster, admin: Admin, lake: PulsarLake, offload: Offload, lake_namespace: str
) -> None:
    topic = admin.create_topic(f"{lake_namespace}/growing")
    old = {"one": {"a": 1}, "many": [{"a": 2}, {"a": 3}], "named": {"k": {"a": 4}}}
    new = {
        "one": {"a": 5, "b": "x"},
        "many": [{"a": 6, "b": None}, {"a": 7, "b": "y"}],
        "named": {"k": {"a": 8, "b": "z"}},
    }
    nothing: dict[str, Any] = {"one": None, "many": [], "named": {}}

    def rows() -> list[dict[str, Any]]:
        frame = lake.table(topic).orderBy("__ledgerId", "__entryId")
        assert frame.where("__error IS NOT NULL OR __rescued IS NOT NULL").count() == 0
        return [
            row.asDict(recursive=True) for row in frame.select("one", "many", "named").collect()
        ]

    publish(cluster.service_url, topic, [old, nothing], schema=_schema())
    admin.seal(topic)
    offload(topic)
    assert rows() == [old, nothing]
    publish(cluster.service_url, topic, [new, nothing], schema=_schema(ADDED))
    both = [
        {
            "one": {"a": 1, "b": None},
            "many": [{"a": 2, "b": None}, {"a": 3, "b": None}],
            "named": {"k": {"a": 4, "b": None}},
        },
        nothing,
        new,
        nothing,
    ]
    assert rows() == both  # the old from files that lack the member, the new hot
    plain = lake.table(topic, tiers="parquet")
    assert plain.count() == 2
    admin.seal(topic)
    offload(topic)
    assert rows() == both
    assert lake.table(topic, tiers="parquet").where("one.b = 'x'").count() == 1
    source = lake.spark.read.format("pulsar").option("topic", topic)
    found = source.load().orderBy("__ledgerId", "__entryId").select("one", "many", "named")
    assert [row.asDict(recursive=True) for row in found.collect()] == both
