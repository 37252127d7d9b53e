"""One streaming query over the flights, from January's in Parquet to what is being published."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from demo import queries
from demo.queries import Answer
from reader.closing import Closing
from testbed.screen import Screen

_NAME = "flights_so_far"
_EVERY = "2 seconds"
_SHUFFLES = "spark.sql.shuffle.partitions"
_PATIENCE = 90.0


@contextmanager
def few_states(spark: Any) -> Iterator[None]:
    """For streams that start in it. Each trigger writes the state of as many partitions as a
    query began with."""
    before = spark.conf.get(_SHUFFLES)
    spark.conf.set(_SHUFFLES, "2")
    try:
        yield
    finally:
        spark.conf.set(_SHUFFLES, before)


class FlightStream(Closing):
    """A stateful query, whose result is a table in memory; runs until it is closed."""

    def __init__(self, spark: Any, table: str) -> None:
        self.text = queries.by_carrier_and_month(f"STREAM {table}")
        self._spark = spark
        self._folder = tempfile.TemporaryDirectory(prefix="pulsar-lake-demo-stream-")
        writer = spark.sql(self.text).writeStream.format("memory").queryName(_NAME)
        with few_states(spark):
            self._query = (
                writer.outputMode("complete")
                .option("checkpointLocation", f"file://{self._folder.name}")
                .trigger(processingTime=_EVERY)
                .start()
            )

    def close(self) -> None:
        self._query.stop()
        self._folder.cleanup()

    def check_first(self, screen: Screen, truth: Answer) -> None:
        """January to November come at once, as they do in a query."""
        screen.quote(self.text)
        until_november = queries.until_november(truth)
        answer = self._answer(queries.total(until_november))
        flights = queries.total(answer)
        screen.line(f"{flights:,} flights so far; every {_EVERY} what has come since")
        wrong = queries.differences(queries.until_november(answer), until_november)
        screen.check("January to November agree with pandas", not wrong, wrong)

    def check_all(self, screen: Screen, truth: Answer) -> None:
        """To be called once all is published."""
        answer = self._answer(queries.total(truth))
        self._query.processAllAvailable()  # a micro-batch is told of when it is over
        self._show_batches(screen)
        screen.check("the stream was running until now", self._query.isActive)
        wrong = queries.differences(answer, truth)
        screen.check("the stream's answer for all months agrees with pandas", not wrong, wrong)

    def _answer(self, flights: int) -> Answer:
        """Its result once it has seen so many, or has not in a minute and a half."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            answer = queries.found(self._spark.table(_NAME).collect())
            late = time.monotonic() > deadline
            if queries.total(answer) >= flights or late or not self._query.isActive:
                return answer
            time.sleep(0.2)

    def _show_batches(self, screen: Screen) -> None:
        batches = [one for one in self._query.recentProgress if one["numInputRows"]]
        rows = []
        for name, some in (("the first", batches[:1]), ("later ones", batches[1:])):
            seconds = [one["durationMs"]["triggerExecution"] / 1e3 for one in some]
            flights = sum(one["numInputRows"] for one in some)
            typical = f"{median(seconds):.1f}" if seconds else "-"
            rows.append([name, len(some), f"{flights:,}", typical])
        screen.table(["", "micro-batches", "flights", "seconds each"], rows)
