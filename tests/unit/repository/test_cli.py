"""The command line without a server: usage, exit codes, one-line errors, output formats."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from offloader.cli import app as cli
from offloader.cli.render import ReportFormat, SqlFormat, print_rows
from offloader.cli.segments import COLUMNS, segment_row
from offloader.cli.shell.runner import one_line
from offloader.model.byte_sizes import size_text
from reader import plan as planning
from reader.errors import NotFoundError
from reader.model import Partition, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason
from tests.support.terminal import Run

ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "a", "at": datetime(2026, 1, 2, 3, 4, 5, 678, UTC), "raw": b"\x00\xff"},
    {"id": 22, "name": None, "at": None, "raw": None},
]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nonsense",),
        ("segments",),
        ("sql", "SELECT 1", "-f", "queries.sql"),
        ("sql", "SELECT 1", "--format", "parquet"),
        ("segments", "a/b/c", "--format", "csv"),
        ("status", "--format", "csv"),
        ("sql", "SELECT 1", "--format", "xml"),
        ("offload", "--twice"),
        ("maintain", "--twice"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert "Usage: " in out + err


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("-h",), ("offload", "--help"), ("maintain", "--help"), ("sql", "-h")],
)
def test_help(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, _ = run(*arguments)
    assert code == 0
    assert out.startswith("Usage: pulsar-lake")


@pytest.mark.parametrize(
    ("stdin", "expected"),
    [(None, "standard input is closed"), (io.TextIOWrapper(io.BytesIO(b"\xff")), "not UTF-8")],
)
def test_standard_input_that_cannot_be_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, stdin: io.TextIOWrapper | None, expected: str
) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    code, out, err = run("sql")
    assert (code, out) == (1, "")
    assert expected in err
    assert "Error" not in err


def test_version(run: Run) -> None:
    code, out, _ = run("--version")
    assert code == 0
    assert out.startswith("pulsar-lake ")


@pytest.mark.parametrize(
    ("settings", "arguments", "expected"),
    [
        ("", ("offload", "t"), "storage.uri is not set (name a directory"),
        ("[storage]\nuri = 'lake'", ("offload",), "no topic to offload (name some"),
        ("[storage]\nuri = 'lake'", ("status",), "no topic to offload"),
        ("[[offload.override]]\ntopics = 'a'", ("status",), "write tenant/namespace/name"),
        ("[storage]\nurl = 'lake'", ("status",), "unknown key storage.url (did you mean uri?)"),
        ("[offload]\ngrace = 'soon'", ("status",), "offload.grace"),
        ("[storage", ("status",), "is not TOML"),
        ("", ("segments", "non-persistent://a/b/c"), "non-persistent"),
        ("", ("segments", "a/b"), "is not a topic name"),
    ],
)
def test_what_the_user_has_to_put_right_is_one_line(
    run: Run, tmp_path: Path, settings: str, arguments: tuple[str, ...], expected: str
) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(settings)
    code, out, err = run(*arguments, "--config", str(path))
    assert code == 1
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert expected in err


def test_a_settings_file_that_is_not_there(run: Run) -> None:
    code, _, err = run("status", "--config", "/nowhere/lake.toml")
    assert code == 1
    assert err.startswith("error: cannot read the configuration /nowhere/lake.toml")


def test_a_pulsar_that_does_not_answer(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int
) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        f"[pulsar]\nadmin_url = 'http://127.0.0.1:{closed_port}'\ntoken = 'very-secret'\n"
        f"[storage]\nuri = '{tmp_path}/lake'\noptions = {{ secret_access_key = 'hush' }}\n"
    )
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path / "state"))
    code, _, err = run("segments", "a/b/c", "--config", str(path))
    assert code == 1
    assert "no answer from the Pulsar admin" in err
    assert "check pulsar.admin_url" in err
    code, out, err = run("status", "a/b/c", "--config", str(path))
    assert "no answer from the Pulsar admin" in out, "an error of the topic"
    code, _, err = run("offload", "--once", "a/b/c", "--config", str(path))
    assert code == 1
    assert "error: a/b/c: no answer from the Pulsar admin" in err
    code, out, err = run("status", "a/b/c", "--config", str(path))
    assert "last turn (1 in a row): no answer" in out
    assert err == ""
    (tmp_path / "state").chmod(0o770)
    code, shown, warned = run("status", "a/b/c", "--config", str(path))
    assert "last turn" not in shown
    assert warned.startswith("warning: ") and warned.count("\n") == 1
    assert not any(secret in out + err for secret in ("very-secret", "hush"))


def test_debug_shows_where(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_DEBUG", "1")
    monkeypatch.setattr(sys, "argv", ["pulsar-lake", "segments", "a/b"])
    with pytest.raises(SystemExit):
        cli.main()
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("error: ")


def test_a_bug_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("x\ny")

    monkeypatch.setattr("reader.plan.take_snapshot", broken)
    code, _, err = run("segments", "a/b/c")
    assert code == 1
    assert err == "error: KeyError: 'x\\ny' (PULSAR_LAKE_DEBUG=1 shows where)\n"


_LISTING = """
import sys
from reader import plan as planning
from reader.model import *
from types import SimpleNamespace as Made
sys.argv = ["pulsar-lake", "segments", "a/b/c"]
partition = Partition(Topic("a", "b", "c"), 0)
one = Segment(partition, 1, "sealed", Tier.BROKER, "x", 0, 1, 1)
planning.take_snapshot = lambda *_: Made(log_note=lambda: None)
planning.make_plan = lambda *_: Made(segments=[Made(segment=one)] * count)
"""


@pytest.fixture
def pipe_without_reader() -> Iterator[int]:
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_a_reader_that_goes_away(monkeypatch: pytest.MonkeyPatch, pipe_without_reader: int) -> None:
    """``pulsar-lake … | head`` ends without a word: here when the command flushes what it wrote."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    code = f"count = 1{_LISTING}\nfrom offloader.cli import app as cli\ncli.main()"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdout=pipe_without_reader,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "")


