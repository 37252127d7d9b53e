"""One history: the simulated Pulsar, the processes around it, and what is checked."""

import atexit
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from offloader.config import Config, load_config
from reader.clients import Clients
from reader.errors import PulsarLakeError
from reader.model import Topic
from reader.pulsar import LOST_KEY, WATERMARK_KEY
from reader.pulsar.admin import AdminClient
from testbed import simulation
from tests.simulation.product.clients import SimulatedClients, SimulatedHttp
from tests.simulation.product.hosts import Host
from tests.simulation.product.in_thread import threads_replaced
from tests.simulation.product.log import LogWatch, log_watched
from tests.simulation.product.portions import small_portions, small_writes
from tests.simulation.product.queries import PinnedQuery
from tests.simulation.product.storage import FileTimes, SimulatedStorage
from tests.simulation.product.streams import SimulatedStream

TOPIC = Topic("public", "default", "orders")


class ViolationError(AssertionError):
    """The product did what it never may."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is so throughout a history. ``partitions``: 0: a topic without. ``schemas``: its
    messages have a schema, which evolves. ``broker``: the offloader reads through the broker, and
    queries their open ledgers. ``late_schema``: the first messages have no schema, and a schema may
    be deleted and registered anew."""

    partitions: int = 0
    wildcard: bool = True
    broker_times: bool = True
    transactions: bool = False
    grace_minutes: int = 0
    retention_hours: int = 0
    chunk_minutes: int = 60
    schemas: bool = False
    broker: bool = False
    late_schema: bool = False


@dataclass(slots=True)
class Pinned:
    """A query that is run later. ``excused``: what happened since then, that may end it."""

    query: PinnedQuery
    expected: simulation.Expectation
    excused: set[str]


