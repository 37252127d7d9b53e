"""A program ends though pyarrow's threads still read ahead through a storage's client."""

import sys
from pathlib import Path

import pytest

from tests.support.running import run_program

_PROGRAM = """
import sys, time
from spark_ext.without_pandas import keep_out_pandas
keep_out_pandas()
from reader.scan.open_scans import OpenScan  # before the rest, as a user's program has it
import numpy as np
import pyarrow as pa, pyarrow.dataset as pads, pyarrow.fs as pafs, pyarrow.parquet as pq
from reader.config import StorageConfig
from reader.storage import open_storage
from reader.storage.stores.arrow_filesystem import arrow_filesystem
from reader.storage.stores.obstore_client import ObstoreClient

class Slow(ObstoreClient):
    def ranges(self, path):
        found = super().ranges(path)
        read = found.read
        found.read = lambda start, length: time.sleep(0.005) or read(start, length)
        return found

if sys.argv[3] == "obstore":
    filesystem = arrow_filesystem(Slow.of_directory(sys.argv[1]), "box", "test")
else:
    import io
    from fsspec.implementations.memory import MemoryFile
    MemoryFile.read = lambda file, count=-1: time.sleep(0.005) or io.BytesIO.read(file, count)
    filesystem = open_storage(StorageConfig(uri="memory://box")).filesystem()[0]
draw = np.random.default_rng(7).random
table = pa.table({name: draw(20_000) for name in "abcde"})
names = list("01234567")
for name in names:
    with filesystem.open_output_stream("box/" + name) as sink:
        pq.write_table(table, sink, row_group_size=1_000)
dataset = pads.dataset(
    names, filesystem=pafs.SubTreeFileSystem("box", filesystem), format="parquet"
)

def batches(threads):
    yield from dataset.to_batches(batch_size=1_000, use_threads=threads)

kept = OpenScan(batches(sys.argv[2] == "threads"))
next(kept)
print("read")
"""


@pytest.mark.parametrize("client", ["obstore", "fsspec"])
@pytest.mark.parametrize("how", ["threads", "no threads"])
def test_a_program_that_reads_no_further_ends(tmp_path: Path, how: str, client: str) -> None:
    """Without the wait at exit the one with threads hangs, or aborts."""
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path), how, client]
    done = run_program(command, timeout=120)
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
    done = run_program(command, timeout=120)
    assert "the interpreter ends" in done.stdout, done.stderr


def test_a_scan_that_is_still_open_ends_before_the_interpreter() -> None:
    """Its threads and connections cannot be ended by an interpreter that ends itself."""
    program = """
import sys
from reader.scan.open_scans import OpenScan
def batches():
    try:
        yield from "ab"
    finally:
        print("closed", "too late" if sys.is_finalizing() else "in time")
kept = OpenScan(batches())
next(kept)
"""
    command = [sys.executable, "-c", program]
    done = run_program(command, timeout=120)
    assert done.stdout == "closed in time\n", done.stderr
