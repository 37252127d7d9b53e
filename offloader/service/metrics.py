"""Counters and histograms for Prometheus, in a registry of their own.

``docs/monitoring.md`` documents each name and its labels, which a test checks. Labels are bounded:
error classes, stages, outcomes. Gauges are computed at each scrape (``web/gauges.py``).
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from offloader.model import PHASES, Committed, IcebergResult, MaintenanceResult
from reader.errors import PulsarLakeError

OUTCOMES = ("accepted", "refused")
"""Outcomes of a request to offload a topic."""

_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


class Metrics:
    """Thread-safe. One for each daemon."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._ledgers = self._counter("ledgers", "Ledgers that commits added to tables.")
        self._rows = self._counter("rows", "Rows that commits added to tables.")
        self._rescued = self._counter("rescued_rows", "Of these, rows with an __error.")
        self._stored = self._counter("read_bytes", "Bytes of those ledgers, as stored.")
        self._written = self._counter("written_bytes", "Bytes of the files they became.")
        self._files = self._counter("files", "Files that commits added to tables.")
        self._commits = self._counter("commits", "Commits.")
        self._releases = self._counter("releases", "Moves of holds, each of one partition.")
        self._errors = self._counter(
            "errors", "Turns, rounds, maintenance and Iceberg runs that failed.", "kind"
        )
        self._compacted = self._counter(
            "compacted_files", "Small files that maintenance compacted."
        )
        self._expired = self._counter("expired_rows", "Rows that maintenance removed as expired.")
        self._vacuumed = self._counter("vacuumed_files", "Unused files that maintenance deleted.")
        self._aborted = self._counter(
            "aborted_rows", "Rows of tables that were found to be aborted in Pulsar since."
        )
        self._followed = self._counter(
            "iceberg_commits", "Commits to Iceberg tables, which follow their Delta tables."
        )
        self._requests = self._counter(
            "offload_requests", "Requests over HTTP to offload a topic.", "outcome"
        )
        for outcome in OUTCOMES:
            self._requests.labels(outcome)
        self._phases = Histogram(
            "pulsar_lake_stage_seconds",
            "How long each stage of a turn took.",
            ("stage",),
            registry=self.registry,
            buckets=_SECONDS,
        )
        for phase in PHASES:
            self._phases.labels(phase)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"pulsar_lake_{name}", text, labels, registry=self.registry)

    def committed(self, found: Committed) -> None:
        """A commit is in the log."""
        self._commits.inc()
        self._ledgers.inc(found.ledgers)
        self._files.inc(found.files)
        self._rows.inc(found.rows)
        self._rescued.inc(found.rescued)
        self._stored.inc(found.stored)
        self._written.inc(found.bytes)

    def released(self, moves: int) -> None:
        """Holds were moved."""
        self._releases.inc(moves)

    def maintained(self, found: MaintenanceResult) -> None:
        """A table's maintenance is over."""
        self._compacted.inc(found.compacted)
        self._expired.inc(found.expired_rows)
        self._vacuumed.inc(found.vacuumed)
        self._aborted.inc(found.aborted_rows)

    def followed(self, found: IcebergResult) -> None:
        """An Iceberg table shows the newest version of its Delta table."""
        if found.version != found.before or found.expired:
            self._followed.inc()

    def failed(self, error: Exception) -> None:
        """A turn, a round, a maintenance run or one of Iceberg's failed."""
        self._errors.labels(error_kind(error)).inc()

    def took(self, phase: str, seconds: float) -> None:
        """A phase of a turn is over (the metric's label is named ``stage``)."""
        self._phases.labels(phase).observe(seconds)

    def requested(self, outcome: str) -> None:
        """A request to offload a topic came over HTTP."""
        self._requests.labels(outcome).inc()


def error_kind(error: Exception) -> str:
    """The error's class where it is one of ours; else ``other``."""
    return type(error).__name__ if isinstance(error, PulsarLakeError) else "other"
