"""Any columns to any schema: written, so that they can be read, or one clear error says why.

Nothing else is raised, and a part of a batch is written as in the whole.
"""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reader.encode.payload import PayloadEncoder
from reader.errors import ConfigurationError, UnsupportedError
from reader.model.columns import TIMESTAMP
from reader.payload import payload_fields
from tests.support.examples import examples
from tests.unit.encode.test_round_trips import arrow_columns, sliced
from tests.unit.encode.writing import info
from tests.unit.payload.cases import Given, Names, decode, decoder, key_value, records
from tests.unit.payload.protobuf_cases import native
from tests.unit.payload.test_fuzz import PRIMITIVES, protobuf_files
from tests.unit.payload.test_types import LINK, MAPPING, named

BOUNDED = settings(
    max_examples=examples(400),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large,
                           HealthCheck.filter_too_much],
)  # fmt: skip
SMALL = st.integers(-(1 << 33), 1 << 33)
TEXTS = st.sampled_from(["", "A", "A", "1", "-7", "1.25", "true", "{}", '{"v":1}', "[]", "ä",
                         "6ba7b810-9dad-11d1-80b4-00c04fd430c8"])  # fmt: skip
MORE: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-3, 300)),
    (pa.string(), TEXTS),
    (pa.binary(), st.sampled_from([b"", b"hi", b"abcdefghijkl"])),
    (pa.null(), st.none()),
    (pa.date32(), st.integers(-(1 << 31), (1 << 31) - 1)),
    (TIMESTAMP, SMALL),
    (pa.timestamp("us"), SMALL),
    (pa.duration("us"), SMALL),
    (pa.month_day_nano_interval(), st.none()),
    (pa.uint8(), st.integers(0, 255)),
    (pa.time64("us"), st.integers(0, 86_399_999_999)),
]


@st.composite
def columns(draw: st.DrawFn, wanted: pa.DataType | None = None) -> tuple[pa.DataType, Any]:
    """Often of about the type that is wanted."""
    if wanted is not None and draw(st.integers(0, 9)):
        if pa.types.is_list(wanted):
            kind, values = draw(columns(wanted.value_type))
            return pa.list_(kind), st.none() | st.lists(values, max_size=3)
        if pa.types.is_map(wanted):
            kind, values = draw(columns(wanted.item_type))
            pairs = st.lists(st.tuples(TEXTS, values), max_size=3)
            return pa.map_(pa.string(), kind), pairs
        if pa.types.is_struct(wanted):
            members = [(f.name, *draw(columns(f.type))) for f in wanted if draw(st.integers(0, 9))]
            struct = pa.struct([(name, kind) for name, kind, _ in members])
            return struct, st.none() | st.fixed_dictionaries({n: v for n, _, v in members})
        fitting = [one for one in MORE if one[0] == wanted]
        if fitting:
            return fitting[0][0], fitting[0][1] | st.none()
        if pa.types.is_boolean(wanted):
            return wanted, st.booleans()
        if pa.types.is_float64(wanted):
            return wanted, st.floats()
        if pa.types.is_decimal128(wanted):
            return pa.decimal128(38, wanted.scale), st.none() | st.decimals(
                -1000, 1000, places=wanted.scale, allow_nan=False
            )
    kind, values = draw(st.sampled_from(MORE) | arrow_columns(depth=1))
    return kind, st.none() | values


@st.composite
def schemas(draw: st.DrawFn, depth: int = 1) -> Given:
    choice = draw(st.integers(0, 5 if depth else 4))
    if choice == 0:
        return draw(st.sampled_from(PRIMITIVES)), ""
    if choice in (1, 2):
        kinds = draw(st.lists(st.sampled_from([one[0] for one in MAPPING.values()]), max_size=4))
        fields = {f"f{i}": _renamed(kind, i) for i, kind in enumerate(kinds)}
        for name, kind in fields.items():
            if not isinstance(kind, list) and kind != "null" and draw(st.integers(0, 3)):
                fields[name] = ["null", kind]
        schema = named(fields)
        return ("AVRO" if choice == 1 else "JSON"), json.dumps(schema)
    if choice == 3:
        kind = draw(st.sampled_from(["AVRO", "JSON"]))
        return kind, json.dumps(draw(records(Names(), 2)).schema)
    if choice == 4:
        return native(draw(protobuf_files()))
    encoding = draw(st.sampled_from(["INLINE", "SEPARATED"]))
    return key_value(draw(schemas(0)), draw(schemas(0)), encoding)


def _renamed(kind: Any, number: int) -> Any:
    """Types of one name may be but one."""
    text = json.dumps(kind)
    for name in "FESL":
        text = text.replace(f'"name": "{name}"', f'"name": "{name}{number}"')
    return json.loads(text.replace('"L"', f'"L{number}"')) if kind is LINK else json.loads(text)


@BOUNDED
@given(schemas(), st.data())
def test_columns_are_written_or_refused(given_: Given, data: st.DataObject) -> None:
    made = decoder(given_)
    fields = payload_fields([info(given_)])
    arrays, names = [], []
    count = data.draw(st.integers(1, 4))
    for field in fields:
        if data.draw(st.integers(0, 12)):
            kind, values = data.draw(columns(field.type))
            rows = data.draw(st.lists(values, min_size=count, max_size=count))
            arrays.append(_array(rows, kind))
            names.append(field.name)
    assume(arrays)
    batch = pa.record_batch(arrays, names=names)
    try:
        encoder = PayloadEncoder(info(given_), batch.schema)
        found = encoder.encode(batch)
    except (ConfigurationError, UnsupportedError) as error:
        assert error.hint
        assert "\n" not in error.message
        if "row" in error.context:
            row = int(str(error.context["row"]))
            with pytest.raises(ConfigurationError) as alone:
                encoder.encode(batch.slice(row, 1))
            assert alone.value.context == {**error.context, "row": 0}
        return
    payloads = [found.values[i] for i in range(count)]
    keys = None if found.keys is None else [found.keys[i] for i in range(count)]
    assert not decode(made, payloads, 0, keys).problems
    part = encoder.encode(sliced(data, batch))
    assert [part.values[i] for i in range(count)] == payloads


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError):
        assume(False)
        raise
