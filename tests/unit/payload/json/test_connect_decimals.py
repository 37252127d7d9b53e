"""Kafka Connect's decimals, as numbers and as base64, in columns that another version gave a type.

What the column holds exactly is in the column, and no value is another one; other fields stay.
"""

import base64
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.payload.cases import decode, decoder, rows

CONNECT = {"connect.name": "org.apache.kafka.connect.data.Decimal"}
UNSCALED = [0, 1, -1, 123, 1230, -1230, 12300, 123456789, -(10**9), 10**11]


def decimal(precision: int, scale: int, **more: str) -> dict[str, Any]:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
    return {**kind, **more}


def record(kind: Any) -> str:
    fields = [{"name": "a", "type": "long"}, {"name": "f", "type": kind}]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def base64_of(unscaled: int) -> str:
    size = unscaled.bit_length() // 8 + 1
    return json.dumps(base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode())


def in_column(column: Any, value: Fraction, scale: int) -> Any:
    """Return what a column shows of a value, or None if the column cannot hold it."""
    if column == "long":
        return value.numerator if value.denominator == 1 else None
    precision, own = column["precision"], column["scale"]
    if precision > 38:
        own = scale
    unscaled = value * 10**own
    if unscaled.denominator != 1 or abs(unscaled) >= 10**precision:
        return None
    exact = Decimal(unscaled.numerator).scaleb(-own)
    return format(exact, "f") if precision > 38 else exact


@pytest.mark.parametrize("scale", [0, 2, 3, 5])
@pytest.mark.parametrize(
    "column",
    [
        decimal(9, 2),
        decimal(9, 2, **CONNECT),
        decimal(20, 4, **CONNECT),
        decimal(45, 2, **CONNECT),
        "long",
    ],
)
def test_a_scale_that_changes(column: Any, scale: int) -> None:
    made = decoder(("JSON", record(column)), ("JSON", record(decimal(12, scale, **CONNECT))))
    values = [Fraction(unscaled, 10**scale) for unscaled in UNSCALED]
    texts = [format(Decimal(unscaled).scaleb(-scale), "f") for unscaled in UNSCALED]
    texts += [base64_of(unscaled) for unscaled in UNSCALED]
    expected = [in_column(column, value, scale) for value in values] * 2
    payloads = [f'{{"a":7,"f":{text}}}'.encode() for text in texts]
    found = decode(made, payloads, [1] * len(payloads))
    shown = rows(found)
    assert [row["f"] for row in shown] == expected
    assert {row["a"] for row in shown} == {7}
    assert set(found.problems) == {i for i, value in enumerate(expected) if value is None}


def test_a_precision_that_grows() -> None:
    made = decoder(
        ("JSON", record(decimal(9, 2, **CONNECT))), ("JSON", record(decimal(12, 2, **CONNECT)))
    )
    found = decode(made, [b'{"a":7,"f":1.23}', b'{"a":7,"f":12345678.90}'], 1)
    assert [row["f"] for row in rows(found)] == [Decimal("1.23"), None]
    assert list(found.problems) == [1]