def test_a_reader_that_goes_away_early(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], pipe_without_reader: int
) -> None:
    """Here while the command writes."""
    for name in ("take_snapshot", "make_plan"):
        monkeypatch.setattr(planning, name, None)  # restored at the end
    with os.fdopen(os.dup(pipe_without_reader), "w") as stdout:
        monkeypatch.setattr(sys, "argv", [])
        monkeypatch.setattr(sys, "stdout", stdout)
        exec(_LISTING, {"count": 5000})
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert (caught.value.code, capsys.readouterr().err) == (1, "")


# -- output ----------------------------------------------------------------------------------------


def rendered(kind: ReportFormat | SqlFormat, rows: list[dict[str, Any]] = ROWS) -> str:
    out = io.StringIO()
    print_rows(["id", "name", "at", "raw"], rows, kind, out)
    return out.getvalue()


def test_json_is_one_array() -> None:
    assert json.loads(rendered(SqlFormat.json)) == [
        {"id": 1, "name": "a", "at": "2026-01-02T03:04:05.000678Z", "raw": "AP8="},
        {"id": 22, "name": None, "at": None, "raw": None},
    ]
    assert json.loads(rendered(ReportFormat.json, [])) == []
    assert len(rendered(SqlFormat.json).splitlines()) == 4, "one row a line"


def test_json_of_what_json_has_no_word_for() -> None:
    values = [float("nan"), float("-inf"), Decimal("1.10"), date(2026, 1, 2), (1, None), {2: b"x"}]
    out = io.StringIO()
    print_rows(["v"], [{"v": value} for value in values], SqlFormat.json, out)
    found = [row["v"] for row in json.loads(out.getvalue())]
    assert found == ["nan", "-inf", "1.10", "2026-01-02", [1, None], {"2": "eA=="}]


def test_csv_reads_back() -> None:
    awkward = [{"id": 1, "name": 'a,"b"\nc', "at": True, "raw": [1, "x"]}, ROWS[1]]
    found = list(csv.reader(io.StringIO(rendered(SqlFormat.csv, awkward))))
    assert found == [
        ["id", "name", "at", "raw"],
        ["1", 'a,"b"\nc', "true", '[1, "x"]'],
        ["22", "", "", ""],
    ]


def test_a_table_in_a_pipe_is_whole_and_aligned() -> None:
    long = "x" * 300
    lines = rendered(SqlFormat.table, [{**ROWS[0], "name": f"{long}\n"}, ROWS[1]]).splitlines()
    assert len(lines) == 4
    assert long + "\\n" in lines[2]
    assert lines[2].startswith(" 1  "), "numbers on the right"
    assert lines[3].startswith("22  NULL")
    assert lines[0].index("at") == lines[2].index("2026-01-02T")


