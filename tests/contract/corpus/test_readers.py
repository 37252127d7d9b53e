"""Every reader gives what was published, of every kind, hot and cold.

Each state reads all topics by all readers at once; a test compares what they gave of one topic.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from reader.clients import Clients
from reader.errors import UnsupportedError
from spark_ext import PulsarLake
from testbed.oracle import Oracle
from testbed.tiered import TieredStorage
from tests.conftest import offload_sealed
from tests.contract.corpus import Kind
from tests.contract.corpus.all_kinds import KINDS
from tests.contract.corpus.readers import Readers
from tests.contract.corpus.readings import Readings
from tests.contract.corpus.spark_readers import SOME, SparkReaders
from tests.contract.corpus.topics import encryption
from tests.contract.corpus.world import Outcomes, World, elsewhere
from tests.contract.rows import keyed, tier_table

_THROUGH_BROKER = elsewhere("through-the-broker", source="broker")
_FROM_OBJECTS = elsewhere("from-objects")

# The first test starts Pulsar, Java and Spark, publishes all kinds, and reads them hot.
pytestmark = pytest.mark.timeout(1800)


def _each(kinds: Iterable[Kind]) -> pytest.MarkDecorator:
    """Parametrize a test by kinds: the world publishes those that some test asks for."""
    return pytest.mark.parametrize("kind", list(kinds), ids=lambda kind: kind.name)


def _side_by_side(*groups: Mapping[str, Callable[[], Outcomes]]) -> dict[str, Outcomes]:
    """Return what each reader gave. The readers of a group read one after the other."""

    def read(group: Mapping[str, Callable[[], Outcomes]]) -> dict[str, Outcomes]:
        return {name: read_all() for name, read_all in group.items()}

    with ThreadPoolExecutor(len(groups)) as pool:
        return {name: found for each in pool.map(read, groups) for name, found in each.items()}


def _is_limited(kind: Kind) -> bool:
    """Return whether a stream's limit may fall inside what its messages are made of.

    What a schema makes of a message is the same in each batch.
    """
    return kind.twice or kind.config != "plain"


@pytest.fixture(scope="module")
def readers(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    with closing(Readers(world, tmp_path_factory.mktemp("readers"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def spark(
    world: World, contract_lake: PulsarLake, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkReaders]:
    folder = tmp_path_factory.mktemp("spark")
    with closing(SparkReaders(world, folder, contract_lake)) as opened:
        yield opened


@pytest.fixture(scope="module")
def hot(world: World, readers: Readers, spark: SparkReaders) -> Readings:
    """Nothing is offloaded; the last ledgers are open."""
    outcomes = _side_by_side(
        {
            "bookkeeper": lambda: readers.tier(world.kinds, "bookkeeper"),
            "broker": lambda: readers.tier(world.kinds, "broker"),
            "query": lambda: readers.query(world.kinds),
            "stream": lambda: readers.stream(world.kinds),
            "new stream": lambda: readers.new_stream(filter(_is_limited, world.kinds)),
        },
        {"spark": lambda: spark.query(world.kinds), "connect": lambda: spark.connect(world.kinds)},
    )
    return Readings(world, "hot", outcomes)


@pytest.fixture(scope="module")
def half(world: World, hot: Readings, readers: Readers, spark: SparkReaders) -> Readings:
    """What is sealed is offloaded: all parts but the last."""
    halves = [kind for kind in world.kinds if kind.halves]
    world.offload(halves)
    outcomes = _side_by_side(
        {
            "query": lambda: readers.query(halves),
            "stream": lambda: readers.stream(halves),
            "new stream": lambda: readers.new_stream(halves),
        },
        {"spark": lambda: spark.query(halves), "spark stream": lambda: spark.stream(world.kinds)},
    )
    return Readings(world, "half offloaded", outcomes)


@pytest.fixture(scope="module")
def cold(
    world: World, half: Readings, readers: Readers, spark: SparkReaders, contract_lake: PulsarLake
) -> Readings:
    """Everything is offloaded: some of it by a job of Spark's, some of it twice."""
    world.seal()
    plain = [kind for kind in world.kinds if kind.config == "plain"]
    for kind in plain[:1]:
        offload_sealed(world.configs["plain"], contract_lake, world.topic(kind))
    world.offload(world.kinds)
    twice = [kind for kind in world.kinds if kind.twice]
    world.offload(twice, _THROUGH_BROKER)
    outcomes = _side_by_side(
        {
            "bookkeeper": lambda: readers.tier(world.kinds, "bookkeeper"),
            "broker": lambda: readers.tier(world.kinds, "broker"),
            "parquet": lambda: readers.tier(world.kinds, "parquet"),
            "parquet through the broker": lambda: readers.tier(twice, "parquet", _THROUGH_BROKER),
            "query": lambda: readers.query(world.kinds),
            "stream": lambda: readers.stream(world.kinds),
            "new stream": lambda: readers.new_stream(filter(_is_limited, world.kinds)),
            "iceberg": lambda: readers.iceberg(world.kinds),
        },
        {
            "spark": lambda: spark.query(world.kinds),
            "connect": lambda: spark.connect(world.kinds),
            "spark stream": lambda: spark.stream(world.kinds),
        },
    )
    return Readings(world, "cold", outcomes)


