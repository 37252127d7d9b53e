"""A Pulsar of one topic in this process, around real turns and real queries; Spark is left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from offloader.config import Config, load_config
from offloader.convert import Conversion, ConversionJobs
from offloader.convert.conversion import ConversionOutcome
from offloader.convert.pack_task import try_pack
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import LedgerMetadata, Partition, Position, SchemaInfo, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.snapshot import take_snapshot
from reader.pulsar import AdminClient, LedgerInfo, PartitionLedgers
from reader.sources.rows import RowFormat
from reader.sources.split_reader import read_splits
from reader.table import TopicTable
from tests.unit.bookkeeper.fake_bookie import FakeBookie, answer, batch_answer, stored
from tests.unit.decode.entries import metadata

__all__ = ["HOLD", "NOW_MS", "TOPIC", "SmallPartition", "SmallPulsar"]

TOPIC = Topic("public", "default", "orders")
HOLD = "pulsar-lake"
NOW_MS = time.time_ns() // 1_000_000  # files have the time at which they are written


class SmallPartition:
    """Ledgers, by id; the last one is open. ``added``: entries since it was loaded."""

    def __init__(
        self, partition: Partition, first: int, created_at: str = "2026-01-01T00:00:00.000Z"
    ) -> None:
        self.partition = partition
        self.created_at = created_at
        self.ledgers: dict[int, list[bytes]] = {first: []}
        self.cursors: dict[str, Position] = {}
        self.properties: dict[str, dict[str, str]] = {}
        self.added = 0
        self.opened_at = 0
        self.recovering = False
        self.terminated = False

    def write(self, *texts: str) -> None:
        head = metadata(publish_time=NOW_MS)
        entries = [len(head).to_bytes(4, "big") + head + text.encode() for text in texts]
        self.ledgers[max(self.ledgers)] += entries
        self.added += len(texts)

    def roll(self, following: int) -> None:
        """Seal the open ledger; Pulsar then opens ``following``."""
        self.ledgers[following] = []
        self.trim()

    def replace_empty(self, following: int) -> None:
        """The first write to the open ledger failed: another takes its place, without a load."""
        assert not self.ledgers.pop(max(self.ledgers))
        self.ledgers[following] = []

    def reload(self, following: int) -> None:
        """Unload and load: an empty ledger is deleted, and counting begins anew."""
        if not self.ledgers[max(self.ledgers)]:
            del self.ledgers[max(self.ledgers)]
        self.added = 0
        self.opened_at = NOW_MS
        self.roll(following)

    def trim(self) -> None:
        """Delete sealed ledgers that no subscription needs."""
        *closed, last = sorted(self.ledgers)
        for ledger in closed:
            end = Position(ledger, len(self.ledgers[ledger]))
            if any(one < end for one in self.cursors.values()):
                return
            del self.ledgers[ledger]
        for name, at in self.cursors.items():
            if at.ledger not in self.ledgers:
                self.cursors[name] = Position(min(self.ledgers), 0)
        assert last in self.ledgers

    def listing(self, bookie: str) -> PartitionLedgers:
        ids = sorted(self.ledgers)
        filled = [one for one in ids if self.ledgers[one]]
        last = filled[-1] if filled else ids[-1]
        end = Position(last, len(self.ledgers[last]) - 1)
        return PartitionLedgers(
            partition=self.partition,
            ledgers=tuple(self._info(one, one == ids[-1], bookie) for one in ids),
            last_confirmed=end,
            max_read=Position(-1, -1) if self.recovering else end,
            terminated=self.terminated,
            created_at=self.created_at,
            open_bytes=0,
            opened_at=self.opened_at,
            cursors=dict(self.cursors),
            recovering=self.recovering,
            added=self.added,
            kept=sum(map(len, self.ledgers.values())),
        )

    def _info(self, ledger: int, is_open: bool, bookie: str) -> LedgerInfo:
        count = len(self.ledgers[ledger])
        return LedgerInfo(
            ledger_id=ledger,
            entries=0 if is_open else count,
            bytes=0 if is_open else 100 * count,
            metadata=LedgerMetadata(
                ledger,
                "OPEN" if is_open else "CLOSED",
                1,
                1,
                1,
                -1 if is_open else count - 1,
                "CRC32C",
                ((0, (bookie,)),),
            ),
            offloaded=False,
            closed_at=None if is_open else NOW_MS,
        )


class SmallPulsar:
    """An admin REST and a bookie; ``asked`` are the admin's requests by name.

    ``in_between``: what happens, once, before the next answer about subscriptions. ``changing``:
    how often from now on another client's change of a subscription is faster than a note.
    ``source``: of which the topic is a shadow; ``migrated``: whether it became a scalable topic.
    """

    def __init__(self, *partitions: SmallPartition) -> None:
        self.parts = {one.partition: one for one in partitions}
        self.asked: list[str] = []
        self.in_between: Callable[[], object] | None = None
        self.changing = 0
        self.source: str | None = None
        self.migrated = False
        self._bookie = FakeBookie(self._one, self._many)

    # -- the admin -----------------------------------------------------------------------------

    def require_consume(self, topic: Topic) -> None:
        self.asked.append("require_consume")

    def partitions(self, topic: Topic, *, known: object = ()) -> list[Partition]:
        if not self.parts:
            raise NotFoundError(f"topic {topic} does not exist")
        return list(self.parts)

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        self.asked.append("ledgers")
        return self.parts[partition].listing(self._bookie.address)

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        return ()

    def cluster(self) -> str:
        return "small"

    def shadow_source(self, topic: Topic) -> str | None:
        return self.source

    def is_migrated(self, topic: Topic) -> bool:
        self.asked.append("is_migrated")
        return self.migrated

    def message_ttl(self, topic: Topic) -> None:
        return None

    def subscription_expiry(self, topic: Topic) -> None:
        return None

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def create_hold(self, partition: Partition, name: str) -> bool:
        part = self.parts[partition]
        made = name not in part.cursors
        part.cursors.setdefault(name, Position(min(part.ledgers), 0))
        return made

    def hold_properties(self, partition: Partition, name: str) -> dict[str, str]:
        self._happens()
        return dict(self.parts[partition].properties.get(name, {}))

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        self.asked.append("subscription_properties")
        self._happens()
        part = self.parts[partition]
        return {name: self.hold_properties(partition, name) for name in part.cursors}

    def _happens(self) -> None:
        happens, self.in_between = self.in_between, None
        if happens is not None:
            happens()

    def note_hold(self, partition: Partition, name: str, properties: Mapping[str, str]) -> bool:
        if self.changing:
            self.changing -= 1
            noted = self.parts[partition].properties.setdefault(name, {})
            noted["theirs"] = f"{self.changing} to come"
            return False
        self.parts[partition].properties[name] = dict(properties)
        return True

    def move_hold(self, partition: Partition, name: str, position: Position) -> bool:
        part = self.parts[partition]
        part.cursors[name] = position
        part.trim()
        return True

    def delete_hold(self, partition: Partition, name: str = HOLD) -> None:
        part = self.parts[partition]
        part.cursors.pop(name, None)
        part.properties.pop(name, None)
        part.trim()

    def unload(self, partition: Partition) -> None:
        self.parts[partition].reload(max(max(one.ledgers) for one in self.parts.values()) + 1)

    # -- the bookie ----------------------------------------------------------------------------

    def _entries(self, ledger: int) -> list[bytes] | None:
        return next((p.ledgers[ledger] for p in self.parts.values() if ledger in p.ledgers), None)

    def _one(self, request: int, ledger: int, entry: int) -> bytes:
        found = self._entries(ledger)
        if found is None or entry >= len(found):
            return answer(request, 402 if found is None else 403, ledger, entry)
        return answer(request, 0, ledger, entry, stored(ledger, entry, found[entry]))

    def _many(self, request: int, ledger: int, first: int, count: int, size: int) -> bytes:
        found = self._entries(ledger)
        if found is None or first >= len(found):
            return batch_answer(request, 402 if found is None else 403, ledger, first)
        bodies = [stored(ledger, n, one) for n, one in enumerate(found)][first : first + count]
        return batch_answer(request, 0, ledger, first, bodies)

    # -- around it -----------------------------------------------------------------------------

    def config(self, storage: Path | str, **sections: Mapping[str, Any]) -> Config:
        given = {name: dict(one) for name, one in sections.items()}
        given["offload"] = {"grace": "0s", **given.get("offload", {})}
        given["query"] = {"tail_entries": 0, **given.get("query", {})}
        given["storage"] = {"uri": str(storage), **given.get("storage", {})}
        return load_config(given)

    @contextmanager
    def clients(self, config: Config) -> Iterator[Clients]:
        with Clients(config, admin=cast(AdminClient, self)) as clients:
            yield clients

    @contextmanager
    def offloader(
        self, config: Config, say: Callable[[str], None] = lambda text: None
    ) -> Iterator[TopicOffloader]:
        """One that has just started: it remembers nothing."""
        with self.clients(config) as clients:
            jobs: ConversionJobs[None] = ConversionJobs(lambda: None, _Here(clients))
            yield TopicOffloader(
                clients,
                config.offload,
                cast(Any, jobs),
                say=say,
            )
            jobs.stop()

    def offload(self, config: Config, say: Callable[[str], None] = lambda text: None) -> None:
        """All sealed ledgers, by an offloader that is started for it."""
        with self.offloader(config, say) as offloader:
            offloader.observe(TOPIC)
            while offloader.turn(TOPIC, now=True).more:
                pass

    def query(self, config: Config, tiers: str | None = None) -> list[str]:
        """The messages that a query gives, table first."""
        with self.clients(config) as clients:
            snapshot = take_snapshot(clients, TOPIC, tiers=tiers)
            schema = pa.schema([("value", pa.binary())])
            found: list[bytes] = []
            if snapshot.version is not None:
                table = TopicTable.open(clients.storage, TOPIC, snapshot.version)
                assert table is not None
                for batch in table.batches(["value"]):
                    found += batch.column("value").to_pylist()
            rows = RowFormat(snapshot.fields, snapshot.schemas, schema)
            splits = plan_snapshot(snapshot, columns=["value"]).splits
            for batch in read_splits(clients, splits, rows):
                found += batch.column("value").to_pylist()
        return [one.decode() for one in found]


class _Here:
    """Runs conversions in the thread that asks, as a Spark job would."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def __call__(
        self, context: None, conversions: Sequence[Conversion], *, pool: str = ""
    ) -> list[ConversionOutcome]:
        found: list[ConversionOutcome] = []
        for one in conversions:
            one.begun()
            found.append(tuple(try_pack(one.spec, pack, self._clients) for pack in one.packs))
        return found