class World:
    """``violations`` are raised where they are found. ``steps``: of which kind how many were
    done; ``foreign``: the cluster is not the one that the table was filled from; ``old_copy``: the
    table was newer, and had the ledgers ``only_newer``, which are gone from Pulsar; ``accepted``:
    an operator has said that there is no newer one; ``forgotten``: up to which ledger of a
    partition the log may have forgotten its commits, by the partition's creation."""

    def __init__(self, settings: Settings, root: Path) -> None:
        self.settings = settings
        self.root = root
        self.clock = simulation.Clock()
        self.outages = simulation.Outages(self.clock)
        self.effects = simulation.Effects(self.outages)
        self.state = simulation.ClusterState(
            self.clock, broker_times=settings.broker_times, transactions=settings.transactions
        )
        self.state.deleted = self._deleted
        self.rest = simulation.AdminRest(self.state)
        self.rest.moving = self._moving
        self.config = _config(settings, root, allow_data_loss=False)
        self.lenient = _config(settings, root, allow_data_loss=True)
        self.http = _http(root)
        self.http.attach(self.rest, self.effects)
        self.storages_clock, self.drivers_clock = (
            simulation.HostClock(self.clock),
            simulation.HostClock(self.clock),
        )
        self.host_clocks = (simulation.HostClock(self.clock), simulation.HostClock(self.clock))
        self.times = FileTimes(self.storages_clock)
        self.log = LogWatch(self.effects, self.times, self._committed)
        self.counts: dict[str, int] = {}
        self.pinned: list[Pinned] = []
        self.stream: SimulatedStream | None = None
        self.views: list[object] = []
        self.sinks: object | None = None
        self.foreign = False
        self.expired_before: int | None = None
        self.rounds = 0
        self.numbers = 0
        self.steps: Counter[str] = Counter()
        self.hidden = False
        self.forgotten: dict[str, int] = {}
        self.only_newer: list[tuple[simulation.ManagedLedger, simulation.Ledger]] = []
        self.old_copy = self.accepted = False
        self._copy: dict[str, dict[str, Any]] | None = None
        self.chunked: dict[tuple[str, str], dict[int, tuple[bytes, int, int]]] = {}
        self.state.make_topic(TOPIC.full_name, settings.partitions)
        if settings.schemas and not settings.late_schema:
            self.topic.schema.register(self.state.brokers_clock.now_ms)
        self.hosts = [self.new_host(0), self.new_host(1)]
        self._acting = self.hosts[0]

    # -- processes ---------------------------------------------------------------------------

    def new_clients(self, config: Config | None = None) -> Clients:
        """Those of a process that starts."""
        config = config or self.config
        admin = AdminClient(
            config.pulsar,
            http=self.http,
            clock=lambda: self.clock.now_ms / 1000,
            sleep=self.clock.sleep,
        )
        storage = SimulatedStorage(config.storage, self.times, self.effects)
        return SimulatedClients(config, admin, storage, self.state, self.effects, self.counts)

    def lenient_clients(self) -> Clients:
        """They put up with a data loss, but not with an old copy, of which they would not know."""
        return self.new_clients(self.config if self.old_copy else self.lenient)

    def new_host(self, number: int) -> Host:
        """An offloader that starts."""
        return Host(self.config, self.new_clients(), self.clock, self.host_clocks[number])

    @contextmanager
    def as_host(self, number: int) -> Iterator[Host]:
        """The block is done by a process; commits have its clock. A crash leaves a new one."""
        host, before, acting = self.hosts[number], self.log.clock_ms, self._acting
        self.log.clock_ms, self._acting = host.clock_ms, host
        for ml in self.parts:
            ml.listed.clear()
        try:
            yield host
        except simulation.CrashError:
            self.hosts[number] = self.new_host(number)
            raise
        finally:
            self.log.clock_ms, self._acting = before, acting

    @property
    def topic(self) -> simulation.SimulatedTopic:
        return self.state.topics[TOPIC.full_name]

    @property
    def parts(self) -> list[simulation.ManagedLedger]:
        return list(self.topic.parts.values())

    def part(self, number: int) -> simulation.ManagedLedger | None:
        """One of the partitions there are."""
        parts = self.parts
        return parts[number % len(parts)] if parts else None

    def version(self, number: int) -> int | None:
        """Of the topic's schema, mostly the newest; None: it has none."""
        schema = self.topic.schema
        return max(schema.newest - number % 4 // 3, schema.first) if schema.times else None

    def value(self, version: int | None) -> bytes:
        """Another one each time; ``version``: of its schema."""
        self.numbers += 1
        text, life = b"m%d" % self.numbers, self.topic.schema.life
        if life:
            text = b"k%d-%s" % (life, text)
        return text if version is None else simulation.avro_message(text, version, life)

    @property
    def table_place(self) -> Path:
        return self.root / "tables" / "public" / "default" / "orders"

    # -- what is watched ---------------------------------------------------------------------

    def _deleted(self, ml: simulation.ManagedLedger, ledger: simulation.Ledger, why: str) -> None:
        ml.overdue |= ml.unfinished() & {e.chunk[0] for e in ledger.entries if e.chunk}
        ml.broken |= {
            uuid for uuid, ids in simulation.needed_chunks(ml).items() if ledger.id in ids
        }
        if ledger.cold:
            return
        ledger.lost = True
        for one in self.pinned:
            one.excused.add(why)
        if why == "trimmed" and ml.held:
            pass  # what moved the hold there was checked when it did

    def _committed(self, transactions: dict[str, int]) -> None:
        timeout, brokers = self.settings.chunk_minutes * 60_000, self.state.brokers_clock
        self.topic.schema.note_commit()
        for ml in self.parts:
            due = {
                uuid
                for uuid, first in simulation.incomplete_messages(ml).items()
                if brokers.now_ms - brokers.least_since(first.broker_ms) >= timeout
            }
            ml.overdue |= due
            given_up = simulation.note_commit(ml, transactions, self._acting.seen)
            if given_up:
                for one in self.pinned:
                    one.excused.add("given up")
            if early := given_up - due:
                raise ViolationError(f"a commit gives up {early}: complete, or not waited for")

    def _moving(self, ml: simulation.ManagedLedger, to: simulation.Position) -> None:
        for one in ml.listing:
            if one.entries and not (one.cold or one.copied) and (one.id, 0) < to:
                raise ViolationError(f"the hold goes to {to}, past ledger {one.id}: in no table")
        self._require_beginnings(ml, to)

    def _require_beginnings(self, ml: simulation.ManagedLedger, to: simulation.Position) -> None:
        """Of messages that end in what is in no table yet."""
        begun: dict[bytes, simulation.Position] = {}
        for ledger, number, entry in ml.entries():
            if entry.chunk is None or entry.transaction in ml.aborted:
                continue
            uuid, k, _ = entry.chunk
            if k == 0:
                begun[uuid] = (ledger.id, number)
        for uuid in ml.unfinished() - ml.overdue:
            if begun.get(uuid, to) < to:
                raise ViolationError(f"the hold goes to {to}, past the beginning of {uuid!r}")

    def mend(self) -> None:
        """All servers answer from now on."""
        self.outages.end_all()
        self.state.bookies_down = self.rest.lagging = False

    @property
    def clocks(self) -> tuple[simulation.HostClock, ...]:
        """Of the two offloaders' hosts, the brokers, the storage and the driver."""
        others = self.state.brokers_clock, self.storages_clock, self.drivers_clock
        return *self.host_clocks, *others

    def set_clocks_right(self) -> None:
        """Somebody synchronises all hosts."""
        for one in self.clocks:
            one.set_ahead(0)

    # -- what checks need ---------------------------------------------------------------------

    errors = (PulsarLakeError,)

    def violation(self, text: str) -> ViolationError:
        """What the product did, after which effects."""
        return ViolationError(text)

    def require(self, is_so: bool, text: str) -> None:
        """Raises ViolationError if not."""
        if not is_so:
            raise self.violation(text)

    def everything_listed(self) -> bool:
        """Whether Pulsar has all that it ever had."""
        gone = any(one.deleted and one.entries for ml in self.parts for one in ml.ledgers)
        return not gone and not self.topic.gone

    def claimed(self) -> bool:
        """Whether a hold names the table that it was moved for."""
        return any(ml.properties for ml in self.parts)

    def needed_from(self, ml: simulation.ManagedLedger) -> simulation.Position:
        """Where the hold has to be in the end."""
        first = next((one for one in ml.listing if one.entries and not one.cold), ml.listing[-1])
        begun: dict[bytes, simulation.Position] = {}
        for ledger, number, entry in ml.entries():
            if entry.chunk is None or entry.transaction in ml.aborted:
                continue
            uuid, k, count = entry.chunk
            begun.setdefault(uuid, (ledger.id, number))
            if k == count - 1 and ledger.cold:
                del begun[uuid]
        return min([(first.id, 0), *begun.values()])

    def clean_log(self) -> None:
        """delta-rs removes commits that are older than 30 days, by its own clock."""
        log = self.table_place / "_delta_log"
        if not log.is_dir():
            return
        handle = DeltaTable(str(self.table_place))
        handle.create_checkpoint()
        real = time.time()
        for file in log.iterdir():
            age = (self.clock.now_ms - self.times.of(str(file))) / 1000
            os.utime(file, (real - age, real - age))
        before = len(list(log.iterdir()))
        handle.cleanup_metadata()
        if len(list(log.iterdir())) < before:
            self.forgotten |= {ml.created: ml.watermark or -1 for ml in self.parts}
        self.log.reopen()

    def copy_table(self) -> None:
        """A backup, of the storage alone."""
        if self.table_place.is_dir():
            shutil.rmtree(self.root / "copy", ignore_errors=True)
            shutil.copytree(self.table_place, self.root / "copy")
            self._copy = {ml.created: simulation.said_of(ml) for ml in self.parts}

    def restore_table(self) -> None:
        """The table is what it was at the backup; offloaders are started again."""
        if self._copy is None or self.foreign or not self.table_place.is_dir():
            return
        shutil.rmtree(self.table_place)
        shutil.copytree(self.root / "copy", self.table_place)
        self.log.rewind(str(self.table_place))
        for ml in self.parts:
            gone = simulation.of_old_copy(ml, self._copy.get(ml.created))
            self.only_newer += ((ml, one) for one in gone)
        self.old_copy = True
        self.pinned.clear()
        self.hosts = [self.new_host(0), self.new_host(1)]

    def forget_copy(self) -> None:
        """Of another life of the topic."""
        self._copy = None

    def give_up_newer(self) -> None:
        """An operator has no newer copy, and says so with each partition's hold."""
        for ml, ledger in self.only_newer:
            ledger.cold = False
            self._deleted(ml, ledger, "given up")
        for ml in self.parts:
            noted = ml.properties.get(simulation.HOLD, {})
            if self.old_copy and WATERMARK_KEY in noted:
                noted[LOST_KEY] = noted[WATERMARK_KEY]
        self.accepted = self.accepted or self.old_copy
        self.only_newer, self.old_copy = [], False

    # -- what a query may be -----------------------------------------------------------------

    def excuses(self) -> set[str]:
        """Why an error is no violation now."""
        found = set()
        if self.state.bookies_down and not self.settings.broker:
            found.add("bookies down")
        if self.foreign:
            found.add("another cluster")
        if self.hidden:
            found.add("table out of sight")
        if self.old_copy:
            found.add("an old copy")
        if any(one.recovering_ms > self.clock.now_ms for one in self.parts):
            found.add("recovering")
        if not self.parts and not (self.table_place / "_delta_log").exists():
            found.add("no topic")
        return found

    def query_excuses(self) -> set[str]:
        """The same of a query: it reads through the broker what bookies do not give."""
        return self.excuses() - {"bookies down"}

    def has_losses(self) -> bool:
        """Whether Pulsar has deleted what no table has, without anyone's intention.

        Of an earlier life of the topic: a commit stepped over it then, which may say so.
        """
        there = any(ledger.lost for ml in self.parts for ledger in ml.ledgers)
        before = any(
            ledger.lost and ledger.id < (ml.watermark or -1)
            for ml in self.topic.gone
            for ledger in ml.ledgers
        )
        return there or before or self.accepted

    def must_refuse(self) -> str:
        """A loss that the log shows: a query without ``allow_data_loss`` has to be an error."""
        if self.hidden or self.foreign:
            return ""
        for ml in self.parts:
            if ml.stepped_over is not None:
                return f"ledger {ml.stepped_over} was lost, and a commit stepped over it"
            gone = next((one for one in ml.ledgers if one.id == ml.expected and one.lost), None)
            if gone is not None:
                return f"ledger {gone.id} was lost"
        return ""

    def to_offload(self) -> set[tuple[str, int]]:
        """Ledgers that a turn sees, so that its process misses them later: creation time, id."""
        return {
            (ml.created, one.id)
            for ml in self.parts
            for one in ml.listing
            if one.entries and not one.cold
        }

    def expectation(self) -> simulation.Expectation:
        """Of a query that is made now."""
        found = simulation.expected_rows(self.topic).without(self.expired_before)
        unknown = {
            (ml.index, ledger.id)
            for ml, ledger in self.only_newer
            if ml not in self.parts or WATERMARK_KEY not in ml.properties.get(simulation.HOLD, {})
        }
        if not unknown:
            return found
        # The hold that knew of a newer table is gone as well.
        places = {row[0] for row in found.required if row[0][:2] in unknown}
        return simulation.Expectation(found.required, found.optional | places, found.published)


@cache
def _config(settings: Settings, root: Path, *, allow_data_loss: bool) -> Config:
    offload: dict[str, object] = {
        "topics": ["public/default/order*" if settings.wildcard else str(TOPIC)],
        "grace": f"{settings.grace_minutes}m",
        "chunk_timeout": f"{settings.chunk_minutes}m",
        "source": "broker" if settings.broker else "bookkeeper",
    }
    if settings.retention_hours:
        offload["retention"] = f"{settings.retention_hours}h"
    return load_config(
        {
            "pulsar": {"admin_url": "http://simulated:1", "cluster": "simulated"},
            "storage": {"uri": str(root / "tables")},
            "offload": offload,
            "query": {
                "cache_dir": str(root / "cache"),
                "tail_entries": 100 if settings.broker else 0,
                "allow_data_loss": allow_data_loss,
            },
        }
    )


@cache
def _http(root: Path) -> SimulatedHttp:
    """One for all worlds of a process."""
    state = simulation.ClusterState(simulation.Clock(), broker_times=False, transactions=False)
    config = _config(Settings(), root, allow_data_loss=False)
    return SimulatedHttp(config.pulsar, simulation.AdminRest(state), simulation.Effects())


@cache
def _place(process: int) -> Path:
    """Where a process has its files; removed when it ends."""
    shared = Path("/dev/shm")
    made = tempfile.mkdtemp(prefix=f"sim-{process}-", dir=shared if shared.is_dir() else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def tries(action: Callable[[], object]) -> Exception | None:
    """The product's error; a foreign one is a violation."""
    try:
        action()
    except PulsarLakeError as error:
        return error
    return None


@contextmanager
def new_world(settings: Settings) -> Iterator[World]:
    """A world in memory; its files are removed at the end."""
    root = _place(os.getpid())
    try:
        world = World(settings, root)
        with (
            threads_replaced(),
            log_watched(world.log),
            small_portions(world.effects),
            small_writes(),
        ):
            yield world
    finally:
        for one in root.iterdir():
            shutil.rmtree(one, ignore_errors=True)
