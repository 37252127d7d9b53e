"""One topic of a fake broker, a local storage, and the clients of both."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reader.clients import Clients
from reader.closing import Closing
from reader.config import ReadConfig
from reader.encode import EncodedEntry
from reader.model import Partition, Position, Topic
from reader.pulsar import LedgerInfo, PartitionLedgers
from reader.sink import Manifest, NamedWrite, PartitionEntries, StagedFile, StagingWriter, Target
from reader.sink.sending import Sent, send_partition
from tests.unit.decode.entries import PARTITION, decode
from tests.unit.encode.messages.encoding import Row, encode
from tests.unit.pulsar.binary.fake_broker import FakeBroker
from tests.unit.pulsar.binary.fake_topic import FakeTopic

__all__ = ["APP", "CREATED", "FIRST_ID", "NOISE", "TARGET", "World", "batches", "topic_reader"]

APP = "orders-query"
CREATED = 1_700_000_000_000
NOW = CREATED / 1000 + 5
FIRST_ID = (CREATED + 5000) * 1000
"""Of what is decided now."""
TARGET = Target(PARTITION.topic, 4, None, b"schema", b"", 5 << 20)


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

    ``trimmed``: whether the broker knows of messages that were deleted; ``hidden``: whether a
    transaction hides the end of the log.
    """

    def __init__(self, directory: Path, timeout: str = "10s") -> None:
        self.directory = directory / "lake"
        self.broker = FakeBroker()
        self.topic = FakeTopic(self.broker)
        settings = {
            "pulsar": {"service_url": self.broker.url, "timeout": timeout},
            "storage": {"uri": str(self.directory)},
        }
        admin: Any = self
        self.clients = Clients(ReadConfig.load(settings), admin=admin)
        self.slept: list[float] = []
        self.reads = 0
        self.trimmed = self.hidden = False

    def close(self) -> None:
        self.clients.close()
        self.broker.close()

    def write(self, app: str = APP, topic: str | None = None, *, named: bool = True) -> NamedWrite:
        """As a driver has it: it knows nothing yet."""
        return NamedWrite(self.clients, app, topic, named=named, now=lambda: NOW)

    def ledgers(self, partition: Partition) -> PartitionLedgers:
        """As the admin API answers."""
        written = len(self.topic.stored)
        end = Position(7, written - 1)
        return PartitionLedgers(
            partition,
            (LedgerInfo(7, written, 0, None, False, None),),
            end,
            Position(7, written - 2) if self.hidden else end,
            False,
            "",
            0,
            {},
            added=written + self.trimmed,
            kept=written,
        )

    def staged(
        self, entries: Sequence[EncodedEntry], *, app: str = APP, directory: str = ""
    ) -> StagedFile:
        """By one task."""
        writer = StagingWriter(self.clients, directory or self.write(app).directory)
        for one in entries:
            writer.put(TARGET, PARTITION, one)
        return writer.finish(sum(one.messages for one in entries))

    def manifest(self, entries: Sequence[EncodedEntry], *, first: int = 0) -> Manifest:
        """Ids from ``first`` on, directly behind those of earlier versions."""
        made = Manifest.of("me", 0, CREATED, [self.staged(entries)], {}, encrypted=False)
        partitions = [replace(one, first=first, before=first - 1) for one in made.partitions]
        return replace(made, partitions=partitions)

    def send(self, manifest: Manifest, *, fresh: bool) -> Sent:
        [entries] = manifest.partitions
        return self.send_entries(manifest, entries, fresh=fresh)

    def send_entries(self, manifest: Manifest, entries: PartitionEntries, *, fresh: bool) -> Sent:
        return send_partition(
            self.clients,
            manifest.producer,
            entries,
            manifest.inline,
            created=manifest.created,
            encrypted=manifest.encrypted,
            fresh=fresh,
            now=lambda: NOW,
            sleep=self.slept.append,
        )

    def rows(self) -> list[dict[str, Any]]:
        """What readers see of what is stored."""
        return decode([one.entry for one in self.topic.stored])

    def payloads(self) -> list[Any]:
        return [row["payload"] for row in self.rows()]

    def twice(self) -> list[Any]:
        return [one for one, times in Counter(self.payloads()).items() if times > 1]


def topic_reader(world: World) -> type[Closing]:
    """What reads the topic of a world, as ``reader.scan.TopicReader`` does."""

    class Reader(Closing):
        def __init__(self, clients: Clients, topic: Topic) -> None:
            assert clients is world.clients
            assert topic == PARTITION.topic

        def close(self) -> None:
            pass

        def scan(
            self,
            *,
            columns: Sequence[str],
            start: datetime | None,
            filter: pc.Expression,  # noqa: A002 - as the real one has it
        ) -> Iterator[pa.RecordBatch]:
            world.reads += 1
            kinds = {
                "__partition": pa.int32(),
                "__producerName": pa.string(),
                "__sequenceId": pa.int64(),
                "__publishTime": pa.int64(),
            }
            rows = world.rows()
            table = pa.table(
                {name: pa.array([row[name] for row in rows], kinds[name]) for name in kinds}
            )
            published = pc.field("__publishTime")
            if start is not None:
                filter &= published >= int(start.timestamp() * 1_000_000)  # noqa: A001
            yield from table.filter(filter).select(list(columns)).to_batches()

    return Reader
