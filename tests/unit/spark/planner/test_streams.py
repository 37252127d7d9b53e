"""Each row of a micro-batch comes from exactly one of the parts that the planner names."""

import json
import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import Position
from reader.model.columns import FIRST_CHUNK
from reader.plan import take_snapshot
from reader.stream import StreamOffset
from spark_ext.datasource import tasks
from spark_ext.planner.cold_tables import ColdTables
from spark_ext.planner.protocol import (
    ColdRead,
    Expression,
    FindNextBatch,
    HotRead,
    NextBatch,
    PlanBatch,
    TaskPlan,
)
from spark_ext.planner.protocol import Stream as Query
from spark_ext.planner.streams import Streams
from tests.unit.decode.entries import entry
from tests.unit.decode.test_decryption import for_rsa, sealed_entry
from tests.unit.turns.pulsar_world import HOUR, NEVER, START, World, chunk
from tests.unit.turns.test_encrypted_chunks import use_keys

_FILTERED = ("__topic", "__partition", "__ledgerId", "__entryId", "__kind", *FIRST_CHUNK)
_READ = ("value", "__error", *_FILTERED)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A topic whose broker does not answer: streams ask for its ends by the admin REST API."""

    def refuse(clients: Clients) -> NoReturn:
        raise UnavailableError("there is no broker")

    monkeypatch.setattr(Clients, "broker", refuse)
    with World(tmp_path) as found:
        found.offloader().observe(found.topic)
        yield found


class Stream:
    """A stream from the topic's beginning. Each micro-batch is planned by another planner.

    again: it is narrowed by yet another one, as after a restart
    parts: what micro-batches were read from: parts of the table, and tiers.
    """

    def __init__(self, world: World, *, again: bool = False) -> None:
        self._world = world
        self._again = again
        self._columns = take_snapshot(world.clients, world.topic).columns
        self._query = Query({"topic": world.topic.local_name}, "checkpoint")
        self.parts: set[str] = set()
        self.began = self._planner().bounds(None, self._query).start

    def latest(self) -> str:
        """Return the offset behind all that there is now."""
        return self._planner().end(None, self._query).latest

    def rows(self, start: str, end: str, began: str | None = None) -> list[bytes | str]:
        """Return the values of a micro-batch, or the errors of rows without, in the log's order."""
        planner = self._planner()
        columns = self._columns
        schema = json.dumps(from_arrow_schema(columns).jsonValue())
        question = PlanBatch(self._query, start, end, began or self.began, schema)
        plan = planner.plan(None, question)
        if self._again:
            planner = self._planner()
        found: list[dict[str, Any]] = []
        for one in plan.files:
            self.parts.add(one.part)
            part = ColdRead("", one.part, plan.batch, (), ())
            [files] = planner.cold_plan(None, plan.batch, part).tables
            assert files.paths
            root = files.root.removeprefix("file://")
            for path in files.paths:
                found += _matching(pq.read_table(f"{root}/{path}").to_pylist(), one.where)
        for tier in plan.hot:
            read = pa.schema([columns.field(name) for name in _READ])
            form = json.dumps(from_arrow_schema(read).jsonValue())
            wanted = HotRead("", tier.tier, plan.batch, form, ())
            hot = list(self._read(planner.hot_scan(None, plan.batch, wanted, 1)))
            found += hot
            self.parts |= {str(tier.tier)} if hot else set()
        found.sort(key=lambda row: (row["__ledgerId"], row["__entryId"]))
        return [row["value"] or f"{row['__error']} {_begin(row)}" for row in found]

    def next(self, start: str) -> NextBatch:
        """Return the micro-batch that follows an offset."""
        columns = json.dumps(from_arrow_schema(self._columns).jsonValue())
        question = FindNextBatch(self._query, start, self.began, None, None, 0.0, columns)
        return self._planner().next(None, question)

    def _read(self, plan: TaskPlan) -> Iterator[dict[str, Any]]:
        """Yield what Spark's Python workers give of a scan."""
        function, _ = pickle.loads(plan.function.function)
        given = [pa.array([one]) for one in plan.tasks]
        with patch.object(tasks, "process_clients", lambda settings: self._world.clients):
            for rows in function(iter([pa.record_batch([one], ["task"]) for one in given])):
                yield from rows.to_pylist()

    def _planner(self) -> Streams:
        return Streams(lambda config: self._world.clients, ColdTables())


def _matching(rows: Sequence[dict[str, Any]], where: Expression) -> list[dict[str, Any]]:
    """Return the rows that a filter of the planner keeps, by another SQL engine than Spark's."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE found (number, {', '.join(_FILTERED)})")
        for number, row in enumerate(rows):
            values = [row.get(name) for name in _FILTERED]
            marks = ", ".join("?" * (len(values) + 1))
            database.execute(f"INSERT INTO found VALUES ({marks})", [number, *values])
        kept = database.execute(f"SELECT number FROM found WHERE {_sql(where)}").fetchall()
    return [rows[number] for (number,) in kept]


def _sql(of: Expression) -> str:
    """Return a filter as sqlite's SQL."""
    if of.op is None:
        return of.column[0] if of.column else repr(of.value)
    args = [_sql(one) for one in of.args]
    match of.op:
        case "AND" | "OR":
            return f"({f' {of.op} '.join(args) or str(of.op == 'AND')})"
        case "IS_NULL" | "IS_NOT_NULL":
            return f"{args[0]} {of.op.replace('_', ' ')}"
    return f"{args[0]} {of.op} {args[1]}"


