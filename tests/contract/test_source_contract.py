"""Each source against the contract kit, on a real cluster."""

import datetime as dt
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import EntryBlock, LedgerMetadata, Split, Tier, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.snapshot import Snapshot, take_snapshot
from reader.sources.base import EntrySource, RowSource
from reader.sources.broker import BrokerEntries
from reader.sources.entry_rows import EntryRows
from reader.sources.moved_ledger import MovedLedger
from reader.sources.row_format import RowFormat
from reader.sources.stored import StoredEntries
from reader.storage import open_storage
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message, publish
from testbed.serving import refusing_port
from tests.contract.against_java import offload_in_thread
from tests.contract.kit import Case, EntryCase, EntrySourceContract, SourceContract


@dataclass(frozen=True)
class Published:
    """One sealed ledger, the first of its topic."""

    config: Config
    split: Split
    format: RowFormat
    rows: list[dict[str, Any]]

    @property
    def missing(self) -> Split:
        """Of a ledger id that no topic has, in what lies before the topic's first."""
        metadata = self.split.metadata
        assert isinstance(metadata, LedgerMetadata)
        return replace(self.split, ledger_id=0, metadata=replace(metadata, ledger_id=0))


@pytest.fixture(scope="module")
def published(
    cluster: Cluster, admin: Admin, lake_namespace: str, lake_config: Config
) -> Published:
    """Read from each tier, and so also offloaded. Batches, single messages, keys, tombstones."""
    topic = f"{lake_namespace}/contract"
    rows = publish_contract(cluster, admin, topic)
    with Clients(lake_config) as clients:
        snapshot = take_snapshot(clients, Topic.parse(topic), tiers="bookkeeper")
    offload_in_thread(lake_config, topic)
    [split] = plan_snapshot(snapshot).splits
    return Published(lake_config, split, _format(snapshot), rows)


def publish_contract(cluster: Cluster, admin: Admin, topic: str) -> list[dict[str, Any]]:
    """Fill one ledger, and seal it; its rows, in order."""
    full = f"persistent://{topic}"
    sent: list[Message] = []
    for number in range(6):
        sent += publish(
            cluster.service_url,
            full,
            [
                Message(b"%d-%d" % (number, n), key=f"k{n}", event_time=1_700_000_000_000 + n)
                for n in range(9)
            ],
            batch=3,
            ids=True,
            producer_name="contract",
        )
        sent += publish(
            cluster.service_url,
            full,
            [Message(None if number % 2 else b"alone", properties={"n": str(number)})],
            ids=True,
            producer_name="contract",
        )
    admin.seal(topic)
    return [_row(topic, one) for one in sent]


def _format(snapshot: Snapshot) -> RowFormat:
    return RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)


def _row(topic: str, message: Message) -> dict[str, Any]:
    assert message.message_id is not None
    ledger, entry, partition, batch = message.message_id
    event = message.event_time
    return {
        "value": message.value,
        "__topic": Topic.parse(topic).full_name,
        "__partition": partition,
        "__ledgerId": ledger,
        "__entryId": entry,
        "__batchIndex": batch,
        "__key": message.key,
        "__keyBase64": False if message.key else None,
        "__messageProperties": list(message.properties.items()),
        "__eventTime": dt.datetime.fromtimestamp(event / 1000, dt.UTC) if event else None,
        "__producerName": "contract",
        "__rescued": None,
        "__error": None,
    }


@contextmanager
def closed_port() -> Iterator[str]:
    """``host:port`` at which nobody listens, and where nobody else can begin to."""
    with refusing_port() as port:
        yield f"127.0.0.1:{port}"


def unreachable(metadata: LedgerMetadata, address: str) -> LedgerMetadata:
    ensembles = tuple((first, (address,) * len(all_)) for first, all_ in metadata.ensembles)
    return replace(metadata, ensembles=ensembles)


