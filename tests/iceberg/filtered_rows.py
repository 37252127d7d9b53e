"""A table whose files differ in what they hold of each type, and conditions on each column of it.

Whatever a condition is on, the rows must be those of the plain Parquet files, read by the same
engine: what may differ is only which files and row groups are skipped by Iceberg's metadata.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from reader.storage import Storage
from tests.iceberg.typed_rows import fill_rows
from tests.support.tables import TOPIC, maintainer

CHOSEN = ("number", "few", "day", "moment", "text", "real", "later")
"""With statistics, where their type has any."""

FIELDS = pa.schema(
    [
        ("number", pa.int64()),
        ("few", pa.int32()),
        ("real", pa.float64()),
        ("half", pa.float32()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("person", pa.struct([("name", pa.string()), ("age", pa.int64())])),
        ("tags", pa.list_(pa.string())),
    ]
)
_LATER = pa.schema([*FIELDS, ("later", pa.int64())])

_LONG = "x" * 40
_LEAST, _MOST = -(2**63), 2**63 - 1


def _row(place: int, **given: Any) -> dict[str, Any]:
    """``place`` orders the files' values; they begin below zero, and before 1970."""
    number = place - 20
    values = {
        "number": number,
        "few": number,
        "real": number / 4,
        "half": number / 4,
        "flag": place % 2 == 0,
        "text": f"{_LONG}{place:03}",
        "raw": bytes([place]) * 20,
        "price": Decimal(number) / 1000,
        "day": date.fromordinal(date(1970, 1, 1).toordinal() + number),
        "moment": datetime.fromtimestamp(number * 3600, UTC).replace(microsecond=place * 7 + 1),
        "person": {"name": f"n{place}", "age": number},
        "tags": [f"t{place}", None],
        "__publishTime": datetime.fromtimestamp(1_700_000_000 + place, UTC),
        "__key": f"k{place}",
    }
    return {**values, **given}


_FILES: list[list[dict[str, Any]]] = [
    [_row(n) for n in range(5)],
    [_row(n) for n in range(3, 12)],
    [{}, {}],  # NULL alone
    [_row(18), {}, _row(20), _row(22)],
    [
        _row(30, real=float("nan"), half=float("nan"), text="", raw=b"", tags=[], person=None),
        _row(31, real=-0.0, half=-0.0, text="\U0001f600\uffff", price=Decimal("-0.0000000001")),
        _row(32, real=0.0, half=0.0, text="é", person={"name": None, "age": None}),
        _row(33, real=float("-inf"), half=float("inf"), text="\x00a"),
    ],
    [
        _row(
            40, number=_LEAST, few=-(2**31), day=date(1, 1, 2), moment=datetime(1, 1, 2, tzinfo=UTC)
        ),
        _row(
            41,
            number=_MOST,
            few=2**31 - 1,
            real=float("inf"),
            day=date(9999, 12, 31),
            moment=datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC),
            price=Decimal("9999999999999999999999999999.9999999999"),
        ),
    ],
]


def fill_filtered(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files as offloaded ones are, one that is compacted, and a column that came later."""
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    for ledger, rows in enumerate(_FILES[:2], start=1):
        fill_rows(storage, ledger, rows, FIELDS, CHOSEN)
    assert maintainer(storage).maintain(TOPIC).compacted == 2
    for ledger, rows in enumerate(_FILES[2:], start=3):
        fill_rows(storage, ledger, rows, FIELDS, CHOSEN)
    later = [_row(50, later=-5), _row(51, later=None), _row(52, later=5)]
    fill_rows(storage, 20, later, _LATER, CHOSEN)


def _text(value: str) -> str:
    return f"'{value}'"


def _real(value: str) -> str:
    return f"CAST('{value}' AS DOUBLE)"


def _price(value: str) -> str:
    return f"CAST('{value}' AS DECIMAL(38, 10))"


def _day(value: str) -> str:
    return f"DATE '{value}'"


def _moment(value: str) -> str:
    return f"{{moment}} '{value}+00:00'"  # each engine's own word for an instant


COLUMNS: dict[str, list[str]] = {
    "number": ["-17", "0", "2", str(_MOST), "-9223372036854775807"],
    "few": ["-17", "0", "2", "2147483647"],
    "later": ["-5", "0", "5"],
    "person.age": ["-17", "2"],
    "real": [*map(_real, ("-4.25", "0.0", "-0.0", "NaN", "Infinity", "-Infinity"))],
    "half": [*map(_real, ("-4.25", "0.0", "-0.0", "NaN"))],
    "flag": ["true", "false"],
    "text": [*map(_text, (f"{_LONG}003", f"{_LONG}022", _LONG, "", "é", "\U0001f600\uffff"))],
    "person.name": [*map(_text, ("n3", "n22"))],
    "price": [*map(_price, ("-0.017", "-0.0000000001", "0.002"))],
    "day": [*map(_day, ("1969-12-15", "1970-01-01", "9999-12-31"))],
    "moment": [
        *map(
            _moment,
            (
                "1969-12-31 07:00:00.000022",
                "1970-01-01 02:00:00.000155",
                "2026-02-28 23:59:59.999999",
            ),
        )
    ],
    "__publishTime": [_moment("2023-11-14 22:13:23")],
    "__ledgerId": ["2", "6"],
    "__key": [*map(_text, ("k3", "k50"))],
}
"""By column: literals, some of which are in the table and some between what is there."""


def conditions() -> Iterator[str]:
    """Each way to compare, with each literal."""
    for column, literals in COLUMNS.items():
        for literal in literals:
            for sign in ("=", "<", ">"):
                yield f"{column} {sign} {literal}"
        yield f"{column} IN ({', '.join(literals)})"
        yield f"NOT ({column} IN ({', '.join(literals)}))"
        yield f"{column} IS NULL"
        yield f"{column} IS NOT NULL"
    for column in ("raw", "tags", "person"):
        yield f"{column} IS NULL"
    yield "number > 0 AND real < 0"
    yield "number IS NULL OR few = -17"
    yield f"text LIKE '{_LONG}00%'"
