"""PulsarLake: the library's front door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reader.clients import Clients
from reader.closing import Closing
from reader.errors import ConfigurationError
from reader.model import Segment, Topic
from reader.plan import Plan, Predicate, make_plan, take_snapshot
from reader.storage import check_storage_options
from spark_ext.ddl import quoted
from spark_ext.planner.relations import Relations
from spark_ext.planner.topic_names import COMPACTED, TIERS_SUFFIX
from spark_ext.session.handoff import settings_file
from spark_ext.session.settings import LakeConfig

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from spark_ext.statement import Statement


class PulsarLake(Closing):
    """Topics as tables of one Spark session; a context manager.

    ``config`` is a settings file, a mapping, a LakeConfig, or None for the environment alone. The
    session is built when first needed; ``spark`` joins one that has the catalog already (which
    then decides by its own settings what ``table`` and SQL read).
    """

    def __init__(
        self,
        config: LakeConfig | Mapping[str, Any] | str | Path | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self.config = LakeConfig.load(config)
        check_storage_options(self.config.storage, self.config.tiered)
        self._clients = Clients(self.config)
        self._relations = Relations(lambda _: self._clients)
        self._spark = spark
        self._owned = False
        if spark is not None:
            from spark_ext.session.builder import require_catalog

            require_catalog(spark)

    @property
    def spark(self) -> SparkSession:
        """The session: ``spark.sql("SELECT … FROM pulsar.`tenant/namespace`.topic")``."""
        if self._spark is None:
            from spark_ext.session.builder import build_session, running_session

            self._owned = running_session() is None
            self._spark = build_session(self.config)
        return self._spark

    def table(self, topic: str, *, tiers: str | None = None, view: str | None = None) -> DataFrame:
        """A DataFrame of one snapshot of ``topic``, taken now.

        ``tiers`` forces one tier: "parquet", "bookkeeper", "tiered" or "broker" (for benchmarks and
        tests).
        ``view="compacted"``: the latest message of each key, none where its value is null or
        empty, as a compacted reader sees it once the whole topic is compacted.
        Raises ConfigurationError for another view; what the catalog raises for an unknown
        topic is Spark's AnalysisException.
        """
        if view not in (None, "compacted"):
            raise ConfigurationError(f"unknown view {view!r}", hint="compacted, or none")
        from spark_ext.session.builder import CATALOG

        name = Topic.parse(topic)
        suffix = (COMPACTED if view else "") + (f"{TIERS_SUFFIX}{tiers}" if tiers else "")
        namespace = f"{name.tenant}/{name.namespace}"
        return self.spark.table(quoted(CATALOG, namespace, name.name + suffix))

    def statement(self, text: str) -> Statement:
        """One SQL statement, to be run: its rows come in batches, and it can be cancelled."""
        from spark_ext.statement import Statement

        return Statement(self.spark, text)

    def lost(self) -> bool:
        """Whether Spark's JVM has ended by itself; the next use of ``spark`` starts another."""
        from spark_ext.session.builder import forget_ended_session

        if not forget_ended_session():
            return False
        self._spark = None
        self._owned = False
        return True

    def namespaces(self) -> list[str]:
        """All ``tenant/namespace`` that the client may see; without Spark."""
        return self._relations.namespaces(settings_file(self.config))

    def topics(self, namespace: str) -> list[str]:
        """The names of the topics of a ``tenant/namespace``; without Spark.

        Raises NotFoundError.
        """
        return self._relations.topics(settings_file(self.config), namespace)

    def columns(self, topic: str) -> pa.Schema:
        """The columns of a topic's table, as of now; without Spark. Raises NotFoundError."""
        return take_snapshot(self._clients, Topic.parse(topic)).columns

    def segments(self, topic: str) -> list[Segment]:
        """Every segment as a query for all columns would read it now, by partition and ledger."""
        return [one.segment for one in self.explain(topic).segments]

    def explain(
        self,
        topic: str,
        start: datetime | None = None,
        end: datetime | None = None,
        columns: Sequence[str] | None = None,
    ) -> Plan:
        """What a query for publish times from ``start`` to ``end`` (both inclusive) would read.

        ``columns``: those that it needs; None: all. Segment by segment: tier, reason, read or
        pruned. Naive times are UTC. Printable. Raises ConfigurationError for an unknown column.
        """
        bounds = ((">=", start), ("<=", end))
        predicates = [
            Predicate("__publishTime", op, (_micros(time),)) for op, time in bounds if time
        ]
        snapshot = take_snapshot(self._clients, Topic.parse(topic))
        unknown = [name for name in columns or () if name not in snapshot.columns.names]
        if unknown:
            raise ConfigurationError(f"topic {snapshot.topic} has no column {unknown[0]}")
        return make_plan(self._clients, snapshot, columns, predicates)

    def query_plans(self, frame: DataFrame) -> list[Plan]:
        """The plans of the topics in a query, by what Spark's own plan of it reads.

        One for each different read of a topic, in the order of Spark's plan. Segments without a
        readable entry are not in it. Raises ConfigurationError for a DataFrame of Spark Connect,
        which does not show its plan.
        """
        from spark_ext.planner.query_plans import plans_of

        jvm_frame = getattr(frame, "_jdf", None)
        if jvm_frame is None:
            raise ConfigurationError(
                "a DataFrame of Spark Connect does not show its plan",
                hint="make it in a session of this process's JVM",
            )
        return plans_of(self._clients, self.spark, jvm_frame.queryExecution())

    def explain_query(self, query: str) -> tuple[list[Plan], str]:
        """The plans of the topics in a query that is not run, and Spark's plan of it as text.

        Raises Spark's AnalysisException.
        """
        from spark_ext.planner.query_plans import plans_of, prepared

        execution, text = prepared(self.spark, query)
        return plans_of(self._clients, self.spark, execution), text

    def close(self) -> None:
        """Close what this object opened; stop Spark, if it started it."""
        self._clients.close()
        if self._owned and self._spark is not None:
            self._spark.stop()
        self._spark = None
        self._owned = False


def _micros(time: datetime) -> int:
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
