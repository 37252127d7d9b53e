"""Results, batch by batch, to streams and files."""

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offloader.cli.render import SqlFormat
from offloader.cli.results import ResultFile, format_of, rows_of, unique_names, write_rows
from offloader.cli.topic_messages import MessageFormat, MessagePrinter
from reader.errors import ConfigurationError

MAPS = pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))
BATCH = pa.record_batch({"id": [1, 2], "name": ["a", None], "m": MAPS})


def result(count: int = 2) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    return BATCH.schema, iter([BATCH] * count)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["id", "id", "id"], ["id", "id_2", "id_3"]),
        (["id", "id", "id_2"], ["id", "id_3", "id_2"]),
    ],
)
def test_columns_of_one_name_are_told_apart(names: list[str], expected: list[str]) -> None:
    assert unique_names(names) == expected


def test_times_beyond_pythons_years_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    moments = pa.array([0, 253_402_300_800_000_000], pa.timestamp("us", "UTC"))
    inner = pa.StructArray.from_arrays([moments], ["at"])
    listed = pa.array([[0], [253_402_300_800_000_000]], pa.list_(moments.type))
    mapped = pa.array(
        [[("k", 0)], [("k", 253_402_300_800_000_000)]], pa.map_("string", moments.type)
    )
    days = pa.array([0, 2_932_897], pa.date32())
    batch = pa.record_batch({"t": moments, "s": inner, "l": listed, "m": mapped, "d": days})
    out = io.StringIO()
    assert write_rows(batch.schema.names, rows_of([batch]), SqlFormat.json, out) == 2
    early, late = json.loads(out.getvalue())
    assert early["t"] == "1970-01-01T00:00:00Z"
    far = "10000-01-01T00:00:00.000000Z"
    MessagePrinter(MessageFormat.table, "*", endless=True).show(
        pa.table(batch.columns, batch.schema.names)
    )
    assert far in capsys.readouterr().out
    assert late == {"t": far, "s": {"at": far}, "l": [far], "m": {"k": far}, "d": "10000-01-01"}


def test_columns_of_one_name_keep_their_values() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"])
    assert list(rows_of([batch])) == [{"id": 1, "id_2": 2}]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.csv", "csv"),
        ("a.JSON", "json"),
        ("a.parquet", "parquet"),
        ("a", "table"),
        ("a.b", "table"),
    ],
)
def test_a_files_name_says_its_format(name: str, kind: str) -> None:
    assert format_of(Path(name)) is SqlFormat(kind)


def test_text_is_written_as_rows_come() -> None:
    out = io.StringIO()

    def rows() -> Iterator[dict[str, int]]:
        for number in range(3):
            yield {"id": number}
            assert f"{number}" in out.getvalue(), "written before the next one is asked for"

    assert write_rows(["id"], rows(), SqlFormat.csv, out) == 3


@pytest.mark.parametrize(("kind", "text"), [("table", ""), ("csv", ""), ("json", "[]\n")])
def test_what_has_no_columns(kind: str, text: str) -> None:
    out = io.StringIO()
    assert write_rows([], [], SqlFormat(kind), out) == 0
    assert out.getvalue() == text


def test_parquet_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    many = pa.record_batch({"id": pa.array(range(100_000))})
    assert ResultFile(path, SqlFormat.parquet).write(many.schema, iter([many] * 3)) == 300_000
    assert pq.read_table(path).column("id").to_pylist() == [*range(100_000)] * 3
    assert pq.ParquetFile(path).num_row_groups == 2, "not one for all that came"


def test_parquet_of_no_rows_has_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert ResultFile(path, SqlFormat.parquet).write(BATCH.schema, iter(())) == 0
    assert pq.read_table(path).schema.names == ["id", "name", "m"]


def test_a_parquet_file_holds_one_result(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "out.parquet", SqlFormat.parquet)
    file.write(*result())
    with pytest.raises(ConfigurationError, match="a Parquet file holds one"):
        file.write(*result())
    assert pq.read_table(file.path).num_rows == 4


def test_results_follow_each_other_in_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    path.chmod(0o640)
    file = ResultFile(path, SqlFormat.csv)
    assert file.write(*result(1)) == 2
    with path.open(newline="") as written:
        rows = list(csv.reader(written))
    assert rows == [["id", "name", "m"], ["1", "a", '{"k": 1}'], ["2", "", ""]]
    file.write(*result(1))
    assert len(path.read_text().splitlines()) == 6
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def broken() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        ResultFile(path, SqlFormat.json).write(BATCH.schema, broken())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    ResultFile(path, SqlFormat.json).write(*result(1))
    assert json.loads(path.read_text())[0] == {"id": 1, "name": "a", "m": {"k": 1}}


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ResultFile(path, SqlFormat.csv).write(*result(1)) == 2
        assert os.read(reader, 100).startswith(b"id,name,m\n1,a,")
    finally:
        os.close(reader)


@pytest.mark.parametrize("name", ["", "missing/out.csv"])
def test_where_no_file_can_be(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="irectory"):
        ResultFile(tmp_path / name, SqlFormat.csv)