class Interrupted(StoredEntries):
    """Gives the first half of what it is asked for."""

    def read_all(self, ranges: Sequence[tuple[int, int, int]]) -> Generator[EntryBlock]:
        ((ledger_id, first, last),) = ranges
        yield from super().read_all([(ledger_id, first, (first + last) // 2)])
        raise UnavailableError("interrupted")


class TestBookKeeper(SourceContract):
    @pytest.fixture
    def case(self, published: Published) -> Case:
        @contextmanager
        def opened(rows: RowFormat, address: str | None = None) -> Iterator[RowSource]:
            with Clients(published.config) as clients:

                def entries(splits: Sequence[Split]) -> EntrySource:
                    if address is not None:
                        (split,) = splits
                        assert isinstance(split.metadata, LedgerMetadata)
                        splits = [replace(split, metadata=unreachable(split.metadata, address))]
                    return StoredEntries.of_splits(clients, splits)

                yield EntryRows(entries, rows)

        @contextmanager
        def unavailable(rows: RowFormat) -> Iterator[RowSource]:
            with closed_port() as address, opened(rows, address) as source:
                yield source

        @contextmanager
        def interrupted(rows: RowFormat) -> Iterator[RowSource]:
            with Clients(published.config) as clients:
                entries = partial(Interrupted.of_splits, clients)
                yield EntryRows(entries, rows)

        return Case(
            split=published.split,
            rows=published.rows,
            format=published.format,
            open=opened,
            missing=published.missing,
            unavailable=unavailable,
            interrupted=interrupted,
        )


class InterruptedBroker(BrokerEntries):
    """Gives the first half of what it is asked for."""

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        yield from super().read(ledger_id, first, (first + last) // 2)
        raise UnavailableError("interrupted")


class TestBroker(SourceContract):
    @pytest.fixture
    def case(self, published: Published) -> Case:
        @contextmanager
        def opened(
            rows: RowFormat,
            kind: type[BrokerEntries] = BrokerEntries,
            config: Config = published.config,
        ) -> Iterator[RowSource]:
            with Clients(config) as clients:
                entries = partial(kind.of_splits, clients, clients.broker)
                yield EntryRows(entries, rows, together=False)

        @contextmanager
        def unavailable(rows: RowFormat) -> Iterator[RowSource]:
            with closed_port() as address:
                silent = {"service_url": f"pulsar://{address}", "timeout": dt.timedelta(seconds=4)}
                pulsar = published.config.pulsar.model_copy(update=silent)
                config = published.config.model_copy(update={"pulsar": pulsar})
                with opened(rows, config=config) as source:
                    yield source

        return Case(
            split=replace(published.split, tier=Tier.BROKER),
            rows=published.rows,
            format=published.format,
            open=opened,
            missing=replace(published.missing, tier=Tier.BROKER),
            unavailable=unavailable,
            interrupted=partial(opened, kind=InterruptedBroker),
        )


class TestMovedLedger(SourceContract):
    @pytest.fixture
    def case(self, published: Published) -> Case:
        @contextmanager
        def opened(rows: RowFormat) -> Iterator[RowSource]:
            with Clients(published.config) as clients:
                yield MovedLedger(clients, rows)

        @contextmanager
        def unavailable(rows: RowFormat) -> Iterator[RowSource]:
            with closed_port() as address:
                options = published.config.storage.options | {"endpoint_url": f"http://{address}"}
                settings = published.config.storage.model_copy(update={"options": options})
                with Clients(published.config, storage=open_storage(settings)) as clients:
                    yield MovedLedger(clients, rows)

        return Case(
            split=published.split,
            rows=published.rows,
            format=published.format,
            open=opened,
            missing=replace(published.split, ledger_id=1 << 60),
            unavailable=unavailable,
        )


class TestEntries(EntrySourceContract):
    @pytest.fixture(params=[StoredEntries, BrokerEntries])
    def case(self, published: Published, request: pytest.FixtureRequest) -> EntryCase:
        config, split = published.config, published.split

        @contextmanager
        def opened() -> Iterator[EntrySource]:
            with Clients(config) as clients:
                yield request.param(clients, split.partition)

        return EntryCase(
            open=opened, ledger_id=split.ledger_id, entries=[b""] * split.entries, missing=0
        )
