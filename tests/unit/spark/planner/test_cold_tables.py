"""What the planner says of a version of a table: files, rows and extremes, from the log alone."""

import datetime as dt
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures

from offloader.commit.delta_committer import DeltaCommitter
from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError, CorruptError, NotFoundError, UnsupportedError
from reader.model import Topic
from reader.pulsar import AdminClient
from reader.storage import Storage
from reader.table import require_readable
from spark_ext.planner.cold_tables import ColdTables, TableVersion
from spark_ext.planner.protocol import Aggregate, ColdRead, Expression, TableFiles
from tests.support.additions import addition, open_table
from tests.support.tables import TOPIC, fill
from tests.unit.spark.planner.expressions import call, column, literal


class Admin:
    """Lets everybody read, or nobody."""

    refuses = False

    def require_consume(self, topic: Topic) -> None:
        if self.refuses:
            raise ConfigurationError(f"no permission to consume {topic}")

    def close(self) -> None:
        pass


@pytest.fixture
def admin() -> Admin:
    return Admin()


@pytest.fixture
def clients(tmp_path: Path, admin: Admin) -> Iterator[Clients]:
    settings = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    with Clients(settings, admin=cast(AdminClient, admin)) as opened:
        yield opened


@pytest.fixture
def version(clients: Clients) -> TableVersion:
    fill(clients.storage, [1, 2])
    fill(clients.storage, [3])
    return TableVersion.of(open_table(clients.storage, TOPIC))


def ledger_is(op: str, value: int) -> Expression:
    return call(op, column("__ledgerId"), literal(value, "long"))


def files(
    tables: ColdTables, clients: Clients, version: TableVersion, *filters: Expression
) -> TableFiles:
    """Return the files that filters leave."""
    plan = tables.plan(clients, TOPIC, version, ColdRead("", "", None, filters, ()))
    [found] = plan.tables
    assert plan.values is None
    assert plan.bytes == sum(found.sizes)
    return found


def rows(tables: ColdTables, clients: Clients, version: TableVersion) -> int | None:
    return tables.describe(clients, "t", TOPIC, version).rows


def values(
    clients: Clients, version: TableVersion, *aggregates: Aggregate
) -> tuple[int | None, ...] | None:
    """Return the values of aggregates, if the log knows all of them: then no file is named."""
    read = ColdRead("", "", None, (), aggregates)
    plan = ColdTables().plan(clients, TOPIC, version, read)
    assert bool(plan.tables) is (plan.values is None)
    return plan.values


def extremes(clients: Clients, version: TableVersion, name: str) -> tuple[int | None, ...] | None:
    return values(clients, version, Aggregate("min", name), Aggregate("max", name))


def test_a_version_is_named_by_number_and_table(version: TableVersion) -> None:
    assert TableVersion.parse(str(version)) == version
    for text in ("", "3", "-3-x", "3-", "x-y", "3-a b", "٣-x", "9" * 19 + "-x"):
        with pytest.raises(NotFoundError):
            TableVersion.parse(text)


def test_files(clients: Clients, version: TableVersion) -> None:
    tables = ColdTables()
    every = files(tables, clients, version)
    assert (rows(tables, clients, version), len(every.paths)) == (30, 3)
    for path, size in zip(every.paths, every.sizes, strict=True):
        assert (Path(every.root.removeprefix("file:")) / path).stat().st_size == size
    assert len(files(tables, clients, version, ledger_is(">", 2)).paths) == 1
    assert files(tables, clients, version, ledger_is("=", 9)).paths == ()


def test_an_old_version_stays_what_it_was(clients: Clients, version: TableVersion) -> None:
    fill(clients.storage, [4])
    for tables in (ColdTables(), ColdTables()):
        assert rows(tables, clients, version) == 30


def test_a_table_that_was_made_anew_is_another_one(clients: Clients, version: TableVersion) -> None:
    shutil.rmtree(clients.storage.table_uri(TOPIC))
    fill(clients.storage, [1, 2])
    fill(clients.storage, [5])
    assert open_table(clients.storage, TOPIC).version == version.version
    with pytest.raises(NotFoundError, match="replaced since the query was made"):
        files(ColdTables(), clients, version)


def test_who_may_not_read_gets_no_files(
    clients: Clients, admin: Admin, version: TableVersion
) -> None:
    tables = ColdTables()
    files(tables, clients, version)
    admin.refuses = True
    with pytest.raises(ConfigurationError, match="no permission"):
        files(tables, clients, version)
    with pytest.raises(ConfigurationError, match="no permission"):
        rows(tables, clients, version)


COUNT = Aggregate("count", None)


