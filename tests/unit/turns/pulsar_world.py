"""A Pulsar of one topic in this process: an admin REST, and a bookie.

Around the real turn, commit, hold, planner and readers, without Spark: packs are converted in the
turn's thread. Its clock stands still until a test moves it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from offloader.config import load_config
from offloader.convert import Conversion, ConversionJobs
from offloader.convert.conversion import ConversionOutcome
from offloader.convert.pack_task import run_packs
from offloader.model import Clocks
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.closing import Closing
from reader.config import PulsarConfig
from reader.model import Partition, Position, Topic
from reader.plan import make_plan, take_snapshot
from reader.pulsar.admin import AdminClient
from reader.pulsar.http import AdminHttp
from reader.sources import RowFormat, read_splits
from reader.table import TopicTable
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer, batch_answer, stored
from tests.unit.decode.entries import entry
from tests.unit.tiered.written_objects import jcloud_objects

__all__ = [
    "HOUR",
    "NEVER",
    "PLAIN",
    "START",
    "Row",
    "World",
    "at_seconds",
    "bare_error",
    "chunk",
    "kinds",
]

HOUR = 3_600_000
START = time.time_ns() // 1_000_000 + 24 * HOUR
"""The storage's clock, which is this machine's, is never ahead of the test's."""
PLAIN = entry(b"plain", publish_time=START)
NEVER = "chunked message that was never completed"

Row = tuple[int, int, bytes | None, str | None]
"""Ledger, entry, value, error."""


def chunk(uuid: str, number: int, of: int, at: int = START, **values: Any) -> bytes:
    """Chunk ``number`` of a message; ``at``: its publish time, ms."""
    return entry(
        f"{uuid}{number} ".encode(),
        uuid=uuid,
        num_chunks_from_msg=of,
        chunk_id=number,
        total_chunk_msg_size=3 * of,
        publish_time=at,
        **values,
    )


def kinds(rows: Sequence[Row]) -> list[tuple[int, int, bytes | str | None]]:
    """(ledger, entry, value or error); ``NEVER`` without where the message begins."""
    return [(ledger, number, bare_error(error) or value) for ledger, number, value, error in rows]


def bare_error(text: str | None) -> str | None:
    """Without where a message begins that was given up."""
    return NEVER if text is not None and text.startswith(f"{NEVER}: its first") else text


def at_seconds(time_ms: int) -> Any:
    """As observations have it."""
    return pytest.approx(time_ms / 1000, abs=0.001)


