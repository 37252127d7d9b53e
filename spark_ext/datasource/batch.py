"""``spark.read.format("pulsar").option("topic", …)``: all tiers of a topic through Python.

The one-source form: every column, no filter pushed down, the snapshot taken when ``load()`` is
called. SQL and ``spark.table`` go through the catalog instead (``spark_ext.planner.relations``),
whose cold half is Spark's own and whose hot half gets columns and filters.
Options: ``topic``, ``tiers``. The settings are those that Spark's JVM was started with: of the
``PulsarLake`` that started it, else (spark-submit, shells, servers) of the file that
``PULSAR_LAKE_CONFIG`` named in its environment, else of its environment alone, which has to name
the admin then: a ``PulsarLake`` that joined may mean another Pulsar than the default. No option or
setting of a session chooses others; an option ``config`` can only repeat that file's name.

Traps (Spark 4.2): a source with ``pushFilters`` keeps pushed filters on a relation that others
use too, so there is none here; the parameter of ``__init__`` must be named ``options``; an empty
list of partitions arrives as one partition without a value.

Spark starts several processes that import this module for one thing each: what is heavy is
imported where it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_ext.session.errors import carried

if TYPE_CHECKING:
    import pyarrow as pa

    from reader.config import ReadConfig
    from reader.plan import Read, Snapshot


class PulsarPartition(InputPartition):
    """What one task reads."""

    def __init__(self, read: Read) -> None:
        super().__init__(None)
        self.read = read


class PulsarDataSource(DataSource):
    """``format("pulsar")``; made once a ``load()``."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        with carried():
            self._open(options)

    def _open(self, options: Mapping[str, str]) -> None:
        from reader.clients import process_clients
        from reader.errors import ConfigurationError
        from reader.model import Topic
        from reader.plan import take_snapshot
        from spark_ext.session.handoff import (
            SETTINGS_VARIABLE,
            environment_names_admin,
            load_settings,
        )

        topic = options.get("topic")
        if not topic:
            raise ConfigurationError(
                'format("pulsar") needs a topic', hint='.option("topic", "tenant/namespace/topic")'
            )
        path = os.environ.get(SETTINGS_VARIABLE) or None
        hint = (
            "they are those of the PulsarLake that starts Spark's JVM; elsewhere export "
            f"{SETTINGS_VARIABLE}=FILE before Spark starts"
        )
        if options.get("config", path) != path:
            raise ConfigurationError(
                "the settings of Pulsar cannot be chosen by an option", hint=f"leave it out: {hint}"
            )
        self._config = load_settings(path)
        if path is None and not environment_names_admin():
            raise ConfigurationError(
                'Spark was started without the settings of format("pulsar")', hint=hint
            )
        # Now, so that every action on the DataFrame sees the same rows.
        snapshot = take_snapshot(
            process_clients(self._config), Topic.parse(topic), tiers=options.get("tiers")
        ).log_note()
        # Spark pickles it: a table that is open stays in this process.
        self._snapshot = replace(snapshot, table=None)

    @classmethod
    def name(cls) -> str:
        return "pulsar"

    def schema(self) -> str:
        from spark_ext.ddl import columns_ddl

        return columns_ddl(self._snapshot.columns)

    def reader(self, schema: StructType) -> PulsarReader:
        return PulsarReader(self._config, self._snapshot, schema)


class PulsarReader(DataSourceReader):
    """Plans on the driver, reads in tasks."""

    def __init__(self, config: ReadConfig, snapshot: Snapshot, schema: StructType) -> None:
        from spark_ext.datasource.tasks import TaskFormat

        self._source = (config, snapshot)
        with carried():
            self._format = TaskFormat.of(config, snapshot, schema)

    def partitions(self) -> Sequence[InputPartition]:
        from reader.clients import process_clients
        from spark_ext.datasource.tasks import plan_tasks

        config, snapshot = self._source
        columns = self._format.rows.columns.names
        with carried():
            reads = plan_tasks(process_clients(config), snapshot, columns)
        return [PulsarPartition(read) for read in reads]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from spark_ext.datasource.tasks import read_task

        if isinstance(partition, PulsarPartition):  # not Spark's stand-in for "none"
            with carried(**partition.read.place):
                yield from read_task(self._format, partition.read)

    def __getstate__(self) -> dict[str, Any]:
        # Every task gets a copy of the reader: leave the snapshot's segments out of it.
        return {"_format": self._format}
