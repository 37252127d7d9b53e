"""Very many topics and ledgers that exist only in admin answers and a table's log."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from offloader.commit.delta_committer import DeltaCommitter
from offloader.output import Addition, Advance
from offloader.output.files import LedgerRows, WrittenFile
from offloader.parquet.statistics import FileStatistics, statistics_columns
from reader.model import Partition, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.storage import Storage
from reader.table import OffloadedLedger, TopicTable
from testbed.process import Server

__all__ = ["Many", "SimulatedAdmin", "Wide", "additions_of", "fill_table"]

_CREATED = "2026-01-01T00:00:00Z"
_ENTRIES = 50_000
_BYTES = 64 << 20
_START = 1_767_225_600_000  # 2026-01-01, ms
_STEP = 600_000  # ms between the ends of two ledgers


@dataclass(frozen=True, slots=True)
class Wide:
    """A topic of `ledgers` sealed ledgers over `partitions`, and an empty open one in each.

    Each ledger has 64 MiB in 50,000 entries and spans ten minutes of publish time.
    """

    topic: Topic
    partitions: int
    ledgers: int
    schema: dict[str, Any]

    def of(self, partition: int) -> range:
        """Its sealed ledgers' ids."""
        return range(partition, self.ledgers, self.partitions)

    def span(self, ledger: int) -> tuple[int, int]:
        """First and last publish time of a ledger, ms."""
        return _START + ledger * _STEP, _START + (ledger + 1) * _STEP - 1

    @property
    def schemas(self) -> tuple[SchemaInfo, ...]:
        return (SchemaInfo(0, "JSON", json.dumps(self.schema)),)


@dataclass(frozen=True, slots=True)
class Many:
    """`topics` topics over `namespaces`, without partitions; `ledgers` sealed ledgers in all.

    Each ledger has 1 MiB and was closed at `closed_at`, ms; in each topic an empty one is open.
    """

    namespaces: int
    topics: int
    ledgers: int
    closed_at: int
    subscription: str

    def names(self) -> list[Topic]:
        return [
            Topic("simulated", f"ns-{n % self.namespaces}", f"t-{n}") for n in range(self.topics)
        ]


class SimulatedAdmin(Server):
    """Answers on loopback, at once, as a broker would for the simulated topics.

    `requests` counts what came.
    """

    def __init__(self, what: Wide | Many) -> None:
        self._answers = _answers(what) if isinstance(what, Wide) else _of_many(what)
        self.requests = 0

    def start(self) -> None:
        answers = self._answers
        admin = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            def do_GET(self) -> None:
                admin.requests += 1
                path = urlsplit(self.path).path
                status, body = 200, answers.get(path)
                if path.startswith("/admin/v3/transactions/"):
                    status, body = 503, b'{"reason": "no transactionCoordinatorEnabled=true"}'
                elif body is None:
                    status, body = 404, b'{"reason": "not simulated"}'
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


def _answers(wide: Wide) -> dict[str, bytes]:
    path = f"/admin/v2/persistent/{wide.topic.rest_path}"
    schema = {"version": 0, "type": "JSON", "data": json.dumps(wide.schema), "properties": {}}
    found: dict[str, Any] = {
        "/admin/v2/clusters": ["simulated"],
        f"{path}/partitions": {"partitions": wide.partitions},
        f"/admin/v2/schemas/{wide.topic.rest_path}/schemas": {"getSchemaResponses": [schema]},
    }
    for index in range(wide.partitions):
        stats, info = _listing(wide, index)
        found[f"{path}-partition-{index}/internalStats"] = stats
        found[f"{path}-partition-{index}/internal-info"] = info
    return {name: json.dumps(answer).encode() for name, answer in found.items()}


def _of_many(many: Many) -> dict[str, bytes]:
    topics = many.names()
    names = sorted({f"{one.tenant}/{one.namespace}" for one in topics})
    count = {"bytesInCount": 0, "storageSize": 0, "subscriptions": {many.subscription: {}}}
    found: dict[str, Any] = {
        "/admin/v2/clusters": ["simulated"],
        "/admin/v2/brokers": ["127.0.0.1:8080"],
        "/admin/v2/namespaces/simulated": names,
        "/admin/v2/broker-stats/topics": {
            name: {
                "0x00000000_0xffffffff": {
                    "persistent": {
                        one.full_name: count
                        for one in topics
                        if f"{one.tenant}/{one.namespace}" == name
                    }
                }
            }
            for name in names
        },
    }
    for name in names:
        there = [one.full_name for one in topics if f"{one.tenant}/{one.namespace}" == name]
        found[f"/admin/v2/persistent/{name}"] = there
        found[f"/admin/v2/persistent/{name}/partitioned"] = []
        found[f"/admin/v2/namespaces/{name}/subscriptionExpirationTime"] = 0
    each = many.ledgers // many.topics
    for number, topic in enumerate(topics):
        path = f"/admin/v2/persistent/{topic.rest_path}"
        ids = range(number * (each + 1), number * (each + 1) + each)
        size = {"entries": _ENTRIES, "size": 1 << 20, "offloaded": False}
        ledgers = [{"ledgerId": one, "metadata": _metadata(one, True)} | size for one in ids]
        nothing = {"entries": 0, "size": 0, "offloaded": False}
        ledgers.append({"ledgerId": ids.stop, "metadata": _metadata(ids.stop, False)} | nothing)
        found[f"{path}/partitions"] = {"partitions": 0}
        found[f"{path}/messageTTL"] = None
        found[f"{path}/backlogQuotaMap"] = {}
        found[f"{path}/subscription/{many.subscription}"] = None
        found[f"{path}/internalStats"] = {
            "state": "LedgerOpened",
            "currentLedgerSize": 0,
            "lastConfirmedEntry": f"{ids[-1]}:{_ENTRIES - 1}",
            "ledgers": ledgers,
            "cursors": {many.subscription: {"markDeletePosition": f"{ids[0]}:-1"}},
        }
        found[f"{path}/internal-info"] = {
            "creationDate": _CREATED,
            "ledgers": [{"ledgerId": one, "timestamp": many.closed_at} for one in ids],
        }
    return {name: json.dumps(answer).encode() for name, answer in found.items()}


