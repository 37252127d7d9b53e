"""Files: bounded row groups, no statistics of floats, and a zone map that covers the rows."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from offloader.output.files import WrittenFile
from offloader.parquet import writer as parquet
from offloader.parquet.encodings import different_columns
from offloader.parquet.statistics import FileStatistics, statistics_columns
from offloader.parquet.writer import write_file
from reader.errors import UnavailableError
from reader.model.columns import METADATA

FIELDS = pa.schema(
    [
        ("price", pa.float64()),
        ("readings", pa.list_(pa.float32())),
        ("place", pa.struct([("lat", pa.float64()), ("name", pa.string())])),
        ("weights", pa.map_(pa.string(), pa.float64())),
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("note", pa.string()),
    ]
)
SCHEMA = pa.schema([*FIELDS, *METADATA])


def batch(ledger: int, count: int, **values: list[Any]) -> pa.RecordBatch:
    columns = {
        "__ledgerId": [ledger] * count,
        "__entryId": list(range(count)),
        "__publishTime": list(range(count)),
    } | values
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def write(
    directory: Path, *batches: pa.RecordBatch, chosen: tuple[str, ...] = ()
) -> WrittenFile | None:
    pairs = [(one.column("__ledgerId")[0].as_py() if one.num_rows else 0, one) for one in batches]
    columns = statistics_columns(SCHEMA, chosen)
    return write_file(
        pafs.LocalFileSystem(), str(directory / "a" / "table"), "f.parquet", SCHEMA, pairs, columns
    )


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    one = batch(
        3,
        3,
        price=[1.5, float("nan"), None],
        readings=[[1.0], [], None],
        place=[{"lat": 1.0, "name": "x"}, None, {"lat": None, "name": None}],
        weights=[[("a", 1.0)], [], None],
        note=["a", "", None],
    )
    written = write(tmp_path, one, batch(7, 2))
    assert written
    table = pq.read_table(tmp_path / "a" / "table" / "f.parquet")
    assert table.schema.names == SCHEMA.names
    assert str(table.slice(0, 3).to_pylist()) == str(pa.Table.from_batches([one]).to_pylist())
    assert written.rows == table.num_rows == 5
    assert written.size == (tmp_path / "a" / "table" / "f.parquet").stat().st_size
    assert [(part.ledger, part.rows) for part in written.ledgers] == [(3, 3), (7, 2)]
    assert written.ledgers[0].max_publish_time == 2


def test_rescued_rows_are_counted_by_ledger(tmp_path: Path) -> None:
    errors = ["bad", None, "worse"]
    written = write(
        tmp_path, batch(7, 3, __error=errors), batch(7, 3), batch(8, 3, __error=[None, "x", "y"])
    )
    assert written is not None
    assert [one.rescued for one in written.ledgers] == [2, 2]
    assert written.rescued == 4
    clean = write(tmp_path, batch(7, 3))
    assert clean is not None
    assert clean.rescued == 0


def test_values_that_nearly_all_differ_get_no_dictionary(tmp_path: Path) -> None:
    count = 6_000
    scattered = [n * 1_103_515_245 % (1 << 31) for n in range(count)]
    few = [date(2026, 1, 1 + n % 28) for n in range(count)]
    rows = {"price": [1 / (1 + n) for n in range(count)], "id": [*range(count - 1), None]}
    write(tmp_path, batch(3, count, **rows, note=[str(n) for n in scattered], day=few))
    path = tmp_path / "a" / "table" / "f.parquet"
    group = pq.read_metadata(path).row_group(0)
    seen = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    encodings = {name: set(seen[name].encodings) for name in ("price", "id", "note", "day")}
    assert {name for name, one in encodings.items() if "RLE_DICTIONARY" in one} == {"day"}
    assert {name for name, one in encodings.items() if "DELTA_BINARY_PACKED" in one} == {"id"}
    table = pq.read_table(path)
    assert table["id"].to_pylist() == rows["id"]
    assert table["price"].to_pylist() == rows["price"]
    assert table["note"].to_pylist() == [str(n) for n in scattered]
    assert seen["id"].statistics.max == count - 2

    assert different_columns(pa.table({"id": range(count)})) == {"id": True}
    assert different_columns(pa.table({"id": scattered})) == {"id": False}
    assert different_columns(pa.table({"id": range(100)})) == {}, "a sample that says little"


def test_no_file_without_a_row(tmp_path: Path) -> None:
    assert write(tmp_path) is None
    assert write(tmp_path, batch(3, 0), batch(4, 0)) is None
    assert list(tmp_path.iterdir()) == []


def test_floats_have_no_statistics_in_the_footer_however_deep(tmp_path: Path) -> None:
    write(tmp_path, batch(3, 2, price=[1.0, float("nan")]))
    metadata = pq.read_metadata(tmp_path / "a" / "table" / "f.parquet")
    group = metadata.row_group(0)
    seen = {}
    for i in range(group.num_columns):
        column = group.column(i)
        seen[column.path_in_schema] = (column.physical_type, column.is_stats_set)
    floats = {path for path, (kind, _) in seen.items() if kind in ("FLOAT", "DOUBLE")}
    assert floats == {"price", "readings.list.element", "place.lat", "weights.key_value.value"}
    assert not [path for path in floats if seen[path][1]]
    assert seen["__publishTime"][1]
    assert seen["id"][1]


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 100)
    written = write(tmp_path, *(batch(3, count) for count in (60, 60, 60, 250, 1)))
    assert written
    metadata = pq.read_metadata(tmp_path / "a" / "table" / "f.parquet")
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(groups) == 431
    assert max(groups) <= 100


def test_wide_rows_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 100_000)
    write(tmp_path, batch(3, 50, note=["x" * 10_000] * 50))
    metadata = pq.read_metadata(tmp_path / "a" / "table" / "f.parquet")
    assert metadata.num_row_groups >= 5


def test_rows_that_come_alone_take_no_more_than_their_bytes(tmp_path: Path) -> None:
    """A record batch of one row takes some 5 kB of Arrow's memory, beside Python's objects."""

    def memory_of(count: int) -> int:
        most = 0

        def source() -> Any:
            nonlocal most
            for _ in range(count):
                yield 3, batch(3, 1)
                most = max(most, pa.total_allocated_bytes())

        before: int = pa.total_allocated_bytes()
        found = write_file(
            pafs.LocalFileSystem(), str(tmp_path), "f.parquet", SCHEMA, source(), ["__ledgerId"]
        )
        assert found is not None
        assert found.rows == count
        return int(most - before)

    small, large = memory_of(1000), memory_of(2000)
    assert large - small < 1000 * 1000


def test_a_broken_sources_error_comes_through(tmp_path: Path) -> None:
    def source() -> Any:
        yield 3, batch(3, 10)
        raise UnavailableError("the bookies are gone")

    with pytest.raises(UnavailableError, match="bookies"):
        write_file(
            pafs.LocalFileSystem(), str(tmp_path), "f.parquet", SCHEMA, source(), ["__ledgerId"]
        )


def test_a_storage_that_fails_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot write") as caught:
        write(tmp_path, batch(3, 1))
    assert "\n" not in str(caught.value)


# -- the zone map ----------------------------------------------------------------------------------


def zone_map(column: pa.Array) -> dict[str, Any]:
    found = FileStatistics(["c"])
    found.add(pa.record_batch({"c": column}))
    value: dict[str, Any] = json.loads(found.to_json())
    return value


MICROS = pa.timestamp("us", tz="UTC")
YEAR_10000 = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp() * 1_000_000) + 86_400_000_000


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [
        (pa.array([3, None, -7], pa.int64()), -7, 3),
        (pa.array([0, 20_000], pa.date32()), "1970-01-01", "2024-10-04"),
        (pa.array([1_001], MICROS), "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.002Z"),
        (pa.array([1_000], MICROS), "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.001Z"),
        (pa.array([-1], MICROS), "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z"),
        (
            pa.array([1_700_000_000_123_456], MICROS),
            "2023-11-14T22:13:20.123Z",
            "2023-11-14T22:13:20.124Z",
        ),
        (
            pa.array([-62_000_000_000_000_000], MICROS),
            "0005-04-19T09:46:40.000Z",
            "0005-04-19T09:46:40.000Z",
        ),
    ],
)
def test_the_zone_map_covers_its_rows(column: pa.Array, low: object, high: object) -> None:
    found = zone_map(column)
    assert (found["minValues"], found["maxValues"]) == ({"c": low}, {"c": high})
    assert found["nullCount"] == {"c": column.null_count}
    assert found["numRecords"] == len(column)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_zone_map_covers_all_batches(order: tuple[int, ...]) -> None:
    batches = [pa.array([5, 6]), pa.array([None, 1]), pa.array([9, None])]
    statistics = FileStatistics(["c"])
    for number in order:
        statistics.add(pa.record_batch([batches[number]], ["c"]))
    found = json.loads(statistics.to_json())
    assert (found["minValues"], found["maxValues"]) == ({"c": 1}, {"c": 9})
    assert (found["numRecords"], found["nullCount"]) == (6, {"c": 2})


@pytest.mark.parametrize(
    "column",
    [
        pa.nulls(2, pa.int64()),
        pa.array([0, YEAR_10000], MICROS),
        pa.array([0, -(1 << 62)], MICROS),
        pa.array([0, 1 << 30], pa.date32()),
    ],
)
def test_no_range_where_the_log_has_no_value_for_it(column: pa.Array) -> None:
    found = zone_map(column)
    assert (found["minValues"], found["maxValues"]) == ({}, {})


def test_only_ordered_types_get_a_zone_map() -> None:
    chosen = ("price", "note", "id", "day", "place", "gone", "id")
    assert statistics_columns(SCHEMA, chosen)[-2:] == ("id", "day")
    odd = pa.schema([("a.b", pa.int64()), ("a,b", pa.int64()), *METADATA])
    assert set(statistics_columns(odd, odd.names)) & {"a.b", "a,b"} == set()