@pytest.fixture(scope="module")
def moved(
    world: World, cold: Readings, readers: Readers, spark: SparkReaders, tiered: TieredStorage
) -> Readings:
    """Pulsar's own tiered storage has all ledgers. Other tables are made of its objects."""
    tiered.use(world.namespace)
    world.move(tiered)
    some = [kind for kind in world.kinds if kind.halves]
    outcomes = _side_by_side(
        {
            "tiered": lambda: readers.tier(world.kinds, "tiered"),
            "broker": lambda: readers.tier(some, "broker"),
            "query of objects": lambda: readers.query(some, _FROM_OBJECTS),
        },
        {"spark": lambda: spark.query(some, "tiered")},
    )
    world.offload(some, _FROM_OBJECTS)
    outcomes["parquet from objects"] = readers.tier(some, "parquet", _FROM_OBJECTS)
    return Readings(world, "moved", outcomes)


@_each(KINDS)
def test_hot(kind: Kind, hot: Readings) -> None:
    hot.check(kind)


@_each(kind for kind in KINDS if kind.halves)
def test_half_offloaded(kind: Kind, half: Readings) -> None:
    half.check(kind)


@_each(KINDS)
def test_cold(kind: Kind, cold: Readings) -> None:
    cold.check(kind)


@_each(KINDS)
def test_moved(kind: Kind, moved: Readings) -> None:
    moved.check(kind)


def test_no_reader_leaves_kinds_out(
    world: World, hot: Readings, half: Readings, cold: Readings, moved: Readings
) -> None:
    """A kind that a reader does not give is compared with nothing."""
    assert {kind.name for kind in KINDS} >= set(SOME)

    def names(kinds: Iterable[Kind]) -> set[str]:
        return {kind.name for kind in kinds}

    def unread(tier: str) -> set[str]:
        return names(kind for kind in world.kinds if tier in kind.unread)

    every = names(world.kinds)
    plain = names(kind for kind in world.kinds if kind.config == "plain")
    halves = names(kind for kind in world.kinds if kind.halves)
    streamed = plain & (halves | set(SOME))
    always = {
        "bookkeeper": every - unread("bookkeeper"),
        "broker": every - unread("broker"),
        "query": every,
        "stream": every,
        "new stream": names(filter(_is_limited, world.kinds)),
        "spark": plain,
        "connect": plain & set(SOME),
    }
    wanted = {
        "hot": always,
        "half": {
            "query": halves,
            "stream": halves,
            "new stream": halves,
            "spark": plain & halves,
            "spark stream": streamed,
        },
        "cold": {
            **always,
            "parquet": every - unread("parquet"),
            "parquet through the broker": names(kind for kind in world.kinds if kind.twice),
            "iceberg": plain - unread("parquet"),
            "spark stream": streamed,
        },
        "moved": {
            "tiered": every - unread("tiered"),
            "broker": halves - unread("broker"),
            "query of objects": halves,
            "parquet from objects": halves - unread("parquet"),
            "spark": plain & halves,
        },
    }
    states = {"hot": hot, "half": half, "cold": cold, "moved": moved}
    for state, readings in states.items():
        found = {reader: set(given) for reader, given in readings.outcomes.items()}
        assert found == wanted[state], state


@_each(kind for kind in KINDS if "broker" in kind.unread)
def test_what_the_broker_cannot_tell_is_refused(kind: Kind, hot: Readings) -> None:
    """It cannot say that a chunk of a compressed message was aborted."""
    refused = "compressed chunk of an aborted transaction"
    with (
        Clients(hot.world.configs[kind.config]) as clients,
        pytest.raises(UnsupportedError, match=refused),
    ):
        tier_table(clients, hot.world.topic(kind), "broker")


@_each(encryption.WITH_KNOWN_KEYS)
def test_what_tables_keep_of_secrets(kind: Kind, cold: Readings, oracle: Oracle) -> None:
    """Ciphertext, which whoever has the key can decrypt; plaintext only where that is wanted."""
    cold.check(kind)
    published = cold.world.published[kind.name]
    with Clients(cold.world.configs["plain"]) as clients:
        stored = keyed(tier_table(clients, published.place.topic, "parquet").to_pylist())
    secrets = [row for row in stored.values() if b"secret" in (row["value"] or b"")]
    if kind.config == "stored":
        assert len(secrets) == 2 * 10
        return
    assert not secrets
    whole, pieces = 0, b""
    for key, row in sorted(stored.items()):
        context = row["__encryptionContext"] and dict(row["__encryptionContext"])
        if context and context["batchSize"] is None:
            private = cold.world.private
            pieces += oracle.decrypt(row["__rescued"], context["metadata"], private)
            if key in published.expected:  # the last chunk of a message, or all of it
                assert pieces == (published.expected[key]["value"] or b""), key
                whole, pieces = whole + 1, b""
    assert whole == 2 * (6 + 1 + 2)
