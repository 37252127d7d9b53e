"""JSON number literals of any length and exponent: a value, or a problem of their own row."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.payload.json.numbers import exact_unscaled
from tests.support.examples import examples
from tests.unit.payload.cases import decode, decoder, rows

BYTES, FIXED = {"type": "bytes"}, {"type": "fixed", "name": "F", "size": 20}
NUMBERS: dict[str, Any] = {
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": {"type": "int", "logicalType": "date"},
    "time_ms": {"type": "int", "logicalType": "time-millis"},
    "time_us": {"type": "long", "logicalType": "time-micros"},
    "ms": {"type": "long", "logicalType": "timestamp-millis"},
    "us": {"type": "long", "logicalType": "timestamp-micros"},
    "ns": {"type": "long", "logicalType": "timestamp-nanos"},
    "decimal": {**BYTES, "logicalType": "decimal", "precision": 10, "scale": 2},
    "decimal38": {**BYTES, "logicalType": "decimal", "precision": 38, "scale": 38},
    "wide": {**BYTES, "logicalType": "decimal", "precision": 4000, "scale": 3000},
    "fixed": {**FIXED, "logicalType": "decimal", "precision": 20, "scale": 0},
    "connect": {**BYTES, "logicalType": "decimal", "precision": 10, "scale": 2,
                "connect.name": "org.apache.kafka.connect.data.Decimal"},
    "union": ["null", "long", {**BYTES, "logicalType": "decimal", "precision": 9, "scale": 1}],
    "text": ["null", {"type": "record", "name": "L", "fields": [{"name": "l", "type": "L"}]}],
}  # fmt: skip
SCHEMA = {"type": "record", "name": "R",
          "fields": [{"name": n, "type": t} for n, t in NUMBERS.items()]}  # fmt: skip
POWERS = [
    "e400", "e-400", "e999999999999999999", "e1000000000000000000", "E+999999999999999999999999",
    "e-999999999999999999", "e-1999999999999999998", "e-10000000000000000000000",
    "e" + "9" * 5000, "e-" + "0" * 5000 + "3", "e" + "0" * 30 + "1", "e2147483648", "e-4294967296",
]  # fmt: skip
MANTISSAS = ["0", "-0", "0.0", "1", "-1.5", "1" + "0" * 400, "0." + "0" * 400 + "1", "9" * 5000]


def digits(most: int) -> st.SearchStrategy[str]:
    runs = st.tuples(st.sampled_from("0123456789"), st.integers(0, most)).map(lambda r: r[0] * r[1])
    return st.lists(runs, max_size=4).map("".join)


@st.composite
def literals(draw: st.DrawFn, most: int = 1500) -> str:
    """A number as JSON writes it."""
    whole = draw(digits(most)).lstrip("0") or "0"
    fraction = draw(digits(most))
    power = draw(st.sampled_from(["", *POWERS]) | digits(3).map(lambda n: f"e-{n}1"))
    sign = draw(st.sampled_from(["", "-"]))
    return f"{sign}{whole}{'.' + fraction if fraction else ''}{power}"


@pytest.mark.parametrize("power", POWERS)
def test_a_huge_exponent_is_its_own_row_s_problem(power: str) -> None:
    """1e1000000000000000000 was an error of `decimal`, and so of each turn and query."""
    made = decoder(("JSON", SCHEMA))
    good = b'{"decimal":1.25,"long":3}'
    bad = [f'{{"{name}":{mantissa}{power}}}' for name in NUMBERS for mantissa in MANTISSAS]
    found = decode(made, [good, *(payload.encode() for payload in bad), good])
    columns = rows(found)
    assert columns[0] == columns[-1]
    assert str(columns[0]["decimal"]) == "1.25"
    for i, payload in enumerate(bad, 1):
        # What is neither a problem nor a value has been lost.
        assert i in found.problems or any(v is not None for v in columns[i].values()), payload


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(literals(), min_size=1, max_size=4))
def test_numbers_of_any_form(numbers: list[str]) -> None:
    made = decoder(("JSON", SCHEMA))
    payloads = [f'{{"{name}":{number}}}'.encode() for name in NUMBERS for number in numbers]
    found = decode(made, [*payloads, b'{"long":3}'])
    assert rows(found)[-1]["long"] == 3
    for i, row in enumerate(rows(found)[:-1]):
        assert i in found.problems or any(v is not None for v in row.values()), payloads[i]


@settings(max_examples=examples(500), deadline=None)
@given(literals(30), st.integers(1, 60), st.integers(0, 60))
def test_decimals_are_exact(text: str, precision: int, scale: int) -> None:
    found = exact_unscaled(text, precision, scale)
    mantissa, _, power = text.replace("E+", "e").partition("e")
    size = power.lstrip("-").lstrip("0") or "0"
    if len(size) > 4:
        assert found in (0, None)
        return
    if len(text) > 4000 and found is None:
        return
    unscaled = Fraction(f"{mantissa}e{'-' if power.startswith('-') else ''}{size}") * 10**scale
    fits = unscaled.denominator == 1 and abs(unscaled) < 10**precision
    assert found == (unscaled.numerator if fits else None)
