"""A Pulsar of one topic in this process, around real turns and real queries; Spark is left out."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from offloader.config import Config, load_config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.config import PulsarConfig
from reader.model import Partition, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import take_snapshot
from reader.pulsar import PartitionLedgers
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from reader.table import TopicTable
from testbed.simulation import AdminRest, Clock, ClusterState, Ledger, ManagedLedger
from tests.unit.decode.entries import metadata
from tests.unit.turns.served import ServedPulsar, in_thread_jobs

TOPIC = Topic("public", "default", "orders")
HOLD = "pulsar-lake"
NOW_MS = time.time_ns() // 1_000_000  # files have the time at which they are written
_SHADOW_SOURCE = "PULSAR.SHADOW_SOURCE"
_UNLOADED = 1_000  # the first id that an unload gives


class SmallPartition:
    """A managed ledger whose ledgers have the ids that a test chooses; the last one is open."""

    def __init__(
        self, partition: Partition, first: int, created_at: str = "2026-01-01T00:00:00.000Z"
    ) -> None:
        self.partition = partition
        opened = Ledger(first, opened_ms=0)
        self.ml = ManagedLedger(partition.full_name, partition.index, created_at, [opened])

    @property
    def ledgers(self) -> list[int]:
        """The ids of the ledgers that Pulsar has."""
        return [one.id for one in self.ml.listing]

    def write(self, *texts: str, publish_time: int = NOW_MS) -> None:
        head = metadata(publish_time=publish_time)
        state = ClusterState(Clock(NOW_MS), broker_times=False, transactions=False)
        for text in texts:
            state.keep(self.ml, len(head).to_bytes(4, "big") + head + text.encode())

    def seal(self, following: int) -> None:
        """Seal the open ledger; Pulsar then opens ``following``."""
        last = self.ml.listing[-1]
        last.closed_ms = NOW_MS
        self.ml.ledgers.append(Ledger(following, opened_ms=last.opened_ms))

    def roll(self, following: int) -> None:
        """Seal the open ledger, and trim."""
        self.seal(following)
        self.trim()

    def replace_empty(self, following: int) -> None:
        """The first write to the open ledger failed: another takes its place, without a load."""
        last = self.ml.listing[-1]
        assert not last.entries
        last.deleted = True
        self.ml.ledgers.append(Ledger(following, opened_ms=last.opened_ms))

    def delete(self, *ledgers: int) -> None:
        """Pulsar deletes ledgers."""
        for one in self.ml.ledgers:
            one.deleted = one.deleted or one.id in ledgers

    def reload(self, following: int) -> None:
        """Unload and load: an empty ledger is deleted, and counting begins anew."""
        last = self.ml.listing[-1]
        self.ml.added = 0
        self.roll(following)
        last.deleted = last.deleted or not last.entries
        self.ml.listing[-1].opened_ms = NOW_MS

    def trim(self) -> None:
        """Delete sealed ledgers that no subscription needs."""
        for one in self.ml.listing[:-1]:
            if all(at >= (one.id, len(one.entries)) for at in self.ml.cursors.values()):
                one.deleted = True
        self.ml.cursors = {name: self.ml.normal(at) for name, at in self.ml.cursors.items()}


class OddRest(AdminRest):
    """An admin REST with odd answers.

    ``asked``: the last word of each request. ``in_between``: what happens, once, before the next
    answer about subscriptions. ``changing``: how often from now on another client's change of a
    subscription is faster than a note. ``refused``: last words that need another role.
    """

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state)
        self.asked: list[str] = []
        self.in_between: Callable[[], object] | None = None
        self.changing = 0
        self.refused: set[str] = set()

    def answer(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        name = "scalable" if "/scalable/" in path else path.rpartition("/")[2]
        self.asked.append(name)
        is_noted = name == "properties" and "/subscription/" in path
        if name == "stats" or (method == "GET" and is_noted):
            happens, self.in_between = self.in_between, None
            if happens is not None:
                happens()
        if name in self.refused and not is_noted:
            return 403, {"reason": "no permission"}
        if method == "PUT" and is_noted and self.changing:
            self.changing -= 1
            for ml in self.state.topics[TOPIC.full_name].parts.values():
                ml.properties.setdefault(HOLD, {})["theirs"] = f"{self.changing} to come"
            return 500, {"reason": "BadVersionException"}
        found = super().answer(method, path, body)
        if name == "resetcursor":
            for ml in self.state.topics[TOPIC.full_name].parts.values():
                self.state.trim(ml)
        return found


class SmallPulsar(ServedPulsar):
    """A cluster with the topic, whose partitions a test makes."""

    rest: OddRest

    def __init__(self, *partitions: SmallPartition, rest: type[OddRest] = OddRest) -> None:
        super().__init__(NOW_MS, rest)
        self.state.next_ledger = _UNLOADED
        self.parts: dict[Partition, SmallPartition] = {}
        self.topic = self.state.make_topic(TOPIC.full_name, 0)
        self.topic.parts.clear()
        for one in partitions:
            self.add(one)

    def add(self, part: SmallPartition) -> None:
        """Add a partition, or put it in the place of the partition of its index."""
        self.parts[part.partition] = part
        self.topic.parts[part.partition.index] = part.ml
        self.topic.count = sum(index >= 0 for index in self.topic.parts)

    def listing(self, part: SmallPartition) -> PartitionLedgers:
        """What the product sees of a partition."""
        return self.admin_client(PulsarConfig()).ledgers(part.partition)

    def create_hold(self, partition: Partition, name: str = HOLD) -> None:
        ml = self.parts[partition].ml
        ml.cursors.setdefault(name, (ml.listing[0].id, 0))

    def delete_hold(self, partition: Partition) -> None:
        self.state.delete_hold(self.parts[partition].ml)

    def shadow(self, source: str | None) -> None:
        """Make the topic a shadow of another one, or of none."""
        self.topic.properties = {_SHADOW_SOURCE: source} if source else {}

    # -- around it -----------------------------------------------------------------------------

    def config(self, storage: Path | str, **sections: Mapping[str, Any]) -> Config:
        given = {name: dict(one) for name, one in sections.items()}
        given["offload"] = {"grace": "0s", **given.get("offload", {})}
        given["query"] = {"tail_entries": 0, **given.get("query", {})}
        given["storage"] = {"uri": str(storage), **given.get("storage", {})}
        return load_config(given)

    @contextmanager
    def clients(self, config: Config) -> Iterator[Clients]:
        with Clients(config, admin=self.admin_client(config.pulsar)) as clients:
            yield clients

    @contextmanager
    def offloader(
        self, config: Config, say: Callable[[str], None] = lambda text: None
    ) -> Iterator[TopicOffloader]:
        """One that has just started: it remembers nothing."""
        with self.clients(config) as clients:
            jobs = in_thread_jobs(clients)
            yield TopicOffloader(clients, config.offload, jobs, say=say)
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
            for batch in read_rows(clients, SplitsRead(splits), rows):
                found += batch.column("value").to_pylist()
        return [one.decode() for one in found]
