"""Every kind of schema: what the Java client wrote and reads is what each tier gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.contract.against_java import Contract, body, bytes_of, offload_in_thread
from tests.contract.kinds.columns import key_value_columns
from tests.contract.oracle_corpus import CORPUS, Case
from tests.contract.stream.unions import Rows, queried, streamed, together
from tests.contract.test_oracle import KEYS
from tests.contract.test_sources import Row

# Cases that the product does not fulfil yet.
PENDING: dict[str, str] = {}


@pytest.fixture(scope="module")
def open_namespace(admin: Admin, lake_namespace: str) -> str:
    """One in which a topic's schema may become any other."""
    admin.set_schema_compatibility(lake_namespace, "ALWAYS_COMPATIBLE")
    return lake_namespace


def _marked(case: Case) -> object:
    reason = PENDING.get(case.name)
    marks = [pytest.mark.xfail(strict=True, reason=reason)] if reason else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.fixture(scope="module")
def written(oracle: Oracle, open_namespace: str) -> Callable[[Case], str]:
    """Writes a case's topic once."""
    done: dict[str, str] = {}

    def make(case: Case) -> str:
        if case.name not in done:
            topic = done[case.name] = f"persistent://{open_namespace}/{case.name}"
            for write in case.writes:
                oracle.write(topic, case.messages(write), write.schema, **write.options)
        return done[case.name]

    return make


@pytest.mark.parametrize("case", [_marked(case) for case in CORPUS])
def test_every_kind_of_schema(
    case: Case, contract: Contract, written: Callable[[Case], str]
) -> None:
    topic = written(case)

    def payload(message: Json, _: Row) -> Row:
        return case.columns(message)

    found = contract.holds(
        topic, payload, tiers=case.tiers, schema=case.schema, offloaded_twice=False
    )
    assert len(found) == sum(len(write.values) for write in case.writes)


def test_replicated_messages(contract: Contract, topic_name: str) -> None:
    """As a replicator sends them, one by one: the tests have one cluster."""
    names = ["west", None, "öst"]
    messages = [{"value": b"x", "replicated_from": name, "key": "k"} for name in names]
    contract.oracle.write(topic_name, messages)
    found = contract.holds(topic_name)
    assert [row["replicated_from"] for row in found.values()] == names


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_large_pairs_in_transactions(contract: Contract, topic_name: str, encoding: str) -> None:
    """Chunks, keys, schemas and transactions at once."""
    definition: Json = {
        "type": "record",
        "name": "Document",
        "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}],
    }
    document = {"type": "AVRO", "definition": definition}
    schema = {"type": "KEY_VALUE", "key": document, "value": document, "encoding": encoding}
    columns = key_value_columns(document, document)
    oracle = contract.oracle
    kept, dropped = oracle.begin(), oracle.begin()

    def pair(n: int) -> Json:
        text = "".join(chr(33 + n * k % 91) for k in range(4_000))
        return {"key": {"id": n, "text": text[:1500]}, "value": {"id": n, "text": text}}

    messages = [{"value": pair(n), "event_time": n + 1} for n in range(3)]
    packings: list[Json] = [
        {"chunk_size": 3_000},
        {"chunk_size": 5_000, "compression": "ZLIB"},
        {"batch": 2},
    ]
    for options in packings:
        # A producer each: what is in a transaction may overtake what is not.
        for transaction in (None, kept, dropped):
            oracle.write(topic_name, messages, schema, transaction=transaction, **options)
        contract.admin.seal(topic_name)
    oracle.commit(kept)
    oracle.abort(dropped)
    oracle.write(topic_name, [{"value": {"key": None, "value": None}}], schema)
    found = contract.holds(topic_name, lambda message, _: columns(message))
    assert len(found) == 3 * 2 * len(messages) + 1


def test_markers(contract: Contract, topic_name: str) -> None:
    """Those of replicated subscriptions, which one cluster has not: entries, but no messages."""
    plain: Json = {"value": b"x", "key": "k"}
    markers: list[Json] = [{"value": b"", "marker_type": kind} for kind in (10, 11, 13)]
    contract.oracle.write(topic_name, [plain, *markers[:2], plain, markers[2]])
    contract.oracle.write(topic_name, [plain] * 3, batch=2)
    assert len(contract.holds(topic_name)) == 5


