"""Files are left out only where the log's statistics are sure that no row matches."""

import random
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from reader.model import Position, Topic
from reader.plan import AllOf, AnyOf, ColdFile, Filter, NullTest, Predicate, Unequal, files_to_read
from reader.plan.cold_files import plan_files, table_files
from reader.plan.offloaded import cold_part, older_ledgers
from reader.table import TopicNumbers, TopicTable
from tests.support.additions import numbers_of
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import START, World

# A file a row: rows, NULLs, least and greatest id; the last says nothing of it.
FILES = pa.table(
    {
        "num_records": [10, 10, 10, 10, None],
        "null_count.id": [0, 5, 10, None, None],
        "min.id": pa.array([1, 5, None, 7, None], pa.int64()),
        "max.id": pa.array([4, 5, None, 9, None], pa.int64()),
    }
)


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([], "yyyyy"),
        ([Predicate("id", "=", (3,))], "ynnny"),
        ([Predicate("id", "=", (5,))], "nynny"),
        ([Predicate("id", "<", (5,))], "ynnny"),
        ([Predicate("id", "<=", (5,))], "yynny"),
        ([Predicate("id", ">", (5,))], "nnnyy"),
        ([Predicate("id", ">=", (5,))], "nynyy"),
        ([Predicate("id", "in", (0, 5, 100))], "nynny"),
        ([Predicate("id", "in", (8, 4))], "ynnyy"),
        ([Predicate("id", "=", (None,))], "yynyy"),
        ([Unequal("id", 5)], "ynnyy"),
        ([Unequal("id", 4)], "yynyy"),
        ([NullTest("id", True)], "nyyyy"),
        ([NullTest("id", False)], "yynyy"),
        ([Predicate("id", ">", (1,)), Predicate("id", "<", (5,))], "ynnny"),
        ([AllOf(())], "yyyyy"),
        ([AnyOf(())], "nnnnn"),
        ([AnyOf((Predicate("id", "<", (2,)), Predicate("id", ">", (8,))))], "ynnyy"),
        ([AnyOf((NullTest("id", True), Predicate("id", "=", (3,))))], "yyyyy"),
        ([Predicate("other", "=", (3,))], "yyyyy"),
        ([NullTest("other", False)], "yyyyy"),
        ([Predicate("id", "<", (-(2**63),))], "nnnnn"),
        ([Predicate("id", "<=", (-(2**63),))], "nnnny"),
        ([Predicate("id", ">=", (2**63 - 1,))], "nnnny"),
    ],
)
def test_which_files_are_left(filters: list[Filter], left: str) -> None:
    assert "".join("ny"[one] for one in files_to_read(FILES, filters).tolist()) == left


def test_a_file_of_several_partitions_is_in_every_range() -> None:
    """As another program's OPTIMIZE makes them."""
    nowhere = dict.fromkeys(range(3), (Position(10, 0), None))
    for last, left in ((0, False), (2, True)):
        limits = {"__partition": (0, last), "__ledgerId": (1, 9), "__entryId": (0, 5)}
        file = ColdFile("a", 1, 1, limits)
        [found] = plan_files([file], (), nowhere)
        assert found.read is left


def test_a_time_may_be_up_to_a_millisecond_later_than_the_log_says() -> None:
    low, high = 1_000_000, 2_000_000
    kind = pa.timestamp("us", "UTC")
    files = pa.table({"min.at": pa.array([low], kind), "max.at": pa.array([high], kind)})
    assert files_to_read(files, [Predicate("at", ">=", (high + 999,))]).tolist() == [True]
    assert files_to_read(files, [Predicate("at", ">", (high + 999,))]).tolist() == [False]
    assert files_to_read(files, [Predicate("at", "<", (low,))]).tolist() == [False]


def test_a_publish_time_may_be_as_much_later() -> None:
    kind = pa.timestamp("us", "UTC")
    actions = pa.table(
        {
            "path": ["a"],
            "size_bytes": [1],
            "min.__publishTime": pa.array([1_000_000], kind),
            "max.__publishTime": pa.array([2_000_000], kind),
        }
    )
    table: Any = SimpleNamespace(files=lambda: actions)
    (file,) = table_files(table)
    for op, time, read in ((">=", 2_000_999, True), (">", 2_000_999, False), ("<", 10**6, False)):
        wanted = [Predicate("__publishTime", op, (time,))]
        assert [one.read for one in plan_files([file], wanted, {})] == [read]


def test_kinds_of_rows() -> None:
    """Their texts are exact in the log, and no other text is."""
    files = pa.table(
        {
            "num_records": [9, 9, 9, 9],
            "null_count.__kind": [0, 0, 0, None],
            "min.__kind": ["message", "encrypted", "encrypted", None],
            "max.__kind": ["message", "message", "encrypted", None],
        }
    )
    for one, left in (
        (Predicate("__kind", "=", ("encrypted",)), "nyyy"),
        (Predicate("__kind", "in", ("message", "damaged")), "yyny"),
        (Unequal("__kind", "encrypted"), "yyny"),
        (Predicate("__kind", "=", ("no kind",)), "yyyy"),
        (Predicate("__kind", "<", ("f",)), "yyyy"),
    ):
        assert "".join("ny"[kept] for kept in files_to_read(files, [one]).tolist()) == left


