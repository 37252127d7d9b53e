"""Kinds of the corpus in directories, where Pulsar's filesystem offloader has put their ledgers.

The bucket of S3 has all kinds: `tests.contract.corpus.test_readers`.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from typing import Any

import pytest

from offloader.config import Config
from testbed.admin import Admin
from testbed.oracle import Oracle
from testbed.tiered import DRIVERS, TieredStorage
from tests.contract.corpus import Kind
from tests.contract.corpus.all_kinds import KINDS
from tests.contract.corpus.readers import Readers
from tests.contract.corpus.readings import Readings
from tests.contract.corpus.world import World, elsewhere

# With schemas and partitions, compressed entries, single ones, chunks and transactions.
_NAMES = (
    "avro-partitioned",
    "json-orders",
    "nulls",
    "bytes",
    "keyvalue-avro-protobuf-separated",
    "chunks-interleaved",
    "transactions",
)
_KINDS = [kind for kind in KINDS if kind.name in _NAMES]
_FROM_OBJECTS = elsewhere("from-objects")


@pytest.fixture(scope="module")
def moved(
    oracle: Oracle,
    admin: Admin,
    client: Any,
    contract_config: Config,
    tiered: TieredStorage,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], Readings]]:
    """Topics of a driver, of which no bookie has an entry any more."""
    opened: list[World] = []

    @cache
    def of(driver: str) -> Readings:
        namespace = f"public/{driver.lower()}-{uuid.uuid4().hex[:8]}"
        admin.create_namespace(namespace)
        tiered.use(namespace, driver)
        folder = tmp_path_factory.mktemp(driver)
        world = World(namespace, _KINDS, contract_config, oracle, admin, client, folder)
        opened.append(world)
        world.publish()
        world.expect()
        world.seal()
        world.move(tiered)
        with closing(Readers(world, folder)) as readers:
            outcomes = {
                "tiered": readers.tier(_KINDS, "tiered"),
                "broker": readers.tier(_KINDS, "broker"),
                "query of objects": readers.query(_KINDS),
            }
            world.offload(world.kinds, _FROM_OBJECTS)
            outcomes["parquet from objects"] = readers.tier(_KINDS, "parquet", _FROM_OBJECTS)
        return Readings(world, driver, outcomes)

    yield of
    for world in opened:
        world.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "driver",
    [
        pytest.param(driver, marks=() if driver == "BLOCK" else pytest.mark.long)
        for driver in DRIVERS
        if driver != "S3"
    ],
)
def test_rows_are_what_was_published(
    driver: str, kind: Kind, moved: Callable[[str], Readings]
) -> None:
    """Read from the objects alone, and from the table that is made of them."""
    moved(driver).check(kind)
