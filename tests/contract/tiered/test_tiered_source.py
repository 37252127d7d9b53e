"""The contract of sources, for what Pulsar's own tiered storage has taken."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.model import OffloadContext, Tier, Topic
from reader.plan.plan import plan_snapshot
from reader.plan.snapshot import take_snapshot
from reader.sources.base import EntrySource, RowSource
from reader.sources.entry_rows import EntryRows
from reader.sources.row_format import RowFormat
from reader.sources.stored import StoredEntries
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.tiered import TieredStorage
from tests.contract import test_source_contract
from tests.contract.kit import Case, EntryCase, EntrySourceContract, SourceContract
from tests.contract.tiered.moved import move


@pytest.fixture(
    scope="module", params=["S3", pytest.param("RECORD", marks=pytest.mark.long), "BLOCK"]
)
def published(
    request: pytest.FixtureRequest,
    cluster: Cluster,
    admin: Admin,
    lake_namespace: str,
    lake_config: Config,
    tiered: TieredStorage,
) -> test_source_contract.Published:
    """As for the other sources, and moved; BookKeeper has nothing of it any more."""
    namespace = f"{lake_namespace}-{request.param.lower()}"
    admin.create_namespace(namespace)
    tiered.use(namespace, request.param)
    topic = f"{namespace}/contract"
    rows = test_source_contract.publish_contract(cluster, admin, topic)
    move(lake_config, tiered, topic)
    with Clients(lake_config) as clients:
        snapshot = take_snapshot(clients, Topic.parse(topic))
    [split] = plan_snapshot(snapshot).splits
    assert split.tier is Tier.TIERED
    assert isinstance(split.metadata, OffloadContext)
    form = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
    return test_source_contract.Published(lake_config, split, form, rows)


class TestTiered(SourceContract):
    @pytest.fixture
    def case(self, published: test_source_contract.Published) -> Case:
        @contextmanager
        def opened(
            rows: RowFormat,
            kind: type[StoredEntries] = StoredEntries,
            config: Config = published.config,
        ) -> Iterator[RowSource]:
            with Clients(config) as clients:
                entries = partial(kind.of_splits, clients)
                yield EntryRows(entries, rows)

        @contextmanager
        def unavailable(rows: RowFormat) -> Iterator[RowSource]:
            with test_source_contract.closed_port() as address:
                place = published.config.tiered[0]
                options = place.options | {"endpoint_url": f"http://{address}"}
                silent = place.model_copy(update={"options": options})
                config = published.config.model_copy(update={"tiered": [silent]})
                with opened(rows, config=config) as source:
                    yield source

        return Case(
            split=published.split,
            rows=published.rows,
            format=published.format,
            open=opened,
            missing=replace(published.split, ledger_id=0),
            unavailable=unavailable,
            interrupted=partial(opened, kind=test_source_contract.Interrupted),
        )


class TestEntries(EntrySourceContract):
    @pytest.fixture
    def case(self, published: test_source_contract.Published) -> EntryCase:
        split = published.split

        @contextmanager
        def opened() -> Iterator[EntrySource]:
            with Clients(published.config) as clients:
                yield StoredEntries(clients, split.partition)

        return EntryCase(
            open=opened, ledger_id=split.ledger_id, entries=[b""] * split.entries, missing=0
        )