def _begin(row: dict[str, Any]) -> Position:
    return Position(*(row[name] for name in FIRST_CHUNK))


def _at(latest: str, at: Position) -> str:
    """Return an offset in the middle of what there is."""
    offset = StreamOffset.from_json(latest)
    moved = {one: replace(to, at=at) for one, to in offset.partitions.items()}
    return StreamOffset(moved).to_json()


def _check_all_cuts(stream: Stream, written: Sequence[tuple[Position, bytes]]) -> None:
    """Read each micro-batch that there may be between two of the entries."""
    latest = stream.latest()
    offsets = [stream.began, *(_at(latest, position) for position, _ in written)]
    for first in range(len(written)):
        for stop in range(first + 1, len(offsets)):
            found = stream.rows(offsets[first], offsets[stop])
            assert found == [value for _, value in written[first:stop]], (first, stop)


@pytest.mark.parametrize("again", [False, True], ids=["one planner", "two planners"])
@pytest.mark.parametrize("at_once", [True, False], ids=["one file", "a file each"])
def test_rows_of_files_that_are_cut_and_of_bookies(
    world: World, at_once: bool, again: bool
) -> None:
    stream, offloader = Stream(world, again=again), world.offloader()
    written: list[tuple[Position, bytes]] = []

    def some(count: int) -> list[bytes]:
        ledger, values = world.opened, [b"m%d" % (len(written) + i) for i in range(count)]
        written.extend((Position(ledger, i), value) for i, value in enumerate(values))
        return [entry(value, publish_time=START) for value in values]

    world.seal(*some(2))
    if not at_once:
        offloader.turn(world.topic, now=True)
    world.seal(*some(2))
    offloader.turn(world.topic, now=True)
    world.seal(*some(1))
    world.write(*some(1))
    _check_all_cuts(stream, written)
    assert stream.parts == {"whole", "cut", "bookkeeper"}


def test_the_next_batch_comes_with_its_plan(world: World) -> None:
    stream = Stream(world)
    world.write(entry(b"a", publish_time=START))
    found = stream.next(stream.began)
    assert found.plan is not None
    assert (found.plan.batch.start, found.plan.batch.end) == (stream.began, found.next)
    assert [one.tier for one in found.plan.hot] == ["bookkeeper"]
    assert stream.next(found.next).plan is None


def test_ciphertext_of_the_table(world: World, tmp_path: Path) -> None:
    """It is decrypted by tasks, and left out where the files are read."""
    use_keys(world, tmp_path, {"mine"}, store_plaintext=False)
    stream = Stream(world)
    written: list[tuple[Position, bytes]] = []
    for ledger in (10, 11):
        entries = []
        for i in range(2):
            value = b"%d.%d" % (ledger, i)
            written.append((Position(ledger, i), value))
            entries.append(
                entry(value, publish_time=START)
                if ledger == 11 and i == 0
                else sealed_entry(value, {"mine": for_rsa()}, publish_time=START)
            )
        world.seal(*entries)
    world.offloader().turn(world.topic, now=True)
    _check_all_cuts(stream, written)
    assert stream.parts == {"cut", "parquet"}


def test_a_message_that_is_given_up_is_in_one_micro_batch(world: World) -> None:
    """The one in which the stream has passed it, or else the one of its place."""
    stream, offloader = Stream(world), world.offloader()
    world.seal(entry(b"m0", publish_time=START), chunk("A", 0, 3))
    offloader.turn(world.topic, now=True)
    world.now += HOUR // 2
    world.seal(chunk("B", 0, 3), entry(b"m1", publish_time=START))
    offloader.turn(world.topic, now=True)
    offsets = [stream.began, stream.latest()]
    for _ in "AB":
        world.now += HOUR // 2 + 1
        offloader.turn(world.topic)
        offsets.append(stream.latest())
    a, b = (f"{NEVER} {at}" for at in ("10:1", "11:0"))
    new: list[list[bytes | str]] = [[b"m0", b"m1"], [a], [b]]
    for first in range(3):
        assert stream.rows(offsets[first], offsets[first + 1]) == new[first]
    assert stream.rows(offsets[1], offsets[3]) == [a, b]
    assert stream.rows(offsets[0], offsets[2]) == [b"m0", a, b"m1"]
    assert stream.rows(offsets[0], offsets[3]) == [b"m0", a, b, b"m1"]
    assert stream.rows(offsets[1], offsets[3], began=offsets[1]) == [], "it began behind both"
