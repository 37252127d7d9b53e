"""Each file's statistics come back from the log, whatever columns the table has."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from offloader.commit import recorded_statistics
from offloader.commit.delta_committer import DeltaCommitter
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from reader.plan.cold_files import table_files
from reader.storage import Storage, open_storage
from tests.support.additions import addition, open_table

TOPIC = Topic("public", "default", "orders")
TEXTS = pa.struct([("a", pa.string()), ("b", pa.string())])
LISTS = pa.struct([("a", pa.list_(pa.string()))])


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path)))


def limits(storage: Storage) -> list[tuple[int | None, int | None]]:
    return [file.limit("__ledgerId") for file in table_files(open_table(storage, TOPIC))]


@pytest.mark.parametrize(
    "field",
    [
        pa.field("s", TEXTS),
        pa.field("s", LISTS),
        pa.field("s", pa.struct([("inner", LISTS)])),
        pa.field("s", pa.struct([("x", pa.float64()), ("inner", pa.struct([("s", TEXTS)]))])),
        pa.field("größe, a", pa.struct([("x.y", pa.int64()), ("`,`", LISTS)])),
        pa.field("l", pa.list_(TEXTS)),
        pa.field("m", pa.map_(pa.string(), LISTS)),
    ],
    ids=str,
)
def test_a_struct_takes_none_away(storage: Storage, field: pa.Field) -> None:
    """delta-rs gives none at all for a table with a struct of which no field may have any."""
    id_ = pa.field("id", pa.int64())
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1], fields=pa.schema([id_])))
    fields = pa.schema([id_, field])
    before = 1
    for ledger in (2, 3):
        chosen = ("id",) if ledger == 3 else ()
        more = addition(storage, TOPIC, [ledger], before=before, fields=fields, statistics=chosen)
        DeltaCommitter(storage).commit(open_table(storage, TOPIC), more)
        before = ledger
    assert sorted(limits(storage)) == [(1, 1), (2, 2), (3, 3)]
    recorded = recorded_statistics(open_table(storage, TOPIC))
    assert recorded[-1] == "id"
    assert not [name for name in recorded[:-1] if not name.startswith("__")]


def test_a_table_from_before_is_mended_by_its_next_commit(storage: Storage) -> None:
    fields = pa.schema([("s", TEXTS)])
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1], fields=fields))
    names = "__partition,__ledgerId,__entryId,__publishTime,__eventTime"
    open_table(storage, TOPIC).handle.alter.set_table_properties(
        {"delta.dataSkippingStatsColumns": names}
    )
    assert limits(storage) == [(None, None)], "if delta-rs gives them now: the fields may go"
    table = open_table(storage, TOPIC)
    assert table.partitions() == [Partition(TOPIC, 0)]
    DeltaCommitter(storage).commit(table, addition(storage, TOPIC, [2], before=1, fields=fields))
    assert open_table(storage, TOPIC).partitions() == [Partition(TOPIC, 0)]
    assert sorted(limits(storage)) == [(1, 1), (2, 2)]


def test_rows_of_an_external_writer_have_no_partition(storage: Storage) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1], partition=2))
    handle = open_table(storage, TOPIC).handle
    row = pa.Table.from_pylist([{"__ledgerId": 7}], pa.schema([("__ledgerId", pa.int64())]))
    write_deltalake(handle, row, mode="append", schema_mode="merge")
    assert open_table(storage, TOPIC).partitions() == [Partition(TOPIC, 2)]


def test_a_file_that_is_gone_is_an_error_of_the_storage(storage: Storage, tmp_path: Path) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1]))
    for file in tmp_path.rglob("*.parquet"):
        file.unlink()
    table = open_table(storage, TOPIC)
    with pytest.raises(UnavailableError, match="cannot read the table"):
        list(table.batches(["__ledgerId"]))
    with pytest.raises(UnavailableError, match="cannot read the table"):
        table.count(pc.field("__ledgerId") == 1)
