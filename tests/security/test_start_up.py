"""What chooses settings and interpreter is there when Spark starts; a session chooses neither.

One Spark of its own, in a folder where somebody left modules, with a stand-in for Pulsar's admin
and another server that a session would like the identity to be shown to.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from testbed.serving import serving
from tests.support.running import run_program

ROOT = Path(__file__).parents[2]
TOKEN = "the-token-of-the-environment"

_PROGRAM = """
import json, sys
from spark_ext import PulsarLake
evil, admin, output = sys.argv[1:]
shim = "io.pulsarlake.spark.catalog.PulsarCatalog"
conf = {
    "spark.sql.catalog.gone": shim, "spark.sql.catalog.gone.python": "/no/such/python",
    "spark.sql.catalog.mute": shim, "spark.sql.catalog.mute.python": evil + "/mute.sh",
    "spark.sql.catalog.half": shim, "spark.sql.catalog.half.python": evil + "/half.sh",
}
lake = PulsarLake({"pulsar": {"admin_url": admin}, "spark": {"master": "local[1]", "conf": conf}})
file = evil + "/evil.toml"
load = lambda spark, **options: spark.read.format("pulsar").options(topic="a/b/c", **options).load()
ATTEMPTS = {
    "ours": lambda spark: spark.sql("SHOW NAMESPACES IN pulsar").collect(),
    "source": lambda spark: load(spark),
    "added": lambda spark: (
        spark.sql(f"SET spark.sql.catalog.evil={shim}"),
        spark.sql(f"SET spark.sql.catalog.evil.python={evil}/run.sh"),
        spark.sql("SHOW NAMESPACES IN evil"),
    ),
    "python": lambda spark: (
        spark.sql(f"SET spark.sql.catalog.pulsar.python={evil}/run.sh"),
        spark.sql("SHOW NAMESPACES IN pulsar"),
    ),
    "pyspark": lambda spark: (
        spark.sql(f"SET spark.pyspark.python={evil}/run.sh"),
        spark.sql("SHOW NAMESPACES IN pulsar"),
    ),
    "config": lambda spark: (
        spark.sql(f"SET spark.sql.catalog.pulsar.config={file}"),
        spark.sql("SHOW NAMESPACES IN pulsar"),
    ),
    "spelled": lambda spark: (
        spark.sql(f"SET spark.sql.catalog.pulsar.CONFIG={file}"),
        spark.sql("SHOW NAMESPACES IN pulsar"),
    ),
    "allowed": lambda spark: spark.sql(
        f"SELECT java_method('io.pulsarlake.spark.catalog.StartUp', 'allow', '{file}')"
    ).collect(),
    "option": lambda spark: load(spark, config=file),
    "using": lambda spark: spark.sql(
        f"CREATE TEMPORARY VIEW v USING pulsar OPTIONS (config '{file}', topic 'a/b/c')"
    ),
    "variable": lambda spark: spark.sql(
        "SELECT '${env:PULSAR_LAKE__PULSAR__TOKEN}' AS x"
    ).collect()[0][0],
    "beside": lambda spark: PulsarLake(
        {"pulsar": {"admin_url": admin, "token": "mine"}}
    ).spark.sql("SHOW NAMESPACES IN pulsar").collect(),
    "gone": lambda spark: spark.sql("SHOW NAMESPACES IN gone"),
    "mute": lambda spark: spark.sql("SHOW NAMESPACES IN mute"),
    "half": lambda spark: spark.sql("SHOW NAMESPACES IN half"),
}
found = {}
for name, attempt in ATTEMPTS.items():
    try:
        found[name] = str(attempt(lake.spark.newSession()))
    except Exception as error:
        found[name] = "refused: " + str(error)
