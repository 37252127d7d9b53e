"""What a decoder makes of payloads is bounded, whatever they say."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.kernels.byte_spans import ByteSpans
from reader.payload import DecodedPayload, OutputBudget, PayloadDecoder, payload_fields
from tests.support.examples import examples
from tests.support.schemas import avro_record
from tests.unit.decode.entries import varint
from tests.unit.payload.cases import Given, decode, decoder, rows, shown, versions
from tests.unit.payload.hostile.amplified import zigzag
from tests.unit.payload.protobuf_cases import native, proto_file, sized
from tests.unit.payload.test_fuzz import topics


def test_as_many_messages_as_fit() -> None:
    infos = versions(("STRING", ""))
    made = PayloadDecoder(infos, payload_fields(infos), budget=OutputBudget(batch=10_000))
    payloads = [b"a" * 1000] * 100
    counts = []
    while payloads:
        spans = ByteSpans.of(pa.array(payloads, pa.large_binary()))
        found = made.decode(spans, np.zeros(len(payloads), np.int64))
        assert len(found.arrays["value"]) == found.count
        counts.append(found.count)
        payloads = payloads[found.count :]
    assert counts == [8] * 12 + [4]


def test_the_bound_of_a_message_rises_with_the_setting() -> None:
    bounds = [OutputBudget.for_payloads(mib << 20).message >> 20 for mib in (1, 32, 33, 64, 512)]
    assert bounds == [128, 128, 132, 256, 1024]


def test_one_message_at_least() -> None:
    infos = versions(("STRING", ""))
    made = PayloadDecoder(infos, payload_fields(infos), budget=OutputBudget(batch=1))
    spans = ByteSpans.of(pa.array([b"ab", b"cd"], pa.large_binary()))
    assert made.decode(spans, np.zeros(2, np.int64)).count == 1
    assert made.decode(spans.slice(0), np.zeros(0, np.int64)).count == 0


@settings(
    max_examples=examples(60), deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(topics(), st.sampled_from([1, 500, 2000]))
def test_in_pieces_rows_are_the_same(
    topic: tuple[list[Given], list[bytes | None], list[int], list[Any]], room: int
) -> None:
    """Wherever a call stops, for whichever of the decoders of its rows."""
    schemas, payloads, numbers, keys = topic
    payloads, numbers, keys = payloads * 9, numbers * 9, keys * 9
    infos = versions(*schemas)
    fields = payload_fields(infos)
    whole = decode(PayloadDecoder(infos, fields), payloads, numbers, keys)
    made = PayloadDecoder(infos, fields, budget=OutputBudget(batch=room))
    parts, problems, at = [], dict[int, str](), 0
    while at < len(payloads):
        found = made.decode(
            ByteSpans.of(pa.array(payloads[at:], pa.large_binary())),
            np.array(numbers[at:], np.int64),
            pa.array(keys[at:], pa.large_binary()),
        )
        assert 0 < found.count <= len(payloads) - at
        assert {len(array) for array in found.arrays.values()} <= {found.count}
        parts.append(found)
        problems |= {at + row: why for row, why in found.problems.items()}
        at += found.count
    assert problems == whole.problems
    for name, array in whole.arrays.items():
        pieces = pa.concat_arrays([part.arrays[name] for part in parts])
        assert repr(shown(pieces)) == repr(shown(array))


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_items_stop_a_call_and_one_message_may_be_rescued(kind: str) -> None:
    items = {"type": "array", "items": "long"}
    infos = versions((kind, avro_record("R", {"a": items, "i": "long"})))
    budget = OutputBudget(batch=40_000, message=80_000)

    def payload(count: int) -> bytes:
        if kind == "JSON":
            return b'{"a":[' + b",".join([b"1"] * count) + b'],"i":1}'
        return zigzag(count) + b"\2" * count + b"\0\2" if count else b"\0\2"

    # An item is counted as 16 bytes or 24: the fourth is too large, the last but one fills a call.
    counts = [1000, 1000, 1000, 6000, 0, 1, 3000, 3]
    made = PayloadDecoder(infos, payload_fields(infos), budget=budget)
    payloads, calls, lengths = [payload(count) for count in counts], [], []
    while payloads:
        found = decode_some(made, payloads)
        lengths += [None if v is None else len(v) for v in shown(found.arrays["a"])]
        calls.append((found.count, list(found.problems)))
        payloads = payloads[found.count :]
    assert lengths == [1000, 1000, 1000, None, 0, 1, 3000, 3]
    assert sum(len(problems) for _, problems in calls) == 1
    assert len(calls) >= 3


def decode_some(made: PayloadDecoder, payloads: list[bytes]) -> DecodedPayload:
    spans = ByteSpans.of(pa.array(payloads, pa.large_binary()))
    return made.decode(spans, np.zeros(len(payloads), np.int64))


def test_text_is_counted_as_python_writes_it() -> None:
    """A control character is six in JSON, an emoji makes each character four bytes."""
    avro = avro_record("N", {"next": ["null", "N"], "s": "string"})
    inner = zigzag(20_000) + b"%b"
    plain = [
        b"\2\0" + inner % (b"a" * 20_000) + b"\2b",
        b"\2\0" + inner % (b"\1" * 20_000) + b"\2b",
    ]
    assert problems_of(("AVRO", avro), plain) == [1]
    union = avro_record("R", {"s": "string", "u": ["long", "string"]})
    text = '{"s":"%s","u":1}'
    texts = [text % ("a" * 30_000), text % ("😀" + "a" * 30_000)]
    texts.append(text % ("\\ud83d\\ude00" + "a" * 30_000))
    assert problems_of(("JSON", union), [one.encode() for one in texts]) == [1, 2]
    schema = native(proto_file({"message M": ["string s = 1"]}))
    messages = [b"\x0a" + varint(size) + b"a" * size for size in (30_000, 50_000)]
    assert problems_of(schema, messages) == [1]


def test_a_text_that_is_too_large_behind_what_fills_a_call() -> None:
    """Its entry failed each query and turn of the topic, with an IndexError."""
    infos = versions(("AVRO", avro_record("N", {"s": "string", "next": ["null", "N"]})))
    budget = OutputBudget(batch=40_000, message=80_000)
    made = PayloadDecoder(infos, payload_fields(infos), budget=budget)
    # Of a short one all is counted as if it was to be escaped: two fill a call.
    texts = ["a" * 3000] * 3 + ["\1" * 20_000, "b", "\1" * 20_000]
    payloads = [zigzag(len(text)) + text.encode() + b"\0" for text in texts]
    values, problems = list[Any](), list[int]()
    while payloads:
        found = decode_some(made, payloads)
        problems += [len(values) + row for row in found.problems]
        values += shown(found.arrays["s"])
        payloads = payloads[found.count :]
    assert values == [*texts[:3], None, "b", None]
    assert problems == [3, 5]


def test_what_a_union_gives_up_is_not_counted() -> None:
    """Only the columns of the branch that takes the value."""
    fields = [{"name": f"w{i}", "type": "long"} for i in range(40)]
    branches = [
        avro_record(
            f"B{i}",
            {
                "f": {
                    "type": "array",
                    "items": {"type": "record", "name": f"W{i}", "fields": fields},
                },
                "g": kind,
            },
        )
        for i, kind in enumerate(["boolean", "bytes", "string"])
    ]
    schema: Given = ("JSON", avro_record("R", {"u": branches}))
    text = '{"u":{"f":[%s],"g":"!"}}'
    texts = [text % ",".join(["{}"] * count) for count in (100, 140)]
    assert problems_of(schema, [one.encode() for one in texts]) == [1]


WIDE = [f"double w{i} = {i + 3}" for i in range(500)]


@pytest.mark.parametrize(
    ("declarations", "columns", "one"),
    [
        ({"message M": ["repeated M l = 1", *WIDE]}, None, b"\x0a\0"),
        ({"message N": WIDE, "message M": ["int64 i = 1", "repeated N l = 2"]}, ["i"], b"\x12\0"),
        ({"message N": WIDE, "message M": ["map<int64, N> m = 1"]}, None, b"\x0a\0"),
    ],
    ids=["text", "no column", "map"],
)
def test_all_that_the_parser_makes_is_counted(
    declarations: dict[str, list[str]], columns: list[str] | None, one: bytes
) -> None:
    """Two bytes are a message with 500 places, whatever becomes of it: 200 kB took 1.5 GiB."""
    infos = versions(native(proto_file(declarations)))
    fields = payload_fields(infos)
    if columns is not None:
        fields = pa.schema([fields.field(name) for name in columns])
    few, many = one * 9, one * 40_000
    if columns is None and "message N" not in declarations:
        few, many = (b"\x0a" + varint(len(some)) + some for some in (few, many))
    found = decode_some(PayloadDecoder(infos, fields), [few, many])
    assert "bytes of values" in found.problems[1]
    assert "bytes of values" not in found.problems.get(0, "")


def test_what_is_narrow_may_be_there_often() -> None:
    """A tree of 100,000 messages, as JSON text; a choice takes the place of one field."""
    choice = [f"oneof o string c{i} = {i + 5}" for i in range(300)]
    lines = ["repeated M l = 1", "int64 a = 2", "string s = 3", *choice]
    one = sized(1, b"\x10\1\x1a\x03abc")
    payload = sized(1, one * 100_000)
    (row,) = rows(decode(decoder(native(proto_file({"message M": lines}))), [payload]))
    assert str(row).count("abc") == 100_000


def problems_of(schema: Given, payloads: list[bytes]) -> list[int]:
    infos = versions(schema)
    budget = OutputBudget(message=80_000)
    return list(
        decode_some(PayloadDecoder(infos, payload_fields(infos), budget=budget), payloads).problems
    )


def test_the_digits_of_wide_decimals_are_counted() -> None:
    """Two bytes in JSON are 4,000 in the column, where all digits stand behind the point."""
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 4000, "scale": 3999}
    many = {"type": "array", "items": wide}
    schema = {"type": "record", "name": "R", "fields": [{"name": "d", "type": many}]}
    infos = versions(("JSON", schema))
    made = PayloadDecoder(infos, payload_fields(infos), budget=OutputBudget(message=4 << 20))
    few, flood = (f'{{"d":[{",".join(["7"] * n)}]}}'.encode() for n in (100, 1_200))
    found = decode(made, [few, flood])
    assert [len(one) for one in rows(found)[0]["d"]] == [4001] * 100
    assert "bytes of columns" in found.problems[1]
    assert rows(found)[1]["d"] is None
