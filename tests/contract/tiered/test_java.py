"""What the Java client wrote and reads is what the objects give, and the tables made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from offloader.config import Config
from reader.config import EncryptionConfig
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from testbed.tiered import DRIVERS, TieredStorage
from tests.contract.against_java import (
    Contract,
    body,
    bytes_of,
    check,
    java_rows,
    offload_in_thread,
    query_rows,
)
from tests.contract.oracle_corpus import CORPUS, Case
from tests.contract.test_chunks import Chunked
from tests.contract.test_sources import Row, rows_of
from tests.contract.tiered.moved import move, move_all

TIERS = ("tiered", "query", "stream", "broker", "parquet")

# Of each kind of schema one, and what is at the edges; `test_every_kind_of_schema` has them all.
_SOME = ("avro-everything", "keyvalue-avro-protobuf-separated", "native-deep", "mixed-types")
_OFTEN = ("avro-everything", "keyvalue-avro-protobuf-separated")


@pytest.fixture(scope="module")
def moved_cases(
    oracle: Oracle,
    admin: Admin,
    lake_config: Config,
    lake_namespace: str,
    tiered: TieredStorage,
) -> Callable[[Iterable[Case]], dict[str, str]]:
    """Writes topics once and moves them, waiting for the bookies once."""
    admin.set_schema_compatibility(lake_namespace, "ALWAYS_COMPATIBLE")
    tiered.use(lake_namespace)
    done: dict[str, str] = {}

    def make(cases: Iterable[Case]) -> dict[str, str]:
        new = [case for case in cases if case.name not in done]
        for case in new:
            topic = f"persistent://{lake_namespace}/{case.name}"
            for write in case.writes:
                oracle.write(topic, case.messages(write), write.schema, **write.options)
            admin.seal(topic)
            done[case.name] = topic
        move_all(lake_config, tiered, [done[case.name] for case in new])
        for case in new:
            admin.wait_recovered(done[case.name])  # until then the broker answers no reader
        return done

    return make


def _holds(contract: Contract, case: Case, topic: str) -> None:
    def payload(message: Json, _: Row) -> Row:
        return case.columns(message)

    tiers = [one for one in TIERS if one == "tiered" or one in case.tiers]
    found = contract.holds(topic, payload, tiers=tiers, schema=case.schema)
    assert len(found) == sum(len(write.values) for write in case.writes)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in _OFTEN else pytest.mark.long) for one in _SOME],
)
def test_some_kinds_of_schema(
    name: str, contract: Contract, moved_cases: Callable[[Iterable[Case]], dict[str, str]]
) -> None:
    some = [case for case in CORPUS if case.name in _SOME]
    (case,) = (one for one in some if one.name == name)
    _holds(contract, case, moved_cases(some)[name])


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_every_kind_of_schema(
    case: Case, contract: Contract, moved_cases: Callable[[Iterable[Case]], dict[str, str]]
) -> None:
    _holds(contract, case, moved_cases(CORPUS)[case.name])


@pytest.fixture(params=[DRIVERS[0], pytest.param(DRIVERS[-1], marks=pytest.mark.long)])
def moved_topic(
    request: pytest.FixtureRequest,
    admin: Admin,
    tiered: TieredStorage,
    namespace: str,
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


@pytest.mark.long
def test_encrypted_messages(
    contract: Contract,
    moved_topic: str,
    tiered: TieredStorage,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    public, private = contract.oracle.make_keys("RSA")
    file = tmp_path_factory.mktemp("keys") / "one.pem"
    file.write_text(private)
    encryption = EncryptionConfig(keys={"one": file})
    config = contract.config.model_copy(update={"encryption": encryption})
    keys = {"one": public}
    contract.oracle.write(moved_topic, KEYS, encryption=keys)
    contract.oracle.write(moved_topic, KEYS, encryption=keys, batch=3, compression="ZSTD")
    large: list[Json] = [{"value": body(9_000)}]
    contract.oracle.write(moved_topic, large, encryption=keys, chunk_size=2_000)
    contract.admin.seal(moved_topic)
    move(config, tiered, moved_topic)
    java = java_rows(contract.oracle, moved_topic, decryption={"one": private})
    assert len(java) == 2 * len(KEYS) + 1
    for tier in ("tiered", "broker"):
        rows = rows_of(config, moved_topic, tier)
        assert sorted(rows) == sorted(java)
    rows = query_rows(config, moved_topic)
    assert {key: row["value"] for key, row in rows.items()} == {
        key: bytes_of(one["data"]) for key, one in java.items()
    }
    offload_in_thread(config, moved_topic)
    assert query_rows(config, moved_topic) == rows
