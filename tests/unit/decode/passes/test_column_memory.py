"""The kernel that fills the metadata columns, against the plain reading of the same tables."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from reader.decode import tables
from reader.decode.arrays import Rows
from reader.decode.metadata_columns import MetadataColumns
from reader.model.columns import METADATA, METADATA_NAMES

_TEXT = bytes(range(97, 123)) * 4
_Int64s = npt.NDArray[np.int64]


def _some(random: np.random.Generator, values: _Int64s, unset: int, share: float) -> _Int64s:
    found: _Int64s = np.where(random.random(len(values)) < share, unset, values)
    return found


def _tables(seed: int, count: int) -> Rows:
    """Rows of some entries; by the seed columns are NULL nowhere, here and there or everywhere."""
    random = np.random.default_rng(seed)
    entries: _Int64s = random.integers(-5, 50, (tables.E_FIELDS, 7))
    entries[tables.E_KIND] = random.choice([tables.MESSAGES, tables.BARE], 7, p=[0.8, 0.2])
    entries[tables.E_FLAGS] = random.choice([0, tables.HAS_INDEX], 7)
    entries[tables.E_REASON] = 0
    for field, unset in (
        (tables.E_PUBLISH, tables.NO_TIME),
        (tables.E_BROKER, tables.NO_TIME),
        (tables.E_DELIVER, tables.NO_TIME),
    ):
        entries[field] = _some(random, entries[field], unset, random.choice([0.0, 0.4, 1.0]))
    rows: _Int64s = random.integers(-5, 50, (tables.R_FIELDS, count + 3))
    rows[tables.R_ENTRY] = np.sort(random.integers(0, 7, count + 3))
    rows[tables.R_SOFT] = 0
    rows[tables.R_BASE64] = random.integers(0, 2, count + 3)
    rows[tables.R_BATCH] = random.integers(-1, 3, count + 3)
    rows[tables.R_EVENT] = _some(random, rows[tables.R_EVENT], tables.NO_TIME, 0.4)
    rows[tables.R_PROPERTIES] = -(seed % 2)
    for table, at, length in (
        (entries, tables.E_PRODUCER, tables.E_PRODUCER_LENGTH),
        (entries, tables.E_REPLICATED, tables.E_REPLICATED_LENGTH),
        (rows, tables.R_KEY, tables.R_KEY_LENGTH),
        (rows, tables.R_ORDERING, tables.R_ORDERING_LENGTH),
    ):
        some = table.shape[1]
        sizes: _Int64s = random.integers(0, 30, size=(some,))
        table[length] = _some(random, sizes, -1, random.choice([0.0, 0.5]))
        table[at] = random.integers(0, len(_TEXT) - 30, some)
        table[at] = np.where(random.random(some) < 0.5, table[at], ~table[at])
    return Rows(
        partition=3,
        ledger_ids=np.arange(40, 47),
        entry_ids=np.arange(100, 107),
        arena=np.frombuffer(_TEXT, np.uint8),
        inflated=np.frombuffer(_TEXT[::-1], np.uint8),
        entries=entries,
        rows=rows,
        pairs=np.empty((tables.P_FIELDS, 0), np.int64),
        count=count,
    )


def _expected(rows: Rows) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in METADATA_NAMES}

    def text(table: _Int64s, at: int, which: int) -> bytes | None:
        start, size = int(table[at, which]), int(table[at + 1, which])
        source, start = (rows.arena, start) if start >= 0 else (rows.inflated, ~start)
        return None if size < 0 else source[start : start + size].tobytes()

    for r in range(rows.count):
        i = int(rows.rows[tables.R_ENTRY, r])
        e, row = rows.entries[:, i], rows.rows[:, r]
        times = {
            "__publishTime": e[tables.E_PUBLISH],
            "__eventTime": row[tables.R_EVENT],
            "__brokerPublishTime": e[tables.E_BROKER],
            "__deliverAt": e[tables.E_DELIVER],
        }
        index = e[tables.E_INDEX]
        if row[tables.R_BATCH] >= 0:
            index = index - (e[tables.E_MESSAGES] - 1) + row[tables.R_BATCH]
        key, producer = text(rows.rows, tables.R_KEY, r), text(rows.entries, tables.E_PRODUCER, i)
        origin = text(rows.entries, tables.E_REPLICATED, i)
        values: dict[str, Any] = {
            name: None if at == tables.NO_TIME else int(at) for name, at in times.items()
        } | {
            "__partition": 3,
            "__ledgerId": int(rows.ledger_ids[i]),
            "__entryId": int(rows.entry_ids[i]),
            "__batchIndex": int(row[tables.R_BATCH]),
            "__key": None if key is None else key.decode(),
            "__keyBase64": None if key is None else bool(row[tables.R_BASE64]),
            "__orderingKey": text(rows.rows, tables.R_ORDERING, r),
            "__messageProperties": None if row[tables.R_PROPERTIES] < 0 else [],
            "__index": int(index) if e[tables.E_FLAGS] & tables.HAS_INDEX else None,
            "__producerName": None if producer is None else producer.decode(),
            "__replicatedFrom": None if origin is None else origin.decode(),
            "__sequenceId": None
            if e[tables.E_KIND] == tables.BARE
            else int(row[tables.R_SEQUENCE]),
            "__schemaVersion": int(e[tables.E_SCHEMA]) if e[tables.E_SCHEMA] >= 0 else None,
            "__tombstone": bool(
                e[tables.E_KIND] == tables.MESSAGES and row[tables.R_PAYLOAD_LENGTH] <= 0
            ),
            "__encryptionContext": None,
            "__otherMetadata": None,
            "__firstChunkLedgerId": int(e[tables.E_BEGIN_LEDGER])
            if e[tables.E_BEGIN_LEDGER] >= 0
            else None,
            "__firstChunkEntryId": int(e[tables.E_BEGIN_ENTRY])
            if e[tables.E_BEGIN_ENTRY] >= 0
            else None,
        }
        for name, value in values.items():
            found[name].append(value)
    return found


def _values(array: pa.Array) -> list[Any]:
    array.validate(full=True)
    plain = array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
    values: list[Any] = plain.to_pylist()
    return values


@pytest.mark.parametrize("names", [METADATA_NAMES, ("__key", "__deliverAt"), ()])
def test_columns_are_what_the_tables_say(names: tuple[str, ...]) -> None:
    columns = MetadataColumns(names)
    for seed, count in enumerate([1, 7, 8, 9, 63, 64, 65, 3, 200, 130, 1, 4000]):
        rows = _tables(seed, count)
        arrays, versions, rescued = columns.of(rows, encrypted=False)
        expected = _expected(rows)
        given = [n for n in names if n not in ("__topic", "__kind", "__rescued", "__error")]
        assert list(arrays) == given
        assert not rescued
        for name in given:
            assert arrays[name].type == METADATA.field(name).type
            assert _values(arrays[name]) == expected[name], (seed, name)
        assert versions.tolist() == rows.entry(tables.E_SCHEMA).tolist()


@pytest.mark.parametrize("last", [False, True])
def test_a_rescued_row_is_seen(last: bool) -> None:
    rows = _tables(1, 9)
    columns = MetadataColumns(())
    rows.rows[tables.R_SOFT, 9:] = 1  # behind the rows
    assert not columns.of(rows, encrypted=False)[2]
    if last:
        rows.rows[tables.R_SOFT, 8] = 1
    else:
        rows.entries[tables.E_REASON, rows.rows[tables.R_ENTRY, 0]] = 1
    assert columns.of(rows, encrypted=False)[2]


@pytest.mark.parametrize(
    ("field", "value"), [(tables.R_KEY, 90), (tables.R_KEY, ~90), (tables.R_ENTRY, 7)]
)
def test_nothing_outside_of_the_tables_is_read(field: int, value: int) -> None:
    rows = _tables(1, 9)
    rows.rows[tables.R_KEY_LENGTH, 4] = 29
    rows.rows[field, 4] = value
    with pytest.raises(IndexError):
        MetadataColumns(("__key",)).of(rows, encrypted=False)
