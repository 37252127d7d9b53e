"""Unions in JSON are tried branch by branch: in linear time together, whatever the schema."""

import random
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.kernels.byte_spans import ByteSpans
from reader.payload import DecodedPayload, PayloadDecoder
from tests.unit.payload.cases import decoder, shown
from tests.unit.payload.hostile.test_linear import decodes, seconds

Make = Callable[[int], str]


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def items(one: str, last: str = "true") -> Make:
    return lambda n: "[" + f"{one}," * (n // (len(one) + 1)) + last + "]"


LONGS = {"type": "map", "values": "long"}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 4000, "scale": 0}
CONNECT = WIDE | {"connect.name": "org.apache.kafka.connect.data.Decimal"}
# A branch, and what it reads nearly to the end before it refuses it.
LEAVES: dict[str, tuple[Any, Make]] = {
    "text that is not Unicode": (
        "text", lambda n: '{"x":{"a":' + items("1", '"\\ud800"')(n) + '}}'
    ),
    "text beside a wrong value": (
        "text", lambda n: '{"x":{"a":' + items("1")(n) + '},"y":true}'
    ),
    "keys in text": (
        "text", lambda n: '{"x":{"a":' + items('{"":1}')(n) + '},"y":true}'
    ),
    "nested text": (
        "text", lambda n: '{"x":' + '{"x":' * 150 + '"' + "a" * n + '"' + "}" * 150 + ',"y":true}'
    ),
    "longs": (array("long"), items("1")),
    "nulls": (array("long"), items("null")),
    "booleans": (array("boolean"), items("true", "1")),
    "strings": (array("string"), items('""')),
    "doubles": (array("double"), items("0.1234567890123456")),
    "digits": (array(WIDE), items("7" * 390)),
    "decimals": (array(WIDE), items("7")),
    "decimals in base64": (array(CONNECT), items('"AQ=="')),
    "records": (array("pair"), items('{"a":1,"b":2}')),
    "empty records": (array("pair"), items("{}")),
    "one string": ("string", lambda n: '"' + "é" * (n // 2) + '\\ud800"'),
    "base64": ("bytes", lambda n: '"' + "A" * (n // 4 * 4) + '!"'),
    "values of a map": (
        LONGS, lambda n: "{" + "".join(f'"{i}":1,' for i in range(n // 8)) + '"x":true}'
    ),
    "a key of a map": (LONGS, lambda n: '{"' + "é" * (n // 2) + '":true}'),
}  # fmt: skip
# Of branches in each union, from the outermost in.
WIDTHS = [(2,) * 7, (200,)]


class Unions:
    """Makes schemas of unions within unions; each record has a name of its own."""

    def __init__(self) -> None:
        self._names = 0

    def record(self, **fields: Any) -> dict[str, Any]:
        self._names += 1
        named = [{"name": name, "type": kind} for name, kind in fields.items()]
        return {"type": "record", "name": f"R{self._names}", "fields": named}

    def around(self, leaf: Any, widths: Sequence[int]) -> list[Any]:
        if widths:
            inner = [self.record(f=self.around(leaf, widths[1:])) for _ in range(widths[0])]
            return ["null", "string", *inner]
        if leaf == "text":
            made = self.record(x=None, y="long")
            made["fields"][0]["type"] = ["null", made["name"]]
            inner = [made]
        elif leaf == array("pair"):
            inner = [array(self.record(a="long", b="long"))]
        else:
            inner = [leaf]
        return ["null", *inner, "boolean"]


def union_decoder(leaf: Any, widths: Sequence[int]) -> PayloadDecoder:
    unions = Unions()
    return decoder(("JSON", unions.record(u=unions.around(leaf, widths))))


def payload(value: str, widths: Sequence[int]) -> bytes:
    return ('{"u":' + '{"f":' * len(widths) + value + "}" * len(widths) + "}").encode()


Measure = Callable[[Callable[[], object]], float]


class Lines:
    """Counts the lines of the reader's Python that a call runs: the same number in each run."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, call: Callable[[], object]) -> int:
        before, others = self._count, sys.gettrace()
        sys.settrace(self._called)
        try:
            call()
        finally:
            sys.settrace(others)
        return self._count - before

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        return self._line if "/reader/" in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._count += event == "line"
        return self._line


def above_empty(made: PayloadDecoder, content: bytes, measure: Measure) -> float:
    """Return what ``measure`` finds for ``content`` beyond the columns of any message."""
    whole, empty = decodes(made, content), decodes(made, b' {"u":1}')
    whole(), empty()
    return measure(whole) - measure(empty)


NUMBERS = union_decoder(array("long"), ())
PLAIN = payload(items("1", "1")(16_000), ())


def plain(measure: Measure) -> float:
    """Return what ``measure`` finds for a byte of numbers that are read in Python, but once."""
    return above_empty(NUMBERS, PLAIN, measure) / len(PLAIN)


def is_bounded(leaf: str, widths: Sequence[int]) -> None:
    kind, make = LEAVES[leaf]
    made = union_decoder(kind, widths)
    for size in (2_000, 16_000):
        content = payload(make(size), widths)
        lines = above_empty(made, content, Lines().of)
        assert lines < 6 * plain(Lines().of) * len(content) + 40_000
        # A line may call a function in C that takes long. A clock tells that roughly: a machine's
        # speed changes, so both are measured side by side, and the best of each is compared.
        found = one = float("inf")
        for _ in range(6):
            one = min(one, plain(seconds))
            found = min(found, above_empty(made, content, seconds) / len(content))
            most = 20 * one + 0.005 / size
            if found < most:
                break
        assert found < most, f"{size}: {found * 1e9:.0f} ns a byte, {most * 1e9:.0f} at most"


@pytest.mark.long
@pytest.mark.parametrize("widths", WIDTHS, ids=str)
@pytest.mark.parametrize("leaf", LEAVES)
def test_no_schema_makes_a_byte_dear(leaf: str, widths: Sequence[int]) -> None:
    is_bounded(leaf, widths)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_nor_do_others(seed: int) -> None:
    dice = random.Random(seed)
    widths = [dice.randint(1, 40)]
    while np.prod(widths) < 100:
        widths.append(dice.randint(1, 6))
    is_bounded(dice.choice(list(LEAVES)), widths)


@pytest.mark.parametrize(("branches", "same"), [(8, 0), (8, 10), (8, 19), (60, 0), (60, 19)])
def test_ordinary_unions_are_read(branches: int, same: int) -> None:
    """Records of 20 fields, of which the ``same`` first are in every branch; a value of the last,
    with the shortest numbers or with texts.
    """
    unions = Unions()
    kinds = [
        unions.record(**{f"f{i}" if i < same else f"b{b}_{i}": ["null", "long", "string"]
                         for i in range(20)})
        for b in range(branches)
    ]  # fmt: skip
    made = decoder(("JSON", unions.record(u=["null", *kinds])))
    names = [f"f{i}" if i < same else f"b{branches - 1}_{i}" for i in range(20)]
    for value in ("1", '"a text of some words, as there are in messages"'):
        inner = ",".join(f'"{name}":{value}' for name in names)
        found = decode_one(made, f'{{"u":{{{inner}}}}}'.encode())
        (row,) = shown(found.arrays["u"])
        assert not found.problems
        assert set(row) == {f"member{i}" for i in range(branches)}
        assert [name for name, member in row.items() if member] == [f"member{branches - 1}"]


def test_ordinary_branches_may_have_the_same_names() -> None:
    """Only the type of the last of 20 fields tells eight records apart."""
    unions = Unions()
    kinds = ["boolean", "bytes", array("long"), LONGS, WIDE, "double", array("string"), "string"]
    records = [unions.record(**{f"f{i}": "long" for i in range(19)}, last=kind) for kind in kinds]
    made = decoder(("JSON", unions.record(u=records)))
    inner = ",".join(f'"f{i}":{i}' for i in range(19))
    found = decode_one(made, f'{{"u":{{{inner},"last":"!"}}}}'.encode())
    (row,) = shown(found.arrays["u"])
    assert not found.problems
    assert row["member7"]["last"] == "!"


def test_a_union_of_many_records_may_be_there_often() -> None:
    """They were told apart one by one: 100 small events of 20 types were too many steps."""
    unions = Unions()
    types = [unions.record(id="long", **{f"k{i}": "long"}) for i in range(150)]
    made = decoder(("JSON", unions.record(u=array(["null", *types]))))
    content = payload("[" + ",".join(['{"id":1,"k149":2}'] * 1000) + "]", ())
    found = decode_one(made, content)
    assert not found.problems
    (items_of,) = shown(found.arrays["u"])
    assert [row["member149"] for row in items_of] == [{"id": 1, "k149": 2}] * 1000


def test_a_union_of_plain_types_may_be_there_often() -> None:
    made = decoder(("JSON", Unions().record(u=array(["boolean", "string", "long"]))))
    found = decode_one(made, b'{"u":[%s]}' % b",".join([b"0", b"1"] * 600))
    assert not found.problems
    assert len(shown(found.arrays["u"])[0]) == 1200


def test_beyond_the_steps_a_message_is_rescued() -> None:
    made = union_decoder(array("long"), (200,))
    content = payload(items("1")(8_000), (200,))
    found = decode_one(made, content)
    why = f"more than {4096 + 32 * len(content)} steps to find the branches of its unions"
    assert found.problems == {0: why}
    assert shown(found.arrays["u"]) == [None]


def decode_one(made: PayloadDecoder, content: bytes) -> DecodedPayload:
    return made.decode(ByteSpans.of(pa.array([content], pa.large_binary())), np.zeros(1, np.int64))
