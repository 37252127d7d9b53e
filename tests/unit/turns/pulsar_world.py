"""A Pulsar of one topic in this process, around real turns and real queries.

The turn, commit, hold, planner and readers are the product's, without Spark: packs are converted in
the turn's thread. Its clock stands still until a test moves it.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from offloader.config import load_config
from offloader.model import Clocks
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Partition, Position, Topic
from reader.plan import make_plan, take_snapshot
from reader.plan.reads import SplitsRead
from reader.sources import RowFormat, read_rows
from reader.table import TopicTable
from testbed.simulation import Ledger
from tests.unit.decode.entries import entry
from tests.unit.tiered.written_objects import jcloud_objects
from tests.unit.turns.served import ServedPulsar, in_thread_jobs

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
    """Return (ledger, entry, value or error) of each row."""
    return [(ledger, number, (error) or value) for ledger, number, value, error in rows]


def at_seconds(time_ms: int) -> Any:
    """As observations have it."""
    return pytest.approx(time_ms / 1000, abs=0.001)


class World(ServedPulsar):
    """``now``: the brokers' clock, ms; ``skew``: how far the offloader's is ahead of it, ms;
    ``ml``: the topic's managed ledger; ``moves``: where the hold was moved to.
    """

    def __init__(self, directory: Path, **offload: Any) -> None:
        super().__init__(START)
        self.topic = Topic("public", "default", "orders")
        self.partition = Partition(self.topic, -1)
        self.make_topic(10, "2026-01-01T00:00:00Z")
        self.skew = 0
        self.moves: list[Position] = []
        self.rest.moving = lambda ml, to: self.moves.append(Position(*to))
        self.tiered = directory / "tiered"
        self.config = load_config(
            {
                "pulsar": {"admin_url": "http://pulsar.example", "cluster": "c"},
                "storage": {"uri": str(directory / "tables")},
                "tiered": [{"uri": str(self.tiered), "format": "jcloud"}],
                "offload": {"grace": "0s", **offload},
                "query": {"cache_dir": str(directory / "cache"), "tail_entries": 0},
            }
        )
        self.admin = self.admin_client(self.config.pulsar)
        self.clients = Clients(self.config, admin=self.admin)
        self.said: list[str] = []

    def close(self) -> None:
        self.clients.close()
        self.admin.close()
        super().close()

    @property
    def now(self) -> int:
        return self.clock.now_ms

    @now.setter
    def now(self, ms: int) -> None:
        self.clock.now_ms = ms

    # -- what happens to the topic -----------------------------------------------------------------

    def make_topic(self, first: int, created: str) -> None:
        """Make the topic, or make it again; ``first``: the id of its first ledger."""
        self.state.next_ledger = first
        self.ml = self.state.make_topic(self.topic.full_name, 0).parts[-1]
        self.ml.created = created

    def write(self, *entries: bytes) -> None:
        """Write to the open ledger."""
        self.store(self.ml, *entries)

    def seal(self, *entries: bytes) -> int:
        """Write to the open ledger, and close it; the id of the next one."""
        self.write(*entries)
        last = self.ml.listing[-1]
        last.closed_ms = self.now
        self.ml.ledgers.append(Ledger(last.id + 1))
        return last.id + 1

    @property
    def opened(self) -> int:
        """The id of the open ledger."""
        return self.ml.listing[-1].id

    def ledger(self, number: int) -> Ledger:
        """A ledger that Pulsar has, by its id."""
        found = self.ml.get(number)
        assert found is not None
        return found

    def delete(self, *ledgers: int) -> None:
        """Pulsar deletes ledgers."""
        for one in ledgers:
            self.ledger(one).deleted = True

    def forget(self, *ledgers: int) -> None:
        """BookKeeper has no metadata of these ledgers, and of no others."""
        for one in self.ml.ledgers:
            one.forgotten = one.id in ledgers

    def move(self, *ledgers: int) -> None:
        """Pulsar offloads closed ledgers; BookKeeper's copies are deleted."""
        self.tiered.mkdir(exist_ok=True)
        for one in ledgers:
            index, data = jcloud_objects([entry.data for entry in self.ledger(one).entries])
            for name, content in (("", data), ("-index", index)):
                (self.tiered / f"{_UUID}-ledger-{one}{name}").write_bytes(content)
            self.ledger(one).offload = _UUID

    @property
    def held(self) -> Position:
        """The next entry that the hold needs."""
        return Position(*self.ml.cursors[self.config.offload.subscription])

    def offloader(self) -> TopicOffloader:
        """A new process; its clock is ``skew`` ms ahead of the broker's."""
        return TopicOffloader(
            self.clients,
            self.config.offload,
            in_thread_jobs(self.clients),
            clocks=Clocks(ms=lambda: self.now + self.skew),
            say=self.said.append,
        )

    def turn_after(self, ms: int, offloader: TopicOffloader, *, now: bool = False) -> None:
        """A turn, once so much time has passed."""
        self.now += ms
        offloader.turn(self.topic, now=now)

    def held_after(self, offloader: TopicOffloader) -> Position:
        """The next entry that the hold needs after one more turn."""
        offloader.turn(self.topic)
        return self.held

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
            for batch in read_rows(self.clients, SplitsRead(plan.splits), form)
            for row in batch.to_pylist()
        )


_UUID = "4a1e9e0e-0000-0000-0000-000000000001"
_COLUMNS = ("__ledgerId", "__entryId", "value", "__error")


def _rows(found: Any) -> list[Row]:
    return sorted(tuple(row[name] for name in _COLUMNS) for row in found)
