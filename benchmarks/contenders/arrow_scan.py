"""`python -m benchmarks.contenders.arrow_scan scan SETTINGS TOPIC` (or `dataset DIRECTORY`).

In a new process: all columns of all rows to Arrow, batch by batch, by `scan()`, or by
`pyarrow.dataset` over the files in the table's directory. Prints a line of JSON: the number of
rows, and the sum of their ids.
"""

import json
import sys
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc


def scan_rows(settings: str, topic: str) -> tuple[int, int]:
    """By `scan()`, of a settings file."""
    from reader import open_topic

    with open_topic(settings, topic) as opened:
        return _summed(opened.scan())


def dataset_rows(directory: str) -> tuple[int, int]:
    """By pyarrow alone."""
    import pyarrow.dataset as pads

    return _summed(pads.dataset(directory, format="parquet").to_batches())


def _summed(batches: Iterable[pa.RecordBatch]) -> tuple[int, int]:
    rows = ids = 0
    for batch in batches:
        rows += batch.num_rows
        ids += pc.sum(batch.column("id")).as_py() or 0
    return rows, ids


def main() -> int:
    who, *arguments = sys.argv[1:]
    print(json.dumps(scan_rows(*arguments) if who == "scan" else dataset_rows(*arguments)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
