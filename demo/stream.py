"""One streaming query over the flights, from January's in Parquet to what is being published."""

from __future__ import annotations

import tempfile
import time
from statistics import median
from typing import Any

from demo import queries
from demo.queries import Answer
from reader.closing import Closing
from testbed.screen import Screen

__all__ = ["FlightStream"]

_NAME = "flights_so_far"
_EVERY = "2 seconds"
_SHUFFLES = "spark.sql.shuffle.partitions"
_PATIENCE = 90.0


class FlightStream(Closing):
    """A stateful query, whose result is a table in memory; runs until it is closed."""

    def __init__(self, spark: Any, table: str) -> None:
        self.text = queries.by_carrier_and_month(f"STREAM {table}")
        self._spark = spark
        # Each trigger writes the state of as many partitions; a query keeps those it began with.
        before = spark.conf.get(_SHUFFLES)
        spark.conf.set(_SHUFFLES, "2")
        self._folder = tempfile.TemporaryDirectory(prefix="pulsar-lake-demo-stream-")
        writer = spark.sql(self.text).writeStream.format("memory").queryName(_NAME)
        self._query = (
            writer.outputMode("complete")
            .option("checkpointLocation", f"file://{self._folder.name}")
            .trigger(processingTime=_EVERY)
            .start()
        )
        spark.conf.set(_SHUFFLES, before)

    def close(self) -> None:
        self._query.stop()
        self._folder.cleanup()

    def check_first(self, screen: Screen, truth: Answer) -> None:
        """January to November come at once, as they do in a query."""
        screen.quote(self.text)
        until_november = {key: value for key, value in truth.items() if key[1] <= 11}
        answer = self._answer(_flights(until_november))
        rest = {key: value for key, value in answer.items() if key[1] <= 11}
        screen.line(f"{_flights(answer):,} flights so far; every {_EVERY} what has come since")
        wrong = queries.differences(rest, until_november)
        screen.check("January to November agree with pandas", not wrong, wrong)

    def check_all(self, screen: Screen, truth: Answer) -> None:
        """To be called once all is published."""
        answer = self._answer(_flights(truth))
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
            if _flights(answer) >= flights or late or not self._query.isActive:
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


def _flights(answer: Answer) -> int:
    return sum(count for count, _ in answer.values())
