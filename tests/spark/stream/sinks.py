"""What a stream program (``tests/support/stream_program.py``) has written, and had to write.

That is, of each micro-batch, what was published between the two offsets that the checkpoint has.
"""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from testbed.publish import Message
from tests.support.stream_program import REMAINDERS

Place = tuple[int, int, int, int]
"""Partition, ledger, entry, batch index: in the order of the log of a partition."""

Offset = dict[int, tuple[int, int]]
"""Partition → ledger and entry of the last message that was read."""


class Sinks:
    """Checkpoints and sinks in a folder of a file system."""

    def __init__(self, filesystem: pafs.FileSystem, folder: str) -> None:
        self._files = filesystem
        self._folder = folder

    def written(self, query: str) -> dict[int, pa.Table]:
        """Each finished micro-batch's rows, by its number."""
        found = {}
        for number in self._numbers(query):
            folder = f"{self._folder}/{query}/{number}"
            if f"{folder}/_SUCCESS" in self._list(folder):
                found[number] = pq.read_table(folder, filesystem=self._files)
        return found

    def offsets(self, query: str) -> dict[int, Offset]:
        """Where each micro-batch ends, by its number."""
        found = {}
        for number in self._numbers(f"{query}-checkpoint/offsets"):
            path = f"{self._folder}/{query}-checkpoint/offsets/{number}"
            with self._files.open_input_file(path) as source:
                lines = source.read().decode().splitlines()
            [line] = [one for one in lines if '"topics":' in one]
            [topic] = json.loads(line)["topics"].values()
            found[number] = {int(index): _position(at) for index, at in topic["at"].items()}
        return found

    def _numbers(self, folder: str) -> list[int]:
        names = (path.rpartition("/")[2] for path in self._list(f"{self._folder}/{folder}"))
        return sorted(int(name) for name in names if name.isdigit())

    def _list(self, folder: str) -> list[str]:
        selector = pafs.FileSelector(folder, allow_not_found=True)
        return [one.path for one in self._files.get_file_info(selector)]


def _position(text: str) -> tuple[int, int]:
    ledger, entry = text.split(":")
    return int(ledger), int(entry)


def places(rows: pa.Table) -> list[tuple[Place, int]]:
    """Rows as (place, number), sorted."""
    names = ("partition", "ledger", "entry", "place", "number")
    columns = [rows[name].to_pylist() for name in names]
    return sorted(
        ((p, at, entry, n), number) for p, at, entry, n, number in zip(*columns, strict=True)
    )


def published(sent: Sequence[Message]) -> dict[Place, int]:
    """By place the ``id`` of each message, which were sent with ``ids``."""
    found = {}
    for message in sent:
        assert message.message_id is not None
        ledger, entry, partition, place = message.message_id
        found[partition, ledger, entry, place] = int(message.value["id"])
    assert len(found) == len(sent)
    return found


def _between(sent: dict[Place, int], start: Offset, end: Offset) -> list[tuple[Place, int]]:
    return sorted(
        (place, number)
        for place, number in sent.items()
        if start.get(place[0], (-1, -1)) < place[1:3] <= end.get(place[0], (-1, -1))
    )


def check_rows(sinks: Sinks, sent: dict[Place, int]) -> None:
    """Each micro-batch has exactly what lies between its offsets, all of them everything."""
    offsets, written = sinks.offsets("rows"), sinks.written("rows")
    assert offsets.keys() == written.keys()
    before: Offset = {}
    found = []
    for number, end in offsets.items():
        rows = places(written[number])
        assert rows == _between(sent, before, end), f"micro-batch {number}"
        _check_order(written[number])
        found += rows
        before = end
    assert sorted(found) == sorted(sent.items())


def _check_order(rows: pa.Table) -> None:
    """Each task has the messages of a ledger in order, and numbers rise with positions."""
    latest: dict[tuple[Any, ...], tuple[int, int]] = {}
    for row in sorted(rows.to_pylist(), key=lambda one: int(one["row"])):
        key, place = (row["task"], row["partition"], row["ledger"]), (row["entry"], row["place"])
        assert latest.get(key, (-1, -1)) < place
        latest[key] = place
    for partition in set(rows["partition"].to_pylist()):
        numbers = [number for place, number in places(rows) if place[0] == partition]
        assert numbers == sorted(set(numbers))


def check_state(sinks: Sinks, sent: dict[Place, int]) -> None:
    """After each micro-batch, the keys that it touched have what there is up to its offsets."""
    offsets, written = sinks.offsets("state"), sinks.written("state")
    assert offsets.keys() == written.keys()
    before: Offset = {}
    counts: Counter[tuple[int, int]] = Counter()
    totals: Counter[tuple[int, int]] = Counter()
    for number, end in offsets.items():
        touched = set()
        for (partition, *_), value in _between(sent, before, end):
            key = partition, value % REMAINDERS
            counts[key] += 1
            totals[key] += value
            touched.add(key)
        columns = ("partition", "key", "messages", "total")
        rows = list(zip(*(written[number][name].to_pylist() for name in columns), strict=True))
        wanted = [(*key, counts[key], totals[key]) for key in touched]
        assert sorted(rows) == sorted(wanted), f"micro-batch {number}"
        before = end
    assert sum(counts.values()) == len(sent)
