"""Topics of which Pulsar's own tiered storage has a part, as the Java client reads them."""

import pytest

from testbed.admin import Admin
from testbed.oracle import Json
from testbed.tiered import DRIVERS, TieredStorage
from tests.contract.against_java import Contract, check, offload_in_thread
from tests.contract.corpus.topics.chunks import Chunked
from tests.contract.java import body, bytes_of, java_rows
from tests.contract.rows import query_rows, rows_of
from tests.contract.tiered.moved import move


@pytest.fixture(params=[DRIVERS[0], pytest.param(DRIVERS[-1], marks=pytest.mark.long)])
def moved_topic(
    request: pytest.FixtureRequest, admin: Admin, tiered: TieredStorage, namespace: str
) -> str:
    """A topic of a namespace that uses one of the drivers."""
    tiered.use(namespace, request.param)
    return f"persistent://{namespace}/topic"


KEYS: list[Json] = [{"value": b"%d" % n, "key": f"k{n}", "event_time": n + 1} for n in range(6)]


@pytest.mark.timeout(600)
def test_every_kind_of_message(contract: Contract, moved_topic: str, tiered: TieredStorage) -> None:
    """Batches, chunks, transactions, markers; a message that begins in one ledger and ends in
    another, in one that is moved and in one that is not."""
    oracle, admin, topic = contract.oracle, contract.admin, moved_topic
    oracle.write(topic, KEYS)
    oracle.write(topic, KEYS, batch=4, compression="ZSTD")
    oracle.write(topic, [{"value": body(9_000), "key": "large"}] * 2, chunk_size=2_000)
    oracle.write(topic, [{"value": b"", "marker_type": 10}])
    kept, dropped = oracle.begin(), oracle.begin()
    for transaction in (kept, dropped, None):
        oracle.write(topic, KEYS[:4], batch=2, transaction=transaction)
    a, b, c = (Chunked(oracle, topic, name, body(6_000), 3, "LZ4") for name in "abc")
    a.send(0)
    b.send(0)
    admin.seal(topic)
    oracle.commit(kept)
    oracle.abort(dropped)
    a.send(1)
    c.send(0)
    ends = [a.send(2)]
    admin.seal(topic)
    before = len(java_rows(oracle, topic))
    move(contract.config, tiered, topic)
    assert len(contract.holds(topic, tiers=("tiered", "query", "stream", "broker"))) == before
    # The rest is on the bookies, and in an open ledger.
    ends.append(b.send(1, 2))
    c.send(1)
    admin.seal(topic)
    ends.append(c.send(2))
    oracle.write(topic, KEYS)
    java = contract.holds(topic, tiers=("query", "stream", "broker"))
    assert [bytes_of(java[end]["data"]) for end in ends] == [a.body, b.body, c.body]
    assert len(contract.holds(topic, tiers=("query", "stream", "parquet"))) == len(java)


@pytest.mark.long  # the test above has one of which the rest is on the bookies
def test_a_message_that_ends_behind_what_was_offloaded(
    contract: Contract, moved_topic: str, tiered: TieredStorage
) -> None:
    """Offloaded up to its middle from the objects; its end comes later, and is moved, too."""
    oracle, admin, topic, config = contract.oracle, contract.admin, moved_topic, contract.config
    oracle.write(topic, KEYS)
    message = Chunked(oracle, topic, "a", body(6_000), 3)
    message.send(0, 1)
    admin.seal(topic)
    move(config, tiered, topic)
    offload_in_thread(config, topic)
    end = message.send(2)
    admin.seal(topic)
    java = java_rows(oracle, topic)
    check(query_rows(config, topic), java, topic)
    move(config, tiered, topic)
    check(query_rows(config, topic), java, topic)
    offload_in_thread(config, topic)
    assert bytes_of(java[end]["data"]) == message.body
    check(rows_of(config, topic, "parquet"), java, topic)
