"""Offloading to a server of each kind of storage, rows a CPU second of ours; against S3's."""

from __future__ import annotations

import itertools
import operator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.case import Bench, Case
from benchmarks.data.topics import AVRO, Published
from benchmarks.measure import (
    BrokenCaseError,
    Contender,
    Result,
    at_least,
    paired,
    take_turns,
)
from benchmarks.offload_process import OffloadProcess
from offloader.config import load_config
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.storages.kinds import StorageServer, storage_server
from testbed.usage import cpu_seconds

__all__ = ["CASES"]

_S3 = "versity"
_OTHERS = ("gcs", "azure", "hdfs")
_TITLES = {_S3: "S3", "gcs": "GCS", "azure": "Azure", "hdfs": "HDFS"}


def _run(bench: Bench) -> list[Result]:
    topic = bench.topic(AVRO)
    with ExitStack() as stack:
        offloader = stack.enter_context(OffloadProcess(bench.world.directory / "offloader.log"))
        tables = {
            kind: _Tables(bench, kind, stack.enter_context(storage_server(kind)))
            for kind in (_S3, *_OTHERS)
        }
        contenders = {
            kind: Contender(partial(one.offload, offloader, topic), topic.rows, one.prepare)
            for kind, one in tables.items()
        }
        seconds = take_turns(
            contenders, bench.repeats, clock=lambda: cpu_seconds() + offloader.cpu().all
        )
        for one in tables.values():
            one.check(topic)
    return [
        *(
            bench.result(
                f"{_TITLES[kind]}: a CPU second", "rows/s", [topic.rows / s for s in taken]
            )
            for kind, taken in seconds.items()
        ),
        *(
            bench.result(
                f"of S3's rate, {_TITLES[kind]}",
                "x",
                paired(seconds[_S3], seconds[kind], operator.truediv),
                at_least(0.9),
            )
            for kind in _OTHERS
        ),
    ]


class _Tables:
    """In one server: each turn offloads below a prefix of its own."""

    def __init__(self, bench: Bench, kind: str, server: Any) -> None:
        assert isinstance(server, StorageServer)
        self._world = bench.world
        self._kind = kind
        self._server = server
        self._numbers = itertools.count()
        self._settings: dict[str, Any] = {}

    def prepare(self) -> None:
        number = next(self._numbers)
        storage = {
            "uri": f"{self._server.uri}/turn-{number}",
            "options": self._server.storage_options,
        }
        self._settings = self._world.settings(f"{self._kind}-{number}", storage=storage)

    def offload(self, offloader: OffloadProcess, topic: Published) -> int:
        return int(offloader.turn(self._settings, topic.name)["rows"])

    def check(self, topic: Published) -> None:
        """The last turn's table holds the topic."""
        storage = open_storage(load_config(self._settings).storage)
        table = TopicTable.open(storage, Topic.parse(topic.name))
        found = table.dataset().to_table(["id"]) if table else pa.table({"id": []})
        if (found.num_rows, pc.sum(found["id"]).as_py()) != (topic.rows, topic.sum_of_ids):
            raise BrokenCaseError(f"the table on {_TITLES[self._kind]} holds other rows")


CASES = (
    Case(
        "storages",
        "sealed ledgers to committed Parquet on a server of each kind, per CPU second",
        _run,
        (AVRO,),
    ),
)
