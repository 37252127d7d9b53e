"""What Spark makes of answers that no small Pulsar gives."""

import os
import sys
from pathlib import Path

import pytest

from spark_ext.session.jars.shim import java_tool, pyspark_jars
from tests.support.running import run_program

HERE = Path(__file__)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of each query of ``scripted_planner``."""
    folder = tmp_path_factory.mktemp("scripted")
    module = ["-m", "tests.spark.scripted_planner"]
    python = folder / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {' '.join(module)}\n")
    python.chmod(0o700)
    javac = java_tool("javac", "")
    compile_it = [javac, "-nowarn", "-cp", f"{pyspark_jars()}/*", "-d", str(folder)]
    assert not run_program([*compile_it, HERE.with_name("Max.java")], timeout=60).returncode
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2])}
    done = run_program(
        [sys.executable, *module, python, folder, folder], timeout=240, env=environment, cwd=folder
    )
    assert not done.returncode, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_a_batch_that_is_gone_says_why(found: dict[str, str]) -> None:
    """Not that the rows which stand for it have no name."""
    assert found["gone"].startswith("no answer to PlanReads")
    assert found["gone, again"].startswith("ledger 7 has been deleted (failOnDataLoss=false)")


def test_a_stream_of_a_thousand_partitions(found: dict[str, str]) -> None:
    assert found["many"] == "None"


def test_a_filter_of_hundreds_of_terms(found: dict[str, str]) -> None:
    assert found["or"] == "0"


def test_a_users_aggregate_is_not_sparks(found: dict[str, str]) -> None:
    """Whatever its name is."""
    assert found["max"] == "Row(max(id)=7)"
    assert found["Max"].endswith("=42)")
