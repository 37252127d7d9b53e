"""``pulsar-lake sql`` as people use it: on a terminal, and with files of statements."""

import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from offloader.cli.app import app
from spark_ext import PulsarLake
from testbed.cluster import Cluster
from testbed.s3 import S3
from testbed.usage import command_name, descendants
from tests.spark.conftest import TOTAL, Orders
from tests.support.running import Settings, run_program
from tests.support.terminal import CTRL_C, CTRL_D, TAB, Terminal

PROMPT = "pulsar-lake>"
ROWS = r"\(\d+ rows?(?:, [\d.]+ s)?\)"
ROWS_OF_FILE = 400_000
STARTING = 400  # seconds: Spark on a busy machine
COMMAND = [sys.executable, "-c", "from offloader.cli.app import main; main()", "sql"]

pytestmark = pytest.mark.timeout(600)  # the first may start all servers and two sessions of Spark


@pytest.fixture(scope="module")
def settings(cluster: Cluster, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(tmp_path_factory.mktemp("sql"), cluster, s3.uri, s3.storage_options)


def environment(settings: Settings) -> dict[str, str]:
    # Not the caller's pager; and no search for modules in the current folder.
    return {**os.environ, "PULSAR_LAKE_STATE": str(settings.state), "PAGER": "cat"}


@pytest.fixture(scope="module")
def shell(settings: Settings, orders: Orders) -> Iterator[Terminal]:
    """A shell that has answered once."""
    with Terminal(
        [*COMMAND, "--config", str(settings.path)],
        environment=environment(settings),
        folder=Path.cwd(),  # a relative PYTHONPATH means this tree there as well
    ) as opened:
        opened.expect(PROMPT)
        opened.press("SELECT 40 + 2 AS answer;\r")  # while Spark starts
        assert "\n    42\n" in opened.expect(ROWS, STARTING)
        yield opened


@pytest.fixture(autouse=True)
def at_its_prompt(shell: Terminal) -> None:
    """What an earlier test left on the line, or running, is no part of this one.

    Ctrl-C right after an answer, before the editor reads again, is a signal; the editor may see it
    after keys that were pressed later. So the next keys wait until it has answered, after that.
    """
    if shell.process.poll() is not None:
        return
    # If Ctrl-C comes late, it deletes the command. Each has a name of its own: what says that it is
    # unknown is the last that the shell says of all.
    for number, seconds in enumerate((30, 30, 240)):
        shell.press(f"{CTRL_C}\\here{number}\r")
        if answers(shell, rf"unknown command \\here{number}\b", seconds):
            break
    else:
        raise AssertionError(f"the shell does not answer: {shell.text[-3000:]!r}")
    shell.expect(PROMPT)


def asked(shell: Terminal, text: str) -> str:
    """What it says to a statement."""
    shell.press(f"{text}\r")
    return shell.expect(ROWS, STARTING)


def insisted(shell: Terminal, keys: str, pattern: str, waits: Sequence[float]) -> None:
    """Press them, and again where what they bring has not come within so many seconds."""
    *most, last = waits
    for seconds in most:
        shell.press(keys)
        if answers(shell, pattern, seconds):
            return
    shell.press(keys)
    shell.expect(pattern, last)


def answers(shell: Terminal, pattern: str, seconds: float) -> bool:
    """Whether it comes in time."""
    try:
        shell.expect(pattern, seconds)
    except AssertionError:
        return False
    return True


def completed(shell: Terminal, text: str, pattern: str) -> None:
    """Tab, and again where names took longer than the shell waits for them."""
    shell.press(text)
    insisted(shell, TAB, pattern, (15, 15, 60))


@pytest.mark.journey
def test_a_statement_of_several_lines(shell: Terminal, orders: Orders) -> None:
    shell.press("SELECT count(*) AS n, sum(id)\r")
    shell.expect(r"\.\.>")
    assert f"{TOTAL}   {sum(range(TOTAL))}\n" in asked(shell, f"FROM {orders.table};")


@pytest.mark.journey
def test_tab_completes_namespaces_topics_and_columns(shell: Terminal, orders: Orders) -> None:
    namespace = orders.namespace
    completed(shell, f"SELECT count(*) FROM pulsar.{namespace[:-4]}", f"`{namespace}`")
    completed(shell, "ord", "ers")  # what is drawn is what is new on the line
    completed(shell, " WHERE custo", "mer")
    assert "64\n" in asked(shell, " = 'c6';")


def test_topics_and_columns_are_listed(shell: Terminal, orders: Orders) -> None:
    assert re.search(rf"\n`{orders.namespace}` +orders ", asked(shell, f"\\d {orders.namespace}"))
    assert re.search(rf"\n{orders.namespace} +orders\n", asked(shell, "\\d"))
    path = f"{orders.namespace}/orders"
    for name in (orders.table, path, f"persistent://{path}"):
        found = asked(shell, f"\\d {name}")
        assert re.search(r"\nid +bigint ", found)
        assert re.search(r"\n__publishTime +timestamp ", found)
    assert f"\n`{orders.namespace}`\n" in asked(shell, "\\dn")


@pytest.mark.journey
def test_ctrl_c_ends_the_statement_and_not_the_shell(shell: Terminal) -> None:
    shell.press("SELECT count(*) FROM range(1000000000000000);\r")
    shell.expect(r"of \d+ tasks · \d+ s")  # it runs, and says how far it is
    shell.press(CTRL_C)
    shell.expect(r"cancelled after [\d.]+ s")
    shell.expect(PROMPT)
    shell.press(f"no statement{CTRL_C}")
    shell.expect(PROMPT)
    assert "\n7\n" in asked(shell, "SELECT 3 + 4 AS x;")


@pytest.mark.journey
def test_an_error_is_one_line_and_the_shell_goes_on(shell: Terminal, orders: Orders) -> None:
    shell.press(f"SELECT nope FROM {orders.table};\r")
    assert "UNRESOLVED_COLUMN" in shell.expect(r"error: [^\n]*\n")
    shell.press("\\nope\r")
    shell.expect(r"error: unknown command \\nope")
    asked(shell, "SELECT 1 AS x;")


@pytest.mark.journey
def test_a_result_goes_to_a_parquet_file(shell: Terminal, orders: Orders, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    shell.press(f"\\o {path}\r")
    shell.expect("as parquet")
    shell.press(f"SELECT id, customer, __publishTime FROM {orders.table} ORDER BY id;\r")
    shell.expect(rf"\({TOTAL} rows to ")
    shell.press("\\o\r")
    shell.expect("the screen")
    found = pq.read_table(path)
    assert found.column("id").to_pylist() == list(range(TOTAL))
    assert str(found.schema.field("__publishTime").type) == "timestamp[us, tz=UTC]"


def test_a_long_result_is_cut_and_says_so(shell: Terminal) -> None:
    shell.press("\\rows 3\r")
    shell.expect("shown of a result: 3")
    shell.press("SELECT id FROM range(100);\r")
    shell.expect(r"\n 2\n\(3 of 100 rows; ")
    shell.press("\\rows 1000\r")
    shell.expect("1,000")


def test_use_makes_names_short(shell: Terminal, orders: Orders) -> None:
    shell.press(f"USE pulsar.`{orders.namespace}`;\r")
    shell.expect(r"\(done, ")
    completed(shell, "SELECT max(id) AS x FROM ord", "ord(?s:.*)ers")
    assert f"\n{TOTAL - 1}\n" in asked(shell, ";")
    shell.press("USE spark_catalog.default;\r")
    shell.expect(r"\(done, ")


def test_a_jvm_that_dies_is_followed_by_another(shell: Terminal) -> None:
    # All names first: what the JVM has started ends with it.
    java = [pid for pid in descendants(shell.process.pid) if "java" in command_name(pid)]
    for pid in java:
        os.kill(pid, signal.SIGKILL)
    shell.press("SELECT 5 + 5 AS x;\r")
    found = shell.expect(rf"another[^\n]*\n(?s:.*)(?:{ROWS}|{PROMPT})", STARTING)
    if "error:" in found:  # it died while it was asked
        found = asked(shell, "SELECT 5 + 5 AS x;")
    assert "\n10\n" in found
    assert "Traceback" not in shell.text


@pytest.mark.journey
def test_ctrl_d_leaves_and_the_history_stays(shell: Terminal, settings: Settings) -> None:
    asked(shell, "SELECT 1 AS x;")
    shell.expect(PROMPT)
    shell.press(CTRL_D)
    assert shell.end() == 0
    kept = settings.state / "sql-history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "+SELECT 40 + 2 AS answer;" in kept.read_text()
    assert "no statement" not in kept.read_text()


def test_a_terminal_that_closes_ends_it_quietly(settings: Settings) -> None:
    with Terminal(
        [*COMMAND, "--config", str(settings.path)],
        environment=environment(settings),
        folder=Path.cwd(),  # a relative PYTHONPATH means this tree there as well
    ) as opened:
        opened.expect(PROMPT)
        opened.hang_up()
        opened.process.wait(240)
        assert "Traceback" not in opened.text


def test_statements_of_a_file_end_at_the_first_error(
    settings: Settings, orders: Orders, tmp_path: Path
) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        f"-- what there is;\nSELECT count(*) AS n FROM {orders.table};\n\n"
        f"CREATE TEMPORARY VIEW some AS SELECT id FROM {orders.table} WHERE id < 2;\n"
        "SELECT id, ';' AS mark FROM some\n ORDER BY id; SELECT nope FROM some;\nSELECT 4;\n"
    )
    done = run_program(
        [*COMMAND, "-f", str(file), "--format", "json", "--config", str(settings.path)],
        env=environment(settings),
        timeout=STARTING,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {file}:6: [UNRESOLVED_COLUMN")
    assert done.stderr.count("\n") == 1
    arrays = done.stdout.replace("]\n[", "]\0[").split("\0")
    assert [json.loads(one) for one in arrays] == [
        [{"n": TOTAL}],
        [],
        [{"id": 0, "mark": ";"}, {"id": 1, "mark": ";"}],
    ]


def test_statements_of_standard_input_go_to_a_file(
    lake: PulsarLake, settings: Settings, tmp_path: Path
) -> None:
    """By the Spark of this process: the command stops what it has started, and nothing else."""
    path = tmp_path / "out.parquet"
    text = f"SELECT id, repeat('x', 50) AS text FROM range(0, {ROWS_OF_FILE}, 1, 7)"
    arguments = ["sql", "--output", str(path), "--config", str(settings.path)]
    done = CliRunner().invoke(app, arguments, input=text)
    assert (done.exit_code, done.output) == (0, "")
    assert lake.spark.range(1).count() == 1
    assert pq.ParquetFile(path).num_row_groups > 1, "written as it came"
    found = pq.read_table(path, columns=["id"]).column("id")
    assert found.to_pylist() == list(range(ROWS_OF_FILE))