def test_days() -> None:
    day = pa.date32()
    files = pa.table({"min.d": pa.array([5], day), "max.d": pa.array([7], day)})
    assert files_to_read(files, [Predicate("d", "=", (8,))]).tolist() == [False]
    assert files_to_read(files, [Predicate("d", "=", (7,))]).tolist() == [True]


@pytest.mark.parametrize(
    ("kind", "values"),
    [(pa.float64(), [1.0]), (pa.string(), ["1"]), (pa.decimal128(5, 0), [1]), (pa.bool_(), [True])],
)
def test_no_other_type_is_trusted(kind: pa.DataType, values: list[Any]) -> None:
    files = pa.table({"min.x": pa.array(values, kind), "max.x": pa.array(values, kind)})
    assert files_to_read(files, [Predicate("x", "=", (5,))]).tolist() == [True]


def test_a_member_of_a_struct_is_not_the_column_that_is_named_like_it() -> None:
    files = pa.table({"min.a.b": [1], "max.a.b": [1], "null_count.a.b": [0], "num_records": [1]})
    for one in (Predicate("a.b", "=", (5,)), NullTest("a.b", True), Unequal("a.b", 1)):
        assert files_to_read(files, [one]).tolist() == [True]


def _matches(one: Filter, value: int | None) -> bool:
    """Row by row, as SQL: NULL is not true."""
    match one:
        case AllOf(filters):
            return all(_matches(inner, value) for inner in filters)
        case AnyOf(filters):
            return any(_matches(inner, value) for inner in filters)
        case NullTest(_, null):
            return (value is None) is null
    if value is None:
        return False
    if isinstance(one, Unequal):
        return value != one.value
    first = one.values[0]
    truth: dict[str, bool] = {
        "=": value == first,
        "<": value < first,
        "<=": value <= first,
        ">": value > first,
        ">=": value >= first,
        "in": value in one.values,
    }
    return truth[one.op]


def _random(draw: random.Random, depth: int = 2) -> Filter:
    kind = draw.randrange(8 if depth else 6)
    if kind >= 6:
        inner = tuple(_random(draw, depth - 1) for _ in range(draw.randrange(4)))
        return AllOf(inner) if kind == 6 else AnyOf(inner)
    if kind == 0:
        return NullTest("id", draw.random() < 0.5)
    if kind == 1:
        return Unequal("id", draw.randrange(-2, 12))
    values = tuple(draw.randrange(-2, 12) for _ in range(draw.randrange(1, 4)))
    op = draw.choice(["=", "<", "<=", ">", ">=", "in"])
    return Predicate("id", op, values if op == "in" else values[:1])


def test_no_file_with_a_matching_row_is_left_out() -> None:
    draw = random.Random(4)
    rows = [
        [draw.choice([None, draw.randrange(10)]) for _ in range(draw.randrange(1, 4))]
        for _ in range(200)
    ]
    known = [[value for value in one if value is not None] for one in rows]
    files = pa.table(
        {
            "num_records": [len(one) for one in rows],
            "null_count.id": [
                draw.choice([None, len(one) - len(there)])
                for one, there in zip(rows, known, strict=True)
            ],
            "min.id": pa.array([min(one, default=None) for one in known], pa.int64()),
            "max.id": pa.array([max(one, default=None) for one in known], pa.int64()),
        }
    )
    pruned = 0
    for _ in range(500):
        filters = [_random(draw) for _ in range(draw.randrange(1, 3))]
        left = files_to_read(files, filters).tolist()
        for one, read in zip(rows, left, strict=True):
            wanted = any(all(_matches(each, value) for each in filters) for value in one)
            assert read or not wanted, (filters, one)
            pruned += not read
    assert pruned > 10_000


def test_ledgers_of_which_only_the_rows_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the log was cleaned, the rows are read. Times beyond the year 9999 are NULL."""
    far = START * 1000  # of a producer that gives microseconds for milliseconds
    with World(tmp_path) as world:
        world.seal(entry(b"a", publish_time=START), entry(b"b", publish_time=far))
        world.offloader().turn(world.topic, now=True)
        monkeypatch.setattr(TopicTable, "commits", lambda self: iter(()))
        [segment] = cold_part(world.table()).segments
    assert (segment.min_publish_time, segment.max_publish_time) == (START * 1000, START * 1000)
    assert segment.rows == 2


@pytest.mark.parametrize(
    ("ledger", "oldest", "expired"), [(7, 999_999, 1000), (7, 1_000_000, None), (8, 999_999, None)]
)
def test_rows_have_expired_of_ledgers_with_older_ones(
    ledger: int, oldest: int, expired: int | None
) -> None:
    """Rows published before second 1 have, of ledgers up to 7."""
    limits = {"__partition": (0, 0), "__ledgerId": (ledger, ledger)}
    file = ColdFile("a", 10, 5, {**limits, "__publishTime": (oldest, 5_000_000)})
    topic = Topic("public", "default", "orders")
    numbers = TopicNumbers(topic.full_name, TopicNumbers.expired_before.set(topic, 1000).get)
    table: Any = SimpleNamespace(
        topic=topic, topic_numbers=numbers, numbers=partial(numbers_of, expired_upto=Position(7, 0))
    )
    (found,) = older_ledgers(table, [file], [])
    assert found.reason.expired_before == expired
