"""A storage's keys in Spark: neither on the JVM's command line, nor in its page, nor in SET."""

import json
import sys
from typing import Any

import pytest

from tests.support.running import run_program

pytestmark = pytest.mark.long

_PROGRAM = """
import json, sys, urllib.request
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from reader.storage import open_storage
from spark_ext.session.builder import build_session
from spark_ext.session.settings import LakeConfig

config = LakeConfig.load(json.loads(sys.stdin.readline()))
storage = open_storage(config.storage)
filesystem, root = storage.filesystem()
with filesystem.open_output_stream(f"{root}/shown.parquet") as sink:
    pq.write_table(pa.table({"a": range(100)}), sink)
spark = build_session(config)
rows = spark.read.parquet(storage.spark_uri(f"{storage.root}/shown.parquet")).count()
pid = spark.sparkContext._gateway.proc.pid
below = [Path("/proc", str(pid), "cmdline").read_bytes()]
shown = {
    "command line": b" ".join(below).decode(errors="replace"),
    "page": urllib.request.urlopen(spark.sparkContext.uiWebUrl + "/environment/").read().decode(),
    "SET": str(spark.sql("SET").collect()),
    "SET -v": str(spark.sql("SET -v").collect()),
}
print(json.dumps([rows, shown]))
"""


def test_no_key_is_shown(server: Any) -> None:
    """With a redaction of the user's own beside it."""
    options = server.storage_options
    secrets = [value for name, value in options.items() if "key" in name]
    settings = {
        "storage": {"uri": f"{server.uri}/secrets", "options": options},
        "spark": {
            "master": "local[1]",
            "class_archive": False,
            "conf": {
                "spark.ui.enabled": "true",
                "spark.redaction.regex": "hushed",
                "spark.my.hushed": "quiet-please",
            },
        },
    }
    done = run_program(
        [sys.executable, "-c", _PROGRAM], input=json.dumps(settings) + "\n", timeout=280
    )
    assert done.returncode == 0, done.stderr
    rows, shown = json.loads(done.stdout.splitlines()[-1])
    assert rows == 100
    for where, text in shown.items():
        assert "spark" in text, where
        assert [one for one in secrets if one in text] == [], where
        if where != "command line":  # a user's own expression hides in Spark alone, as before
            assert "quiet-please" not in text, where
