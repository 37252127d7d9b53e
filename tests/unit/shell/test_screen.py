"""What a terminal shows: the first rows, one line a column, a pager where it is too small."""

import io
import os
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from offloader.cli.shell.execution import Execution
from offloader.cli.shell.progress import ProgressLine, progress_text
from offloader.cli.shell.screen import Screen, take
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


def test_a_screen_shows_a_row_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("id", pa.int64()), ("customer", pa.string())])
    batch = pa.record_batch([pa.array([1, 2]), pa.array(["x" * 90, None])], schema=schema)
    Screen(expanded=True).write(schema, iter([batch]))
    assert capsys.readouterr().out.splitlines() == [
        "-[ 1 ]---",
        "id        1",
        "customer  " + "x" * 90,
        "-[ 2 ]---",
        "id        2",
        "customer  NULL",
    ]


def test_a_text_of_several_lines_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    plan = pa.record_batch({"plan": ["== Plan ==\nScan \x1b[31m" + "x" * 90 + "\n\n"]})
    Screen().write(plan.schema, iter([plan]))
    assert capsys.readouterr().out == "== Plan ==\nScan \\x1b[31m" + "x" * 90 + "\n"


def test_a_command_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert Screen().write(pa.schema([]), iter(())) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "paged"),
    [("a\n" * 23, False), ("a\n" * 24, True), ("a" * 80, False), ("a" * 81, True), ("", False)],
)
def test_a_pager_for_what_is_larger_than_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, paged: bool
) -> None:
    for name in ("LESS", "PAGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: SIZE)
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr("pydoc.pager", lambda text: calls.append((text, os.environ["LESS"])))
    for pager in (True, False):
        Screen(pager=pager).show(text)
        assert capsys.readouterr().out == ("" if paged and pager else text)
    monkeypatch.setenv("PAGER", "")
    Screen().show(text)
    assert capsys.readouterr().out == text
    assert calls == ([(text, "SRX")] if paged else [])


@pytest.mark.parametrize(
    ("progress", "tiers", "text"),
    [
        (Progress(0, 0, 0), "", "planning"),
        (Progress(40, 12, 0), "", "12 of 40 tasks"),
        (
            Progress(40, 12, 3_400_000),
            "bookkeeper (2), parquet (9)",
            "12 of 40 tasks · 3,400,000 rows read · bookkeeper (2), parquet (9)",
        ),
    ],
)
def test_what_a_progress_line_says(progress: Progress, tiers: str, text: str) -> None:
    assert progress_text(progress, tiers) == text


def test_no_progress_where_nobody_sees_it() -> None:
    out = io.StringIO()
    line = ProgressLine(cast(Execution, "not even looked at"), out)
    assert [*line.beside([1, 2], same_terminal=False)] == [1, 2]
    assert out.getvalue() == ""
