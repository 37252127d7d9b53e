"""The cold half of a topic: one version of its Delta table, as Spark's own Parquet scan reads it.

Spark asks for the files that a query's filters leave, and for what the log's statistics answer
without a file. The log is read by delta-rs, once a version: no log is replayed in the JVM.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from threading import Lock
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import Topic
from reader.plan import files_to_read
from reader.storage import Storage
from reader.table import TopicTable, require_readable
from spark_ext.ddl import columns_ddl
from spark_ext.predicates import parse_filters

__all__ = ["ColdTables", "TableVersion"]

_KEPT_TABLES = 64
_KEPT_FILES = 1 << 19
"""Of all of them together: some 100 MiB. The newest is kept however many it has."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table, as the name of a relation has it: ``VERSION-TABLEID``.

    ``table``: ``metaData.id``. A table that was made anew at the same place has another one.
    """

    version: int
    table: str

    @classmethod
    def of(cls, table: TopicTable) -> Self:
        return cls(table.version, table.id)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises NotFoundError for a text that is none."""
        found = re.fullmatch(r"(\d{1,18})-([\w-]+)", text, re.ASCII)
        if found is None:
            raise NotFoundError(f"{text[:100]!r} is no version of a table")
        return cls(int(found[1]), found[2])

    def __str__(self) -> str:
        return f"{self.version}-{self.table}"


class ColdTables:
    """Answers questions about versions of tables. Thread-safe; keeps those that were used last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[Storage, str, TableVersion], TopicTable] = OrderedDict()

    def describe(self, clients: Clients, topic: Topic, version: TableVersion) -> dict[str, Any]:
        """{schema, rows, bytes} of all its files; ``rows`` null where the log does not say."""
        table = self._table(clients, topic, version)
        return {"schema": columns_ddl(table.schema), **_totals(table.files())}

    def files(
        self, clients: Clients, topic: Topic, version: TableVersion, filters: str
    ) -> dict[str, Any]:
        """{root, paths, sizes, times, rows, bytes}: what ``filters`` leave to read.

        ``root``: the table's directory as Spark names it; ``paths``: below it, as the log has them;
        ``times`` in ms. ``filters``: as ``Filters.java`` writes them.
        """
        return self.files_of(clients, self._table(clients, topic, version), filters)

    def files_of(
        self,
        clients: Clients,
        table: TopicTable,
        filters: str,
        paths: Collection[str] | None = None,
    ) -> dict[str, Any]:
        """``files`` of a version that is open; of these ``paths`` alone, where they are given."""
        found = table.files()
        if paths is not None:
            found = found.filter(pc.is_in(found.column("path"), pa.array([*paths], pa.string())))
        wanted = parse_filters(filters)
        if wanted:
            found = found.filter(pa.array(files_to_read(found, wanted)))
        return {
            "root": clients.storage.spark_uri(table.uri),
            "paths": found.column("path").to_pylist(),
            "sizes": found.column("size_bytes").to_pylist(),
            "times": found.column("modification_time").to_pylist(),
            **_totals(found),
        }

    def extremes(
        self, clients: Clients, topic: Topic, version: TableVersion, columns: list[str]
    ) -> dict[str, Any]:
        """{rows, columns: {name: [least, greatest]}}: those that the log's statistics know exactly.

        Of integers and dates (days); [null, null] where no row has a value. ``rows``: null where
        the log does not say, and then no column is there.
        """
        table = self._table(clients, topic, version)
        files = table.files()
        rows = _totals(files)["rows"]
        kinds = {one.name: one.type for one in table.schema}
        known = {
            name: found
            for name in columns
            if rows is not None
            and name in kinds
            and "." not in name
            and (found := _extremes(files, name, kinds[name])) is not None
        }
        return {"rows": rows, "columns": known}

    def keep(self, clients: Clients, table: TopicTable) -> TableVersion:
        """Keep a version that ``clients`` have just opened; what it is called from now on.

        For those clients' storage alone: others may not have the right to read it, or may mean
        another bucket of the same name. Raises as ``TopicTable.files``.
        """
        table.files()  # before the lock, and before it counts as kept: it may not be readable
        version = TableVersion.of(table)
        key = (clients.storage, table.uri, version)
        with self._lock:
            self._kept.pop(key, None)
            self._kept[key] = table
            while len(self._kept) > 1 and self._too_many():
                self._kept.popitem(last=False)
        return version

    def _too_many(self) -> bool:
        files = sum(one.files_in_memory for one in self._kept.values())
        return len(self._kept) > _KEPT_TABLES or files > _KEPT_FILES

    def _table(self, clients: Clients, topic: Topic, version: TableVersion) -> TopicTable:
        clients.admin.require_consume(topic)  # at each plan: it may have been revoked
        storage = clients.storage
        with self._lock:
            known = self._kept.get((storage, storage.table_uri(topic), version))
        if known is not None:
            return known
        table = TopicTable.open(storage, topic, version.version)
        if table is None or table.id != version.table:
            raise NotFoundError(
                f"the table of {topic} was replaced since the query was made",
                hint="make the query anew",
            )
        require_readable(table)
        self.keep(clients, table)
        return table


def _totals(files: pa.Table) -> dict[str, int | None]:
    rows = None
    if "num_records" in files.schema.names and not files.column("num_records").null_count:
        rows = pc.sum(files.column("num_records")).as_py() or 0
    elif not files.num_rows:
        rows = 0
    return {"rows": rows, "bytes": pc.sum(files.column("size_bytes")).as_py() or 0}


def _extremes(files: pa.Table, name: str, kind: pa.DataType) -> list[int | None] | None:
    """[least, greatest] of a column; None where a file with rows does not say."""
    if not (pa.types.is_integer(kind) or pa.types.is_date32(kind)):
        return None
    parts = [f"min.{name}", f"max.{name}", f"null_count.{name}"]
    files = files.filter(pc.field("num_records") > 0)
    if not files.num_rows:
        return [None, None]
    if not all(one in files.schema.names for one in parts):
        return None
    low, high, nulls = (files.column(one) for one in parts)
    if low.type != kind and not (pa.types.is_integer(kind) and pa.types.is_integer(low.type)):
        return None
    there = pc.less(nulls, files.column("num_records"))  # NULL where it does not say
    if (
        there.null_count
        or not pc.all(pc.or_(pc.invert(there), pc.and_(low.is_valid(), high.is_valid()))).as_py()
    ):
        return None
    if pa.types.is_date32(kind):
        # As days since 1970, which the answer has.
        low, high = low.cast(pa.int32()), high.cast(pa.int32())
    found = pc.min_max(pa.chunked_array([*low.chunks, *high.chunks])).as_py()
    return [found["min"], found["max"]]
