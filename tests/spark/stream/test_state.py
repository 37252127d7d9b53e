"""State over both tiers gives what pandas gives of all that was sent, also where rows move."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, json_schema, publish, quiet_client
from tests.spark.conftest import ORDER
from tests.spark.stream.runs import reader
from tests.spark.stream.stateful import KNOWN, QUERIES, Sent, StatefulQuery
from tests.support.fixtures import Offload

DAY, BEGIN = 86_400, 1_000
FIRST, LATER = 200, 100
"""So many orders are offloaded (the rest of ``KNOWN`` is hot), and come once those have moved."""
PART = 20
"""So many are sent at a time: the other messages have other publish times."""
MOST = 90


@dataclass
class Shop:
    """Orders and payments, each in two partitions."""

    cluster: Cluster
    admin: Admin
    namespace: str
    sent: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {"orders": [], "payments": []}
    )

    def create(self) -> None:
        self.admin.create_namespace(self.namespace)
        for name in self.sent:
            self.admin.create_topic(f"{self.namespace}/{name}", partitions=2)

    def topic(self, name: str) -> str:
        return f"persistent://{self.namespace}/{name}"

    def table(self, name: str) -> str:
        return f"pulsar.`{self.namespace}`.{name}"

    def send(self, first: int, count: int, day: int) -> None:
        """Orders by number, some of them twice, and the payments of most."""
        begin = BEGIN + day * DAY
        numbers = range(first, first + count)
        orders = [(begin + n, n) for n in numbers] + [(begin + n + 9, n) for n in numbers[::10]]
        payments = [(begin + n + n % 27, n) for n in numbers if n % 3]
        self._publish("orders", sorted(orders))
        self._publish("payments", sorted(payments))

    def end(self, day: int) -> None:
        """One message alone, days later: all before are final."""
        for name in self.sent:
            self._publish(name, [(BEGIN + day * DAY, -day)])

    def _publish(self, name: str, messages: list[tuple[int, int]]) -> None:
        rows: list[dict[str, Any]] = [
            {"id": n, "customer": f"c{n % 7}", "amount": n * 0.5, "seconds": at}
            for at, n in messages
        ]
        self.sent[name] += rows
        with quiet_client(self.cluster.service_url) as client:
            for at in range(0, len(rows), PART):
                values = [
                    Message(
                        {name: row[name] for name in ("id", "customer", "amount")},
                        event_time=row["seconds"] * 1000,
                    )
                    for row in rows[at : at + PART]
                ]
                schema = json_schema(ORDER)
                publish(client, self.topic(name), values, schema=schema, batch=PART // 4)
                time.sleep(0.002)  # another publish time

    def each_topic(self, do: Callable[[str], Any]) -> None:
        for name in self.sent:
            do(self.topic(name))

    def trim(self, topic: str) -> None:
        """Delete all sealed ledgers, of which Pulsar keeps none from now on."""
        self.admin.set_retention(self.namespace, 0, 0)

        def is_trimmed() -> bool:
            self.admin.trim(topic)
            return all(len(self.admin.ledgers(one)) == 1 for one in self.admin.partitions(topic))

        wait_until("sealed ledgers are deleted", is_trimmed)

    def frames(self) -> Sent:
        return Sent(pd.DataFrame(self.sent["orders"]), pd.DataFrame(self.sent["payments"]))


@dataclass
class Sink:
    """What the batches of a query give, by number: one that is run again counts once."""

    lake: PulsarLake
    shop: Shop
    query: StatefulQuery
    checkpoint: Path
    options: dict[str, Any]
    batches: dict[int, list[Row]] = field(default_factory=dict)

    def run(self, fails_at: Iterable[int] = ()) -> list[dict[str, Any]]:
        """All that there is now; gives the query's progress. Ends with the error of a batch of
        ``fails_at``."""

        def write(frame: DataFrame, number: int) -> None:
            rows = frame.collect()
            if number in fails_at:
                raise RuntimeError("the sink is down")
            self.batches[number] = rows

        spark = self.lake.spark
        for name, value in self.query.confs:
            spark.conf.set(name, value)
        try:
            payments = spark.table(self.shop.table("payments"))
            streamed = self.query.build(spark, self._stream, payments)
            running = (
                streamed.writeStream.outputMode(self.query.mode)
                .option("checkpointLocation", str(self.checkpoint))
                .trigger(availableNow=True)
                .foreachBatch(write)
                .start()
            )
            try:
                assert running.awaitTermination(120)
                return list(running.recentProgress)
            finally:
                running.stop()
        finally:
            for name, _ in self.query.confs:
                spark.conf.unset(name)

    def _stream(self, name: str) -> DataFrame:
        found: DataFrame = reader(self.lake, **self.options).table(self.shop.table(name))
        return found

    def check(self, expected: Sent) -> None:
        rows = [row for number in sorted(self.batches) for row in self.batches[number]]
        wanted = sorted(self.query.expected(expected), key=str)
        assert len(wanted) > 5
        assert self.query.result(rows) == wanted


def dropped(progress: list[dict[str, Any]]) -> int:
    """Rows that came behind the watermark."""
    return sum(
        int(one["numRowsDroppedByWatermark"]) for each in progress for one in each["stateOperators"]
    )


@pytest.fixture(scope="module")
def shop(cluster: Cluster, admin: Admin, lake_namespace: str, offload: Offload) -> Shop:
    """The first orders in Parquet, the second hot."""
    made = Shop(cluster, admin, lake_namespace + "-shop")
    made.create()
    made.send(0, FIRST, 0)
    made.each_topic(admin.seal)
    made.each_topic(offload)
    made.send(FIRST, KNOWN - FIRST, 0)
    made.end(1)
    return made


@pytest.fixture(scope="module")
def interrupted(
    lake: PulsarLake,
    admin: Admin,
    offload: Offload,
    shop: Shop,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Sink]:
    """Every query, stopped in a batch of both tiers, whose rows have moved since."""
    found = {}
    for query in QUERIES:
        sink = Sink(lake, shop, query, tmp_path_factory.mktemp(query.name), {})
        sink.options = {"maxMessagesPerTrigger": MOST}
        with pytest.raises(StreamingQueryException, match="the sink is down"):
            sink.run(fails_at=[2])
        assert sorted(sink.batches) == [0, 1]
        found[query.name] = sink
    shop.each_topic(admin.seal)
    shop.each_topic(offload)
    shop.send(KNOWN, LATER, 2)
    shop.end(3)
    shop.each_topic(shop.trim)
    return found


by_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
# What one batch of everything may get wrong: windows that close, and sides that wait for another.
_WHOLE = ("windows-append", "left-join")


@pytest.mark.parametrize(
    "query", [one for one in QUERIES if one.name in _WHOLE], ids=lambda query: query.name
)
def test_both_tiers_in_one_batch(
    lake: PulsarLake, shop: Shop, query: StatefulQuery, tmp_path: Path
) -> None:
    sink = Sink(lake, shop, query, tmp_path, {})
    assert dropped(sink.run()) == 0
    sink.check(shop.frames())


@pytest.mark.timeout(600)  # the first one waits for all that is interrupted
@by_query
def test_rows_that_move_between_batches(
    interrupted: dict[str, Sink], shop: Shop, query: StatefulQuery
) -> None:
    sink = interrupted[query.name]
    assert dropped(sink.run()) == 0
    assert len(sink.batches) >= 6
    sink.check(shop.frames())


def test_a_watermark_drops_nothing_of_a_backfill(
    lake: PulsarLake, cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path
) -> None:
    """What one partition got before the other got anything comes before it."""
    topic = admin.create_topic(f"{namespace}/orders", partitions=2)
    count, schema = 120, json_schema(ORDER)
    with quiet_client(cluster.service_url) as client:
        for partition in (1, 0):
            for first in range(0, count, PART):
                values = [
                    {"id": partition * count + n, "customer": "c", "amount": 1.0}
                    for n in range(first, first + PART)
                ]
                publish(client, f"{topic}-partition-{partition}", values, schema=schema, batch=5)
                time.sleep(0.05)
    stream = reader(lake, maxMessagesPerTrigger=50).table(f"pulsar.`{namespace}`.orders")
    seen: list[int] = []
    query = (
        stream.withWatermark("__publishTime", "0 seconds")
        .dropDuplicatesWithinWatermark(["id"])
        .select("id")
        .writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .foreachBatch(lambda frame, _: seen.extend(row.id for row in frame.collect()))
        .start()
    )
    assert query.awaitTermination(120)
    assert sum(bool(one["numInputRows"]) for one in query.recentProgress) >= 5
    assert dropped(list(query.recentProgress)) == 0
    assert sorted(seen) == list(range(2 * count))
