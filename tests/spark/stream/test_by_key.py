"""``by_key`` gives what a Key_Shared subscription gives."""

import random
from collections import defaultdict
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import spark_partition_id

from spark_ext import PulsarLake, by_key
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message, json_schema, publish
from tests.spark.conftest import ORDER, order
from tests.spark.stream.runs import reader, run

COUNT, KEYS, TASKS = 600, 40, 7


def test_each_key_in_one_task_and_in_order(
    lake: PulsarLake, cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path
) -> None:
    topic = admin.create_topic(f"{namespace}/keyed", partitions=2)
    chance = random.Random(7)
    keys = [f"k{chance.randrange(KEYS)}" for _ in range(COUNT)]
    # The ordering key, where there is one, is what counts: it joins some of the keys.
    ordering = {f"k{n}": f"o{n % 5}" for n in range(10)}
    messages = (
        Message(order(number), key=key, ordering_key=ordering.get(key))
        for number, key in enumerate(keys)
    )
    publish(cluster.service_url, topic, messages, schema=json_schema(ORDER))
    found: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    tasks: set[int] = set()

    def collected(frame: DataFrame) -> list[Row]:
        return by_key(frame, TASKS).withColumn("task", spark_partition_id()).collect()

    stream = reader(lake, maxMessagesPerTrigger=150).table(f"pulsar.`{namespace}`.keyed")
    for batch in run(stream, tmp_path, collect=collected):
        task_of: dict[bytes, int] = {}
        for row in batch:
            key = bytes(row["__orderingKey"] or row["__key"].encode())
            assert task_of.setdefault(key, row.task) == row.task
            found[key].append((row["__partition"], row.id))
            tasks.add(row.task)
    assert tasks == set(range(TASKS))
    assert sum(map(len, found.values())) == COUNT
    assert len(found) == len({ordering.get(key, key) for key in keys})
    for rows in found.values():
        for partition in {at for at, _ in rows}:
            numbers = [number for at, number in rows if at == partition]
            assert numbers == sorted(numbers)


def test_what_it_cannot_do_is_told(lake: PulsarLake) -> None:
    with pytest.raises(ValueError, match="foreachBatch"):
        by_key(lake.spark.readStream.format("rate").load(), 2)
    with pytest.raises(ValueError, match="needs the columns __key, __orderingKey, __topic"):
        by_key(lake.spark.range(3), 2)