def test_extremes(clients: Clients, version: TableVersion) -> None:
    wanted = (COUNT, Aggregate("min", "__ledgerId"), Aggregate("max", "id"))
    assert values(clients, version, *wanted) == (30, 1, 9)
    assert extremes(clients, version, "__ledgerId") == (1, 3)
    assert extremes(clients, version, "id") == (0, 9)


@pytest.mark.parametrize(
    "other",
    [
        Aggregate("min", "amount"),
        Aggregate("max", "__publishTime"),
        Aggregate("max", "nope"),
        Aggregate("count", "id"),
        Aggregate("sum", "id"),
        Aggregate("max", None),
    ],
)
def test_an_aggregate_that_the_log_does_not_know(
    clients: Clients, version: TableVersion, other: Aggregate
) -> None:
    assert values(clients, version, COUNT, other) is None


def _rewrite_files(storage: Storage, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what the newest commit says of its files, as another writer might."""
    table = open_table(storage, TOPIC)
    path = Path(table.uri) / "_delta_log" / f"{table.version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for one in lines:
        if "add" in one:
            change(one["add"])
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")


def _rewrite_statistics(storage: Storage, change: Callable[[dict[str, Any]], object]) -> None:
    def rewrite(file: dict[str, Any]) -> None:
        statistics = json.loads(file["stats"])
        change(statistics)
        file["stats"] = json.dumps(statistics)

    _rewrite_files(storage, rewrite)


def test_extremes_that_the_log_does_not_know(clients: Clients, version: TableVersion) -> None:
    _rewrite_statistics(clients.storage, lambda one: one["maxValues"].pop("id"))
    assert extremes(clients, version, "__ledgerId") == (1, 3)
    assert extremes(clients, version, "id") is None


def test_rows_that_the_log_does_not_know(clients: Clients, version: TableVersion) -> None:
    _rewrite_statistics(clients.storage, lambda one: one.pop("numRecords"))
    assert values(clients, version, COUNT) is None
    assert extremes(clients, version, "id") is None
    assert rows(ColdTables(), clients, version) is None


def test_a_column_without_a_value_has_no_extremes(clients: Clients) -> None:
    fill(clients.storage, [1])
    version = TableVersion.of(open_table(clients.storage, TOPIC))

    def all_null(one: dict[str, Any]) -> None:
        one["nullCount"]["id"] = one["numRecords"]
        del one["minValues"]["id"], one["maxValues"]["id"]

    _rewrite_statistics(clients.storage, all_null)
    assert extremes(clients, version, "id") == (None, None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("2000-01-01", (dt.date(2000, 1, 1) - dt.date(1970, 1, 1)).days, id="a day"),
        pytest.param("+10031-09-09", 2_944_471, id="beyond what Python has"),
    ],
)
def test_days_are_numbers(clients: Clients, text: str, number: int) -> None:
    fields = pa.schema([("id", pa.int64()), ("day", pa.date32())])
    made = addition(clients.storage, TOPIC, [1], fields=fields, statistics=("id", "day"))
    DeltaCommitter(clients.storage).commit(None, made)
    version = TableVersion.of(open_table(clients.storage, TOPIC))

    def days(one: dict[str, Any]) -> None:
        one["minValues"]["day"], one["maxValues"]["day"] = "1970-01-03", text
        one["nullCount"]["day"] = 0

    _rewrite_statistics(clients.storage, days)
    assert extremes(clients, version, "day") == (2, number)


def test_a_table_that_cannot_be_read_stops_no_other(
    clients: Clients, version: TableVersion
) -> None:
    good = open_table(clients.storage, TOPIC)
    tables = ColdTables()
    tables.keep(clients, good)
    fill(clients.storage, [4])
    _rewrite_files(clients.storage, lambda file: file.update(path="../elsewhere.parquet"))
    with pytest.raises(CorruptError, match="outside of it"):
        tables.keep(clients, open_table(clients.storage, TOPIC))
    assert tables.keep(clients, good) == version
    assert len(files(tables, clients, version).paths) == 3


def test_what_one_client_has_opened_is_not_anothers(
    clients: Clients, version: TableVersion, admin: Admin, tmp_path: Path
) -> None:
    tables = ColdTables()
    files(tables, clients, version)
    shutil.move(clients.storage.table_uri(TOPIC), tmp_path / "away")
    assert len(files(tables, clients, version).paths) == 3
    with Clients(clients.settings, admin=cast(AdminClient, admin)) as other:
        with pytest.raises(NotFoundError):
            files(tables, other, version)


def test_deletion_vectors_are_refused(clients: Clients, version: TableVersion) -> None:
    table = open_table(clients.storage, TOPIC)
    require_readable(table)
    DeltaTable(table.uri).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    with pytest.raises(UnsupportedError, match="deletionVectors"):
        files(ColdTables(), clients, TableVersion(version.version + 1, version.table))