class World(Closing):
    """``ledgers``: the entries of each; ``closed``: when, ms, of those that are; ``now``: the
    broker's clock, ms; ``transactions``: what the broker says of them, None: there are none.
    ``aborted``: whether those that are decided were. ``read``: the ledger of each bookie's answer.
    """

    def __init__(self, directory: Path, **offload: Any) -> None:
        self.ledgers: dict[int, list[bytes]] = {10: []}
        self.closed: dict[int, int] = {}
        self.now = START
        self.skew = 0
        self.created = "2026-01-01T00:00:00Z"
        self.transactions: dict[str, Any] | None = None
        self.aborted = False
        self.cursors: dict[str, Position] = {}
        self.properties: dict[str, Any] = {}
        self.moves: list[Position] = []
        self.read: list[int] = []
        self.silent: set[int] = set()  # ledgers that no bookie can read
        self.missing: set[tuple[int, int]] = set()  # entries that no bookie has
        self.bare: set[int] = set()  # ledgers of which BookKeeper has no metadata
        self.moved: set[int] = set()  # ledgers that Pulsar's tiered storage has
        self.tiered = directory / "tiered"
        self.bookie = FakeBookie(self._one, self._many)
        self.config = load_config(
            {
                "pulsar": {"admin_url": "http://pulsar.example", "cluster": "c"},
                "storage": {"uri": str(directory / "tables")},
                "tiered": [{"uri": str(self.tiered), "format": "jcloud"}],
                "offload": {"grace": "0s", **offload},
                "query": {"cache_dir": str(directory / "cache"), "tail_entries": 0},
            }
        )
        self.topic = Topic("public", "default", "orders")
        self.partition = Partition(self.topic, -1)
        self.admin = AdminClient(self.config.pulsar, http=_WorldHttp(self.config.pulsar, self))
        self.clients = Clients(self.config, admin=self.admin)
        self.said: list[str] = []

    def close(self) -> None:
        self.clients.close()
        self.admin.close()
        self.bookie.close()

    # -- what happens to the topic -----------------------------------------------------------------

    def seal(self, *entries: bytes) -> int:
        """Write to the open ledger, and close it; the id of the next one."""
        last = max(self.ledgers)
        self.ledgers[last] += entries
        self.closed[last] = self.now
        self.ledgers[last + 1] = []
        return last + 1

    def move(self, *ledgers: int) -> None:
        """Pulsar offloads closed ledgers; BookKeeper's copies are deleted."""
        self.tiered.mkdir(exist_ok=True)
        for one in ledgers:
            index, data = jcloud_objects(self.ledgers[one])
            for name, content in (("", data), ("-index", index)):
                (self.tiered / f"{_UUID}-ledger-{one}{name}").write_bytes(content)
            self.moved.add(one)

    @property
    def held(self) -> Position:
        """The next entry that the hold needs."""
        return self.cursors[self.config.offload.subscription]

    def offloader(self) -> TopicOffloader:
        """A new process; its clock is ``skew`` ms ahead of the broker's."""
        jobs: ConversionJobs[Any] = ConversionJobs(lambda: None, partial(_convert, self.clients))
        return TopicOffloader(
            self.clients,
            self.config.offload,
            jobs,
            clocks=Clocks(ms=lambda: self.now + self.skew),
            say=self.said.append,
        )

    # -- what is seen of it ------------------------------------------------------------------------

    def table(self) -> TopicTable:
        found = TopicTable.open(self.clients.storage, self.topic)
        assert found is not None
        return found

    def cold(self) -> list[Row]:
        """The rows of the table's newest version."""
        return _rows(row for batch in self.table().batches(_COLUMNS) for row in batch.to_pylist())

    def hot(self) -> list[Row]:
        """The rows that a query takes from the bookies."""
        return self.pinned()()

    def pinned(self) -> Callable[[], list[Row]]:
        """The same of a query that is planned now, whenever it runs."""
        snapshot = take_snapshot(self.clients, self.topic)
        plan = make_plan(self.clients, snapshot, _COLUMNS)
        columns = snapshot.columns
        form = RowFormat(
            snapshot.fields, snapshot.schemas, columns.empty_table().select(_COLUMNS).schema
        )
        return lambda: _rows(
            row
            for batch in read_splits(self.clients, plan.splits, form)
            for row in batch.to_pylist()
        )

    # -- Pulsar's side -----------------------------------------------------------------------------

    def _one(self, request: int, ledger: int, number: int) -> bytes:
        entries = None if ledger in self.moved else self.ledgers.get(ledger)
        if ledger in self.silent:
            return answer(request, 101, ledger, number)
        if entries is None or number >= len(entries) or (ledger, number) in self.missing:
            return answer(request, 402 if entries is None else 403, ledger, number)
        self.read.append(ledger)
        return answer(request, 0, ledger, number, stored(ledger, number, entries[number]))

    def _many(self, request: int, ledger: int, first: int, count: int, size: int) -> bytes:
        entries = None if ledger in self.moved else self.ledgers.get(ledger)
        if ledger in self.silent:
            return batch_answer(request, 101, ledger, first)
        if entries is None or first >= len(entries) or (ledger, first) in self.missing:
            return batch_answer(request, 402 if entries is None else 403, ledger, first)
        self.read.append(ledger)
        found: list[bytes] = []
        for number in range(first, min(first + count, len(entries))):
            if (ledger, number) in self.missing:
                break
            one = stored(ledger, number, entries[number])
            if found and sum(map(len, found)) + len(one) > size:
                break
            found.append(one)
        return batch_answer(request, 0, ledger, first, found)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """What the admin REST answers: status and body."""
        name = path.rsplit("/", 1)[1]
        found: dict[str, Any] = {
            "internalStats": self.stats(),
            "internal-info": {
                "creationDate": self.created,
                # Of the open ledger, as Pulsar does: the time of the question.
                "ledgers": [
                    {"ledgerId": one, "timestamp": self.closed.get(one, self.now)}
                    | ({"offloadedContextUuid": _UUID} if one in self.moved else {})
                    for one in sorted(self.ledgers)
                ],
            },
            "stats": {
                "subscriptions": {
                    one: {"subscriptionProperties": self.properties.get(one, {})}
                    for one in self.cursors
                }
            },
            "partitions": {"partitions": 0},
            "schemas": {"getSchemaResponses": []},
            "subscriptions": list(self.cursors),
            "backlogQuotaMap": {},
            "messageTTL": None,
            "subscriptionExpirationTime": None,
            "runtime": {},
            "clusters": ["c"],
        }
        if name in found:
            return 200, found[name]
        if "transactionInBufferStats" in path:
            return 200, {"aborted": self.aborted}
        if "transactionBufferStats" in path:
            off = {"reason": "transactionCoordinatorEnabled is off"}
            return (503, off) if self.transactions is None else (200, self.transactions)
        if "/subscription/" in path:
            return self._subscription(method, path.split("/subscription/")[1], body)
        return 404, {"reason": path}

    def _subscription(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        name, _, what = path.partition("/")
        if what == "properties":
            if method == "PUT":
                self.properties[name] = body
                return 204, None
            return 200, self.properties.get(name, {})
        if what == "resetcursor":
            self.cursors[name] = Position(body["ledgerId"], body["entryId"])
            self.moves.append(self.cursors[name])
            return 204, None
        if name in self.cursors:
            return 409, {"reason": "it exists"}
        self.cursors[name] = Position(min(self.ledgers), 0)
        return 204, None

    def stats(self) -> dict[str, Any]:
        """``internalStats``."""
        ids = sorted(self.ledgers)
        end = next((one for one in reversed(ids) if self.ledgers[one]), ids[-1])
        return {
            "state": "LedgerOpened",
            "lastConfirmedEntry": f"{end}:{len(self.ledgers[end]) - 1}",
            "currentLedgerSize": 10,
            "cursors": {
                name: {"markDeletePosition": f"{at.ledger}:{at.entry - 1}"}
                for name, at in self.cursors.items()
            },
            "ledgers": [
                {
                    "ledgerId": one,
                    "entries": len(self.ledgers[one]) if one in self.closed else 0,
                    "size": sum(map(len, self.ledgers[one])),
                    "offloaded": one in self.moved,
                    "metadata": None if one in self.bare | self.moved else self.metadata(one),
                }
                for one in ids
            ],
        }

    def metadata(self, ledger: int) -> str:
        """As ``internalStats`` prints it."""
        end = f"length=1, lastEntryId={len(self.ledgers[ledger]) - 1}, "
        closed = ledger in self.closed
        return (
            "LedgerMetadata{formatVersion=3, ensembleSize=1, writeQuorumSize=1, ackQuorumSize=1, "
            f"state={'CLOSED' if closed else 'OPEN'}, {end if closed else ''}digestType=CRC32C, "
            f"password=OMITTED, ensembles={{0=[{self.bookie.address}]}}, customMetadata={{}}}}"
        )


_UUID = "4a1e9e0e-0000-0000-0000-000000000001"
_COLUMNS = ("__ledgerId", "__entryId", "value", "__error")


def _rows(found: Any) -> list[Row]:
    return sorted(tuple(row[name] for name in _COLUMNS) for row in found)


def _no_spark() -> Any:
    raise AssertionError("packs are converted here")


def _convert(
    clients: Clients, context: None, conversions: Sequence[Conversion], *, pool: str
) -> list[ConversionOutcome]:
    outcomes: list[ConversionOutcome] = []
    for conversion in conversions:
        conversion.begun()
        packs = [(conversion.spec, pack) for pack in conversion.packs]
        # On a busy machine a turn would give up packs, and commit nothing. Tests of slow packs have
        # a negative patience.
        patience = 100 * conversion.patience
        outcomes.append(tuple(run_packs(packs, patience=patience, clients=clients)))
    return outcomes


class _WorldHttp(AdminHttp):
    """Requests that the world answers in the thread that sends them, without a socket."""

    def __init__(self, config: PulsarConfig, world: World) -> None:
        super().__init__(config)
        self._world = world

    def request(self, method: str, path: str, **kwargs: Any) -> httpx.Response:
        asked = json.loads(json.dumps(kwargs.get("json")))
        status, found = self._world.answer(method, path, asked)
        body = b"" if status == 204 else json.dumps(found).encode()
        return httpx.Response(status, content=body, request=httpx.Request(method, self.url + path))