def test_a_table_on_a_terminal_cuts_long_cells() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    print_rows(["name"], [{"name": "x" * 300}], SqlFormat.table, out)
    assert out.getvalue().splitlines()[2] == "x" * 59 + "…"


# What a producer can put into a name or a value: a title, a colour, C1, a carriage return, an
# override of direction, half a character.
STEERING = "a\x1b]0;owned\x07\x1b[31m\x9b2J\r\x7f\u202etxt.exe\u2066\ud800z"
SHOWN = "a\\x1b]0;owned\\x07\\x1b[31m\\x9b2J\\r\\x7f\\u202etxt.exe\\u2066\\ud800z"


def test_a_table_steers_no_terminal() -> None:
    out = io.StringIO()
    rows: list[dict[str, Any]] = [{STEERING: STEERING}, {STEERING: {"k": [STEERING]}}]
    print_rows([STEERING], rows, SqlFormat.table, out)
    assert out.getvalue().isascii()
    assert out.getvalue().replace("\n", "").isprintable()
    lines = out.getvalue().splitlines()
    assert lines[0].rstrip() == lines[2].rstrip() == SHOWN


def test_json_steers_no_terminal_and_is_the_same_data() -> None:
    out = io.StringIO()
    print_rows([STEERING], [{STEERING: STEERING}], SqlFormat.json, out)
    assert out.getvalue().replace("\n", "").isprintable()
    assert json.loads(out.getvalue()) == [{STEERING: STEERING}]


def test_csv_is_data() -> None:
    out = io.StringIO(newline="")
    print_rows(["v"], [{"v": STEERING}], SqlFormat.csv, out)
    assert list(csv.reader(io.StringIO(out.getvalue(), newline=""))) == [["v"], [STEERING]]


def test_lines_steer_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of errors and of what an error quotes, with the traceback and without."""

    def broken(*_: object) -> None:
        raise NotFoundError(f"topic {STEERING} does not exist", hint=STEERING)

    monkeypatch.setattr("reader.plan.take_snapshot", broken)
    for debug in ("0", "1"):
        monkeypatch.setenv("PULSAR_LAKE_DEBUG", debug)
        monkeypatch.setattr(sys, "argv", ["pulsar-lake", "segments", "a/b/c"])
        with pytest.raises(SystemExit):
            cli.main()
        err = capsys.readouterr().err
        assert err.endswith(f"error: topic {SHOWN} does not exist ({SHOWN})\n")
        assert err.replace("\n", "").isprintable()


def test_everything_is_printed_by_one_function() -> None:
    """In the command line, where ``render`` alone knows a stream."""
    folder = Path(cli.__file__).parent
    for file in folder.glob("*.py"):
        found = re.findall(r"typer\.echo|\bprint\(|print_exc|\.write\(", file.read_text())
        assert not found or file.name == "render.py", file


def test_sizes() -> None:
    assert [size_text(n) for n in (0, 1023, 1024, 5 << 20, 3 << 50)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3072.0 TiB",
    ]


def test_a_segment_as_a_row() -> None:
    one = Segment(
        partition=Partition(Topic("a", "b", "c"), 2),
        ledger_id=7,
        state="sealed",
        tier=Tier.BOOKKEEPER,
        reason=TierReason(Reason.SEALED),
        last_entry=9,
        entries=10,
        bytes=1000,
        closed_at=1_500,
        min_publish_time=1_000_001,
        max_publish_time=1 << 62,
    )
    row = segment_row(one)
    assert tuple(row) == COLUMNS
    assert row["min_publish_time"] == datetime(1970, 1, 1, 0, 0, 1, 1, UTC)
    assert row["max_publish_time"] == 1 << 62, "beyond the calendar"
    assert row["closed_at"] == datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. "
            "SQLSTATE: 42P01; line 1 pos 14;\n"
            "'Project [*]\n+- 'UnresolvedRelation [x]",
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found",
        ),
        ("\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601 (line 1)", None),
    ],
)
def test_sparks_errors_lose_their_plans(text: str, expected: str | None) -> None:
    found = one_line(text)
    assert "\n" not in found
    assert "SQLSTATE" not in found
    assert expected is None or found == expected