lake.close()
open(output, "w").write(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What each attempt gave; the tokens that either server was shown; what else was run."""

    said: dict[str, str]
    shown: set[str | None]
    shown_elsewhere: list[str | None]
    ran: list[str]
    text: str


def _admin(tokens: list[str | None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens.append(self.headers.get("Authorization"))
            body = b"[]" if self.path == "/admin/v2/tenants" else b"{}"
            self.send_response(200 if body == b"[]" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    folder = tmp_path_factory.mktemp("evil")
    shown: list[str | None] = []
    elsewhere: list[str | None] = []
    with serving(_admin(shown)) as ours, serving(_admin(elsewhere)) as evil:
        (folder / "evil.toml").write_text(
            f'[pulsar]\nadmin_url = "http://127.0.0.1:{evil.server_address[1]}"\n'
        )
        (folder / "run.sh").write_text(f"#!/bin/sh\ntouch {folder}/ran-interpreter\n")
        (folder / "mute.sh").write_text("#!/bin/sh\necho 'No module named spark_ext' >&2\nexit 1\n")
        # Each line of a request is answered with half a line, and it goes on.
        (folder / "half.sh").write_text(
            '#!/bin/sh\nwhile read line; do echo \'{"id": 1, "o\'; done\n'
        )
        for script in ("run.sh", "mute.sh", "half.sh"):
            (folder / script).chmod(0o755)
        for module in ("spark_ext", "pyspark_left_behind"):
            (folder / f"{module}.py").write_text(f"open({str(folder / 'ran-module')!r}, 'w')\n")
        (folder / "program").mkdir()
        program = folder / "program" / "main.py"
        program.write_text(_PROGRAM)
        admin = f"http://127.0.0.1:{ours.server_address[1]}"
        done = run_program(
            [sys.executable, str(program), str(folder), admin, str(folder / "found.json")],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PULSAR_LAKE__PULSAR__TOKEN": TOKEN},
            timeout=280,
        )
        text = done.stdout + done.stderr
        assert done.returncode == 0, text[-3000:]
        said = json.loads((folder / "found.json").read_text())
        ran = sorted(one.name for one in folder.glob("ran-*"))
        yield Outcome(said, set(shown), elsewhere, ran, text)


def test_what_was_chosen_at_the_start_is_used(outcome: Outcome) -> None:
    assert outcome.said["ours"] == outcome.said["beside"] == "[]"
    assert "refused: " in outcome.said["source"]
    assert "a/b/c" in outcome.said["source"]
    assert outcome.shown == {f"Bearer {TOKEN}", "Bearer mine"}


@pytest.mark.parametrize("attempt", ["added", "python", "config", "option", "using"])
def test_a_session_cannot_choose_another(outcome: Outcome, attempt: str) -> None:
    said = outcome.said[attempt]
    assert said.startswith("refused: "), said
    assert "Spark starts" in said
    assert len(said.splitlines()) == 1


def test_nor_can_sql_add_one_to_those_that_are_allowed(outcome: Outcome) -> None:
    assert outcome.said["allowed"].startswith("refused: ")


def test_nothing_of_it_was_run_or_shown(outcome: Outcome) -> None:
    assert outcome.shown_elsewhere == []
    assert outcome.ran == []


def test_a_query_shows_no_environment(outcome: Outcome) -> None:
    assert outcome.said["variable"] == "${env:PULSAR_LAKE__PULSAR__TOKEN}"
    assert TOKEN not in outcome.text


def test_an_interpreter_that_is_not_there(outcome: Outcome) -> None:
    assert outcome.said["gone"].startswith("refused: the planner cannot be started")


def test_an_interpreter_without_the_package(outcome: Outcome) -> None:
    said = outcome.said["mute"]
    assert "has ended: exit code 1, its last line: No module named spark_ext" in said
    assert "planner: No module named spark_ext" in outcome.text  # and so does Spark's log


def test_an_interpreter_whose_answers_cannot_be_read(outcome: Outcome) -> None:
    said = outcome.said["half"]
    assert said.startswith("refused: an answer of the planner process cannot be read: Unexpected")
    assert len(said.splitlines()) == 1