def _listing(wide: Wide, index: int) -> tuple[dict[str, Any], dict[str, Any]]:
    sealed = wide.of(index)
    open_one = sealed[-1] + wide.ledgers
    size = {"entries": _ENTRIES, "size": _BYTES, "offloaded": False}
    nothing = {"entries": 0, "size": 0, "offloaded": False}
    ledgers = [{"ledgerId": one, "metadata": _metadata(one, True)} | size for one in sealed]
    ledgers.append({"ledgerId": open_one, "metadata": _metadata(open_one, False)} | nothing)
    stats = {
        "state": "LedgerOpened",
        "currentLedgerSize": 0,
        "lastConfirmedEntry": f"{sealed[-1]}:{_ENTRIES - 1}",
        "ledgers": ledgers,
        "cursors": {},
    }
    closed = [{"ledgerId": one, "timestamp": wide.span(one)[1]} for one in sealed]
    return stats, {"creationDate": _CREATED, "ledgers": closed}


def _metadata(ledger: int, closed: bool) -> str:
    end = f"length={_BYTES}, lastEntryId={_ENTRIES - 1}, " if closed else ""
    return (
        f"LedgerMetadata{{formatVersion=3, ensembleSize=2, writeQuorumSize=2, ackQuorumSize=2, "
        f"state={'CLOSED' if closed else 'OPEN'}, {end}digestType=CRC32C, password=base64:, "
        f"ensembles={{0=[127.0.0.1:3181, 127.0.0.1:3182]}}, customMetadata={{}}, "
        f"ledgerId={ledger}}}"
    )


def fill_table(storage: Storage, wide: Wide, commits: int) -> TopicTable:
    """Commit every ledger, a file each that does not exist, in about so many commits."""
    table: TopicTable | None = None
    for addition in additions_of(wide, commits):
        table = DeltaCommitter(storage).commit(table, addition)
    assert table is not None
    return table


def additions_of(wide: Wide, commits: int) -> Iterator[Addition]:
    """What `fill_table` commits, one after the other."""
    fields = payload_fields(wide.schemas)
    columns = pa.schema([*fields, *METADATA])
    schema = columns.serialize().to_pybytes()
    watermarks = dict.fromkeys(range(wide.partitions), -1)
    per_commit = max(wide.partitions, wide.ledgers // commits // wide.partitions * wide.partitions)
    for first in range(0, wide.ledgers, per_commit):
        ledgers = range(first, min(first + per_commit, wide.ledgers))
        advances = []
        for index in range(wide.partitions):
            upto = max(one for one in ledgers if one % wide.partitions == index)
            partition = Partition(wide.topic, index)
            advances.append(Advance(partition, watermarks[index], upto, _CREATED))
            watermarks[index] = upto
        yield Addition(
            topic=wide.topic,
            advances=tuple(advances),
            files=tuple(_file(wide, one, columns, schema) for one in ledgers),
            ledgers=tuple(_offloaded(wide, one) for one in ledgers),
            fields=fields,
            source="bookkeeper",
            cluster="simulated",
        )


def _file(wide: Wide, ledger: int, columns: pa.Schema, schema: bytes) -> WrittenFile:
    times = [one * 1000 for one in wide.span(ledger)]
    known: dict[str, Sequence[Any]] = {
        "__partition": [ledger % wide.partitions] * 2,
        "__ledgerId": [ledger] * 2,
        "__entryId": [0, _ENTRIES - 1],
        "__publishTime": times,
    }
    arrays = [pa.array(known.get(field.name, [None] * 2), field.type) for field in columns]
    statistics = FileStatistics(statistics_columns(columns))
    statistics.add(pa.RecordBatch.from_arrays(arrays, schema=columns))
    return WrittenFile(
        path=f"p{ledger % wide.partitions}-{ledger}-simulated.zstd.parquet",
        size=_BYTES // 2,
        modified=time.time_ns() // 1_000_000,
        rows=2,
        statistics=statistics.to_json(),
        schema=schema,
        ledgers=(LedgerRows(ledger, 2, *times),),
    )


def _offloaded(wide: Wide, ledger: int) -> OffloadedLedger:
    low, high = (one * 1000 for one in wide.span(ledger))
    partition = ledger % wide.partitions
    return OffloadedLedger(partition, ledger, _ENTRIES, 2, _BYTES, "bookkeeper", low, high)