def test_compacted_view(
    contract: Contract, lake: PulsarLake, topic_name: str, admin: Admin
) -> None:
    """A compacted reader of the wholly compacted topic, over rows in the table and behind it."""
    keys: list[Json] = [
        {"key": "a"},
        {"key": "aGk="},
        {"key_bytes": b"hi"},  # the same text, in base64
        {"key": ""},
        {"key_bytes": b""},
        {"key": None},
        {},
        {"key": "ü"},
        {"key_bytes": b"\xff"},
    ]
    values = [b"1", None, b"2", b"", b"3", b"4", None, b"5"]

    def messages(start: int, count: int) -> list[Json]:
        return [
            {**keys[n % len(keys)], "value": values[n * 5 % len(values)], "event_time": n + 1}
            for n in range(start, start + count)
        ]

    contract.oracle.write(topic_name, messages(0, 15))
    contract.oracle.write(topic_name, messages(15, 15), batch=4)
    admin.seal(topic_name)
    contract.offload(topic_name)
    contract.oracle.write(topic_name, messages(30, 15), batch=4)
    contract.oracle.write(topic_name, messages(45, 10))
    admin.compact(topic_name)
    expected = [
        (row["ledger"], row["entry"], row["batch"], row["key"], bytes_of(row["data"]))
        for row in contract.oracle.read(topic_name, compacted=True)
    ]
    table = lake.table(topic_name, view="compacted").toArrow().to_pylist()
    names = ("__ledgerId", "__entryId", "__batchIndex", "__key", "value")
    assert sorted(tuple(row[name] for name in names) for row in table) == sorted(expected)
    tenant, namespace, name = topic_name.removeprefix("persistent://").split("/")
    with pytest.raises(AnalysisException, match="cannot be streamed: a compacted view") as refused:
        lake.spark.readStream.table(f"pulsar.`{tenant}/{namespace}`.`{name}$compacted`")
    assert len(str(refused.value).splitlines()) == 1


def _other_kinds(oracle: Oracle, namespace: str) -> Callable[[], list[str]]:
    """What are no kinds of schemas, written again with each call; gives the topics."""
    topics = {name: f"persistent://{namespace}/{name}" for name in _OTHER}
    public, _ = oracle.make_keys("RSA")

    def write() -> list[str]:
        oracle.write(topics["größe"], KEYS)
        oracle.write(topics["größe"], KEYS, batch=5, compression="ZSTD")
        large: Json = {"value": body(9_000), "key": "large"}
        oracle.write(topics["chunks"], [large] * 2, chunk_size=2_000, compression="LZ4")
        oracle.write(topics["chunks"], [{"value": b"small"}] * 3)
        kept, dropped = oracle.begin(), oracle.begin()
        for transaction in (kept, dropped, None):
            oracle.write(topics["transactions"], KEYS[:4], batch=2, transaction=transaction)
        oracle.commit(kept)
        oracle.abort(dropped)
        secrets: list[Json] = [{"value": b"secret %d" % n, "key": f"k{n}"} for n in range(4)]
        oracle.write(topics["encrypted"], secrets, encryption={"one": public})
        oracle.write(topics["encrypted"], secrets, encryption={"one": public}, batch=3)
        oracle.write(topics["encrypted"], secrets)
        return list(topics.values())

    return write


# Of every kind some: what a stream reads of each, `test_every_kind_of_schema` compares.
_STREAMED = (
    "avro-everything",
    "json-everything",
    "avro-versions",
    "json-broken",
    "clients",
    "__changing",
    "keyvalue-times-separated",
    "keyvalue-avro-protobuf-separated",
    "native-deep",
    "protobuf-flat",
    "mixed-types",
    "mixed-encodings",
    "edges-string",
    "edges-timestamp",
    "edges-local_date_time",
)
_OTHER = ("größe", "chunks", "transactions", "encrypted")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_streams_of_every_kind(
    contract: Contract,
    written: Callable[[Case], str],
    open_namespace: str,
    lake: PulsarLake,
    tmp_path: Path,
) -> None:
    """Spark's streams give what its queries give, wherever the rows lie, and again after."""
    oracle, admin = contract.oracle, contract.admin
    write_others = _other_kinds(oracle, open_namespace)
    cases = [case for case in CORPUS if case.name in _STREAMED]
    assert len(cases) == len(_STREAMED)
    topics = [written(case) for case in cases] + write_others()

    def offload(some: Sequence[str]) -> None:
        for topic in some:
            admin.seal(topic)
            offload_in_thread(contract.config, topic)

    offload(topics[::2])
    for case in cases:
        last = case.writes[-1]
        oracle.write(written(case), case.messages(last), last.schema, **last.options)
    write_others()
    still = oracle.begin()
    oracle.write(topics[-1], KEYS[:2], transaction=still)
    oracle.write(topics[-1], KEYS[:2])
    expected = queried(lake, topics)
    assert len(expected) == len(topics)
    [at_once] = streamed(lake, topics, tmp_path / "at once")
    _same(at_once, expected)
    limited = streamed(lake, topics, tmp_path / "limited", maxMessagesPerTrigger=20)
    assert len(limited) >= 3
    _same(_all(limited), expected)

    oracle.commit(still)
    offload(topics[1::2])
    shutil.rmtree(tmp_path / "at once" / "commits")  # as if its one batch had failed at the end
    again, new = streamed(lake, topics, tmp_path / "at once")
    _same(again, expected)
    assert {topic: len(rows) for topic, rows in new.items()} == {topics[-1]: 4}
    _same(_all([again, new]), {**expected, **queried(lake, topics[-1:])})


def _all(batches: Sequence[Rows]) -> Rows:
    return together((topic, row) for one in batches for topic in one for row in one[topic])


def _same(found: Rows, expected: Rows) -> None:
    for topic, rows in expected.items():
        assert found.get(topic) == rows, topic
    assert found.keys() == expected.keys()
