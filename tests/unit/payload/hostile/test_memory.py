"""What a batch takes is bounded by what comes out, whatever the payloads say."""

import json
import sys
from typing import Any

import pytest

from reader.payload import OutputBudget
from tests.support.running import run_program
from tests.unit.payload.hostile.amplified import CASES

# A message that is not rescued may be `message` bytes of columns, besides working memory.
MOST = 4 * OutputBudget().message
# What their payloads hold beyond what a message may become.
RESCUED = {"nulls": 2500, "nested_nulls": 60, "wide_items": 200, "empty_objects": 8, "deferred": 1,
           "empty_messages": 8, "wide_within_itself": 1}  # fmt: skip
_PROGRAM = """
import sys
from spark_ext.without_pandas import keep_out_pandas
keep_out_pandas()
from tests.unit.payload.hostile.amplified import main
main(sys.argv[1:])
"""
LONG = ("symbols", "zeros", "deferred", "empty_messages", "wide_within_itself", "packed")


def peaks(names: list[str]) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", _PROGRAM, *names]
    done = run_program(command, timeout=250)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "names",
    [[name for name in CASES if name not in LONG], pytest.param(LONG, marks=pytest.mark.long)],
    ids=["compiled", "long"],
)
def test_kilobytes_never_take_gigabytes(names: list[str]) -> None:
    """They took up to 2.4 GiB."""
    for found in peaks(list(names)):
        assert found["peak"] < MOST, found
        assert found["problems"] == RESCUED.get(found["name"], 0), found
