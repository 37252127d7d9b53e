"""The cold half of a topic: one version of its Delta table, as Spark's own Parquet scan reads it.

Spark asks for the files that a query's filters leave, and for what the log's statistics answer
without a file. The log is read by delta-rs, once a version: no log is replayed in the JVM.
"""

import re
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import Topic
from reader.model.row_kinds import KIND_COLUMN, RowKind
from reader.plan import AnyOf, NullTest, Unequal, files_to_read
from reader.storage import Storage
from reader.table import TopicTable, require_readable
from spark_ext.ddl import columns_ddl
from spark_ext.planner.predicates import filters_of
from spark_ext.planner.protocol import (
    Aggregate,
    ColdPlan,
    ColdRead,
    Expression,
    SnapshotTable,
    TableFiles,
)
from spark_ext.planner.topic_names import COLD

NOT_ENCRYPTED = AnyOf((NullTest(KIND_COLUMN, True), Unequal(KIND_COLUMN, RowKind.ENCRYPTED.value)))
"""The filter for a table's rows where hot tasks decrypt its ciphertext."""
NOT_ENCRYPTED_SQL = f"NOT ({KIND_COLUMN} <=> '{RowKind.ENCRYPTED}')"
"""The same filter in the text of a view."""
_EXTREMES = ("min", "max")
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

    def describe(
        self, clients: Clients, local: str, topic: Topic, version: TableVersion
    ) -> SnapshotTable:
        """Return a version as a table of the catalog; ``local`` is the topic's name there."""
        return described(local, self._table(clients, topic, version))

    def plan(
        self, clients: Clients, topic: Topic, version: TableVersion, read: ColdRead
    ) -> ColdPlan:
        """Return what a query reads of a version: values of the log's statistics, or files."""
        table = self._table(clients, topic, version)
        values = _values(table, read.aggregates) if read.aggregates else None
        if values is not None:
            return ColdPlan(values, (), 0)
        return self.files_of(clients, table, read.filters)

    def files_of(
        self,
        clients: Clients,
        table: TopicTable,
        filters: Sequence[Expression],
        paths: Collection[str] | None = None,
    ) -> ColdPlan:
        """Return the files that the filters leave of a version that is open.

        paths: of these files alone
        """
        files = table.files()
        if paths is not None:
            files = files.filter(pc.is_in(files.column("path"), pa.array([*paths], pa.string())))
        wanted = filters_of(filters)
        if wanted:
            files = files.filter(pa.array(files_to_read(files, wanted)))
        names = ("path", "size_bytes", "modification_time")
        lists = (tuple(files.column(name).to_pylist()) for name in names)
        return ColdPlan(
            None, (TableFiles(clients.storage.spark_uri(table.uri), *lists),), _totals(files)[1]
        )

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


def described(local: str, table: TopicTable) -> SnapshotTable:
    """Return a version that is open as a table of the catalog."""
    name = f"{local}{COLD}{TableVersion.of(table)}"
    return SnapshotTable(
        name, f"{local} (cold)", True, columns_ddl(table.schema), *_totals(table.files())
    )


def _totals(files: pa.Table) -> tuple[int | None, int]:
    """Return the rows and bytes of files; rows: None where the log does not say."""
    rows = None
    if "num_records" in files.schema.names and not files.column("num_records").null_count:
        rows = pc.sum(files.column("num_records")).as_py() or 0
    elif not files.num_rows:
        rows = 0
    return rows, pc.sum(files.column("size_bytes")).as_py() or 0


def _values(table: TopicTable, aggregates: Sequence[Aggregate]) -> tuple[int | None, ...] | None:
    """Return the number of rows, and extremes of integers and dates (days), as the log has them.

    None where it does not know all of them exactly.
    """
    files = table.files()
    rows, _ = _totals(files)
    if rows is None:
        return None
    kinds = {field.name: field.type for field in table.schema}
    found: list[int | None] = []
    for one in aggregates:
        if one.column is None and one.function == "count":
            found.append(rows)
            continue
        name = one.column or ""
        if one.function not in _EXTREMES or name not in kinds or "." in name:
            return None
        extremes = _extremes(files, name, kinds[name])
        if extremes is None:
            return None
        found.append(extremes[_EXTREMES.index(one.function)])
    return tuple(found)


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
