"""One topic of a fake broker, a local storage, and the clients of both."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.closing import Closing
from reader.config import ReadConfig
from reader.encode import EncodedEntry
from reader.model import Partition, Position
from reader.model.columns import rows_between
from reader.pulsar import LedgerInfo, LogEnd, PartitionLedgers
from reader.scan.behind import RowsBehind
from reader.sink import Manifest, NamedWrite, StagedFile, StagingWriter, Target
from reader.sink.manifest import PartitionEntries
from reader.sink.sending import PartitionTask, Sent, send_partition
from tests.unit.decode.entries import PARTITION, decode
from tests.unit.encode.messages.encoding import Row, encode
from tests.unit.pulsar.binary.fake_broker import FakeBroker
from tests.unit.pulsar.binary.fake_topic import FakeTopic

APP = "orders-query"
CREATED = 1_700_000_000_000
NOW = CREATED / 1000 + 5
FIRST_ID = (CREATED + 5000) * 1000
"""Of what is decided now."""
TARGET = Target(PARTITION.topic, 4, None, b"schema", b"", 5 << 20)


_PLACE = ("__ledgerId", "__entryId")
_FIRST_ENTRY = 10
"""As ``block_of`` numbers them."""

NOISE = random.Random(2).randbytes(10_000)


def batches(
    count: int, size: int = 3, first: int = 0, *, large: bool = False
) -> list[EncodedEntry]:
    """So many entries, each a batch of so many messages that differ. ``large``: 10 kB each."""
    tail = NOISE if large else b""
    found: list[EncodedEntry] = []
    for number in range(first, first + count):
        found += encode([Row(b"%d-%d" % (number, row) + tail) for row in range(size)])
    return found


class World(Closing):
    """``slept``: how long senders have waited, in s. ``reads``: how often the topic was read.

    ``created_at``: of the managed ledger. ``hidden``: whether a transaction hides the end of the
    log. ``incomplete``: whether rows may be missing, by what ``read_behind`` says.
    """

    def __init__(self, directory: Path, timeout: str = "120s") -> None:
        self.directory = directory / "lake"
        self.broker = FakeBroker()
        self.topic = FakeTopic(self.broker)
        settings = {
            "pulsar": {"service_url": self.broker.url, "timeout": timeout},
            "storage": {"uri": str(self.directory)},
            "write": {"drop_topics": True},
        }
        admin: Any = self
        self.clients = Clients(ReadConfig.load(settings), admin=admin)
        self.slept: list[float] = []
        self.reads = 0
        self.hidden = self.incomplete = False
        self.created_at = "2026-01-01T00:00:00Z"

    def close(self) -> None:
        self.clients.close()
        self.broker.close()

    def write(self, app: str = APP, topic: str | None = None, *, named: bool = True) -> NamedWrite:
        """As a driver has it: it knows nothing yet."""
        return NamedWrite(self.clients, app, topic, named=named, now=lambda: NOW)

    def ledgers(self, partition: Partition) -> PartitionLedgers:
        """As the admin API answers."""
        end = Position(*self.topic.end())
        return PartitionLedgers(
            partition,
            tuple(LedgerInfo(one, 0, 0, None, False, None) for one in self._listed()),
            end,
            Position(end.ledger, end.entry - 1) if self.hidden else end,
            False,
            self.created_at,
            0,
            {},
        )

    def ledger_ids(self, partition: Partition) -> set[int]:
        return set(self._listed())

    def log_end(self, partition: Partition) -> LogEnd:
        return LogEnd(Position(*self.topic.end()), self.created_at)

    def _listed(self) -> list[int]:
        return [*self.topic.sealed, self.topic.ledger]

    def staged(
        self,
        entries: Sequence[EncodedEntry],
        *,
        app: str = APP,
        directory: str = "",
        partition: Partition = PARTITION,
    ) -> StagedFile:
        """By one task."""
        writer = StagingWriter(self.clients, directory or self.write(app).directory)
        for one in entries:
            writer.put(TARGET, partition, one)
        return writer.finish(sum(one.messages for one in entries))

    def manifest(self, entries: Sequence[EncodedEntry], *, first: int = 0) -> Manifest:
        """Ids from ``first`` on, directly behind those of earlier versions."""
        path = f"{self.write().directory}/{first:020d}.manifest"
        ends = {PARTITION.full_name: self.log_end(PARTITION)}
        made = Manifest("me", 0, self.now_ms(), path=path).sending([self.staged(entries)], ends)
        partitions = [replace(one, first=first, before=first - 1) for one in made.partitions]
        made = replace(made, partitions=partitions)
        self.clients.storage.objects().put(made.path, made.to_bytes())
        return made

    def later(self, manifest: Manifest, hours: float) -> Manifest:
        """The manifest, once so many hours have passed since it was decided."""
        path, seconds = self.directory / manifest.path, 3600 * hours
        written = path.stat().st_mtime - seconds
        os.utime(path, (written, written))
        return replace(manifest, created=manifest.created - int(1000 * seconds))

    @staticmethod
    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    def send(self, manifest: Manifest, *, fresh: bool) -> Sent:
        [entries] = manifest.partitions
        return self.send_entries(manifest, entries, fresh=fresh)

    def send_entries(self, manifest: Manifest, entries: PartitionEntries, *, fresh: bool) -> Sent:
        task = PartitionTask.of(manifest, entries, fresh=fresh)
        return send_partition(self.clients, task, now=lambda: NOW, sleep=self.slept.append)

    def rows(self) -> list[dict[str, Any]]:
        """What readers see of what is stored."""
        stored = self.topic.stored
        return [
            row | dict(zip(_PLACE, stored[row["__entryId"] - _FIRST_ENTRY].place, strict=True))
            for row in decode([one.entry for one in stored])
        ]

    def payloads(self) -> list[Any]:
        return [row["payload"] for row in self.rows()]

    def twice(self) -> list[Any]:
        return [one for one, times in Counter(self.payloads()).items() if times > 1]


def reads_behind(world: World) -> Callable[..., RowsBehind]:
    """Return what reads the topic of a world, as ``reader.scan.read_behind`` does."""

    def read(
        clients: Clients,
        listing: PartitionLedgers,
        position: Position,
        columns: Sequence[str],
        where: pc.Expression,
    ) -> RowsBehind:
        assert clients is world.clients
        assert listing.partition == PARTITION
        world.reads += 1
        first = Position(position.ledger, position.entry + 1)
        where &= rows_between(PARTITION.index, first, None)
        kinds = {
            "__partition": pa.int32(),
            "__producerName": pa.string(),
            "__sequenceId": pa.int64(),
            "__batchIndex": pa.int32(),
            "__ledgerId": pa.int64(),
            "__entryId": pa.int64(),
        }
        rows = world.rows()
        table = pa.table(
            {name: pa.array([row[name] for row in rows], kinds[name]) for name in kinds}
        )
        found = table.filter(where).select(list(columns)).to_batches()
        return RowsBehind((one for one in found), world.incomplete)

    return read
