"""Gauges computed when Prometheus scrapes: lags and states, from memory."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from offloader.schedule import Scheduler
from offloader.web.overview import Overview, totals

STATES = ("running", "failing", "new", "due", "fine")

_LAGS = {
    "seconds": "Seconds since the oldest sealed ledger that the table lacks was closed",
    "bytes": "Stored bytes of sealed ledgers that the table lacks",
    "ledgers": "Sealed ledgers that the table lacks",
}


class Gauges(Collector):
    """``jobs``: how many Spark jobs there were. ``by_topic``: with lags of each topic."""

    def __init__(
        self,
        overview: Overview,
        scheduler: Scheduler,
        jobs: Callable[[], int],
        *,
        by_topic: bool,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elapsed = elapsed
        self._overview = overview
        self._scheduler = scheduler
        self._jobs = jobs
        self._by_topic = by_topic

    def describe(self) -> list[Metric]:
        """Empty, so that registering computes nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        rows = self._overview.topics()
        yield GaugeMetricFamily(
            "pulsar_lake_loop_age_seconds",
            "Seconds since the scheduler's loop last made progress.",
            self._elapsed() - self._scheduler.turned_at,
        )
        info = GaugeMetricFamily("pulsar_lake_info", "Always 1.", labels=["version"])
        info.add_metric([version("pulsar-lake")], 1)
        yield info
        yield CounterMetricFamily(
            "pulsar_lake_spark_jobs", "Spark jobs that were started.", self._jobs()
        )
        counted = Counter(row["state"] for row in rows.values())
        states = GaugeMetricFamily("pulsar_lake_topics", "Topics by state.", labels=["state"])
        for state in STATES:
            states.add_metric([state], counted[state])
        yield states
        summed = totals(list(rows.values()))
        for unit, text in _LAGS.items():
            how = "; the largest of all topics." if unit == "seconds" else "; all topics."
            yield GaugeMetricFamily(f"pulsar_lake_lag_{unit}", text + how, summed["lag"][unit])
        yield GaugeMetricFamily(
            "pulsar_lake_open_bytes",
            "Bytes in open ledgers, which are not offloaded yet; all topics.",
            summed["open_bytes"],
        )
        at = summed["observed_at"]
        yield GaugeMetricFamily(
            "pulsar_lake_lag_age_seconds",
            "Seconds since Pulsar was asked for what the lags are of; of the topic for which it is "
            "longest ago.",
            0.0 if at is None else max(0.0, self._overview.clock() - at),
        )
        behind = [row["iceberg"] for row in rows.values() if row["iceberg"]]
        yield GaugeMetricFamily(
            "pulsar_lake_iceberg_behind_seconds",
            "Seconds since the oldest commit that an Iceberg table lacks; the largest of all "
            "topics.",
            max((one["seconds"] for one in behind), default=0.0),
        )
        yield GaugeMetricFamily(
            "pulsar_lake_iceberg_behind_versions",
            "Versions of Delta tables that their Iceberg tables lack; all topics.",
            sum(one["versions"] or 0 for one in behind),
        )
        if self._by_topic:
            yield from _topics(rows)


def _topics(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    for unit, text in _LAGS.items():
        lag = GaugeMetricFamily(f"pulsar_lake_topic_lag_{unit}", f"{text}.", labels=["topic"])
        for topic, row in rows.items():
            if row["lag"][unit] is not None:
                lag.add_metric([topic], row["lag"][unit])
        yield lag
    failures = GaugeMetricFamily(
        "pulsar_lake_topic_failures", "Turns that failed in a row; only if any.", labels=["topic"]
    )
    for topic, row in rows.items():
        if row["failures"]:
            failures.add_metric([topic], row["failures"])
    yield failures
