"""Every kind of schema: what the Java client wrote and reads is what each tier gives."""

from __future__ import annotations

import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Json
from tests.contract.against_java import Contract, bytes_of
from tests.contract.kinds.columns import key_value_columns
from tests.contract.oracle_corpus import CORPUS, Case
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


@pytest.mark.parametrize("case", [_marked(case) for case in CORPUS])
def test_every_kind_of_schema(case: Case, contract: Contract, open_namespace: str) -> None:
    topic = f"persistent://{open_namespace}/{case.name}"
    sent = 0
    for write in case.writes:
        messages = case.messages(write)
        contract.oracle.write(topic, messages, write.schema, **write.options)
        sent += len(messages)

    def payload(message: Json, _: Row) -> Row:
        return case.columns(message)

    found = contract.holds(topic, payload, tiers=case.tiers, schema=case.schema)
    assert len(found) == sent


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
