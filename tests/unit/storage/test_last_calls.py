"""A program ends though pyarrow's threads still read ahead through a storage's client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import sys
from reader.scan.open_scans import OpenScan  # before the rest, as a user's program has it
import pyarrow as pa, pyarrow.dataset as pads, pyarrow.fs as pafs, pyarrow.parquet as pq
from reader.storage.stores.arrow_filesystem import arrow_filesystem
from reader.storage.stores.obstore_client import ObstoreClient

filesystem = arrow_filesystem(ObstoreClient.of_directory(sys.argv[1]), "box", "test")
table = pa.table({name: range(300_000) for name in "abcd"})
for name in "012345":
    with filesystem.open_output_stream("box/" + name) as sink:
        pq.write_table(table, sink, row_group_size=5_000)
dataset = pads.dataset(
    list("012345"), filesystem=pafs.SubTreeFileSystem("box", filesystem), format="parquet"
)

def batches(threads):
    yield from dataset.to_batches(batch_size=1_000, use_threads=threads)

def dropped():
    next(batches(True))

kept = [OpenScan(batches(threads)) for threads in (True, False)]
for one in kept:
    next(one)
dropped()
print("read")
"""


@pytest.mark.parametrize("time", range(4))
def test_a_program_that_reads_no_further_ends(tmp_path: Path, time: int) -> None:
    """Without the wait at exit it hangs, or aborts (134), nearly each time."""
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr


def test_nothing_is_read_once_the_interpreter_ends(tmp_path: Path) -> None:
    program = """
import atexit, sys
import reader.storage.last_calls  # registers first: runs last
from reader.storage.stores.arrow_filesystem import arrow_filesystem
from reader.storage.stores.obstore_client import ObstoreClient
filesystem = arrow_filesystem(ObstoreClient.of_directory(sys.argv[1]), "box", "test")
with filesystem.open_output_stream("box/x") as sink:
    sink.write(b"abc")
class Late:
    def __del__(self):
        try:
            filesystem.open_input_file("box/x")
        except OSError as error:
            print(error)
late = Late()
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert "the interpreter ends" in done.stdout, done.stderr
