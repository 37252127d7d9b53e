"""What a terminal shows: the first rows, one line a column, a pager where it is too small."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from offloader.cli.shell.execution import Execution
from offloader.cli.shell.progress import ProgressLine, progress_text
from offloader.cli.shell.screen import Screen, pager_for, take
from spark_ext.statement import Progress

SIZE = os.terminal_size((80, 24))


def batches(*counts: int) -> Iterator[pa.RecordBatch]:
    for count in counts:
        yield pa.record_batch({"n": pa.array(range(count), pa.int64())})


@pytest.mark.parametrize(
    ("counts", "most", "shown", "text"),
    [
        ((), 10, 0, "0 rows"),
        ((1,), 10, 1, "1 row"),
        ((4, 6), 10, 10, "10 rows"),
        ((4, 7), 10, 10, "10 of 11 rows"),
        ((4, 0, 1_000_000), 10, 10, "10 of 1,000,004 rows"),
        ((4, 7), None, 11, "11 rows"),
    ],
)
def test_the_first_rows_and_how_many_there_are(
    counts: tuple[int, ...], most: int | None, shown: int, text: str
) -> None:
    taken = take(batches(*counts), most)
    assert len(taken.rows) == shown
    assert str(taken) == text


def test_counting_the_rest_ends_after_a_second() -> None:
    clock = iter([0.0, 0.5, 0.6, 1.2]).__next__
    endless = batches(*[5] * 100)
    taken = take(endless, 3, clock=lambda: clock())
    assert str(taken) == "3 of more than 15 rows"
    assert len(list(endless)) == 97, "the rest was not read"


def test_a_screen_shows_a_row_as_lines() -> None:
    out = io.StringIO()
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    batch = pa.record_batch([pa.array([1, 2]), pa.array(["x" * 90, None])], schema=schema)
    Screen(expanded=True, out=out).write(schema, iter([batch]))
    assert out.getvalue().splitlines() == [
        "-[ 1 ]---",
        "id        1",
        "customer  " + "x" * 90,
        "-[ 2 ]---",
        "id        2",
        "customer  NULL",
    ]


def test_a_text_of_several_lines_is_shown_as_it_is() -> None:
    out = io.StringIO()
    plan = pa.record_batch({"plan": ["== Plan ==\nScan \x1b[31m" + "x" * 90 + "\n\n"]})
    Screen(out=out).write(plan.schema, iter([plan]))
    assert out.getvalue() == "== Plan ==\nScan \\x1b[31m" + "x" * 90 + "\n"


def test_a_command_shows_nothing() -> None:
    out = io.StringIO()
    assert Screen(out=out).write(pa.schema([]), iter(())) is None
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("a\n" * 23, {}, None),
        ("a\n" * 24, {}, (["less"], "FSRX")),
        ("a" * 81, {}, (["less"], "SRX")),
        ("a\n" * 24, {"PAGER": "more -d", "LESS": "i"}, (["more", "-d"], "i")),
        ("a\n" * 24, {"PAGER": "cat"}, None),
        ("a\n" * 24, {"PAGER": ""}, None),
    ],
)
def test_a_pager_for_what_is_larger_than_the_screen(
    text: str, environment: dict[str, str], expected: tuple[list[str], str] | None
) -> None:
    found = pager_for(text, SIZE, environment)
    assert (found and (found[0], found[1]["LESS"])) == expected


@pytest.mark.parametrize(
    ("progress", "tiers", "text"),
    [
        (None, "", "planning · 3 s"),
        (Progress(0, 0, 0), "", "planning · 3 s"),
        (Progress(40, 12, 0), "", "12 of 40 tasks · 3 s"),
        (
            Progress(40, 12, 3_400_000),
            "bookkeeper (2), parquet (9)",
            "12 of 40 tasks · 3,400,000 rows read · bookkeeper (2), parquet (9) · 3 s",
        ),
    ],
)
def test_what_a_progress_line_says(progress: Progress | None, tiers: str, text: str) -> None:
    assert progress_text(progress, tiers, 3.2) == text


def test_no_progress_where_nobody_sees_it() -> None:
    out = io.StringIO()
    line = ProgressLine(out)
    line.draw(cast(Execution, "not even looked at"))
    line.clear()
    assert out.getvalue() == ""
