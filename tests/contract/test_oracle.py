"""The contract against the Java client: what it reads from a topic is what each tier gives."""

from __future__ import annotations

import base64
import datetime as dt
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from offloader.turn import TopicOffloader
from reader.admin import AdminClient
from reader.columns import BROKER_LOSSY, BROKER_NULLS, METADATA_NAMES
from reader.config import Config
from reader.model import Partition, Position, Topic
from reader.read import read_splits
from reader.rows import RowFormat
from reader.snapshot import take_snapshot
from reader.splits import plan_splits
from reader.table import TopicTable
from spark_ext import PulsarLake
from tests.cluster.admin import Admin
from tests.contract.test_sources import Key, Row, keyed, plain, rows_of
from tests.oracle.oracle import Json, Oracle

Payload = Callable[[Json, Row], Row]
"""The payload columns that a message of the Java client must have, given those of our row."""

HOT = ("bookkeeper", "query", "broker")
"""Tiers; "query" forces none, and may read a short tail through the broker."""

EXACT = ("bookkeeper", "query", "parquet")
"""Those that give all that the Java client does. Of some chunks pulsar-client gives nothing."""

STRAY = "chunked message with chunks missing"
FAR = 4_102_444_800_000  # 2100-01-01, in ms


def java_rows(oracle: Oracle, topic: str, schema: Json | None = None) -> dict[Key, Json]:
    found: dict[Key, Json] = {}
    for row in oracle.read(topic, schema=schema):
        key = row["partition"], row["ledger"], row["entry"], row["batch"]
        assert key not in found, "the Java client gave a message twice"
        found[key] = row
    return found


def bytes_of(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def raw_value(java: Json, _: Row) -> Row:
    return {"value": bytes_of(java["data"])}


def micros(milliseconds: int | None) -> int | None:
    return milliseconds * 1000 if milliseconds else None


def metadata_of(java: Json, topic: str) -> Row:
    return {
        "__topic": Topic.parse(topic).full_name,
        "__partition": java["partition"],
        "__ledgerId": java["ledger"],
        "__entryId": java["entry"],
        "__batchIndex": java["batch"],
        "__key": java["key"],
        "__keyBase64": java["key_base64"] if java["has_key"] else None,
        "__orderingKey": bytes_of(java["ordering_key"]),
        "__messageProperties": java["properties"],
        "__publishTime": micros(java["publish_time"]),
        "__eventTime": micros(java["event_time"]),
        "__brokerPublishTime": micros(java["broker_publish_time"]),
        "__deliverAt": micros(java["deliver_at"]),
        "__index": java["index"],
        "__producerName": java["producer"],
        "__replicatedFrom": java["replicated_from"],
        "__sequenceId": java["sequence_id"],
        "__schemaVersion": java["schema_version"],
        "__tombstone": java["null"] or not java["data"],
        "__encryptionContext": None,
        "__rescued": None,
        "__error": None,
    }


def without_order(value: Any) -> Any:
    """Members of structs and entries of maps sorted by their names."""
    if isinstance(value, dict):
        return {name: without_order(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        items = [without_order(one) for one in value]
        pairs = all(isinstance(one, list) and len(one) == 2 for one in items)
        if pairs and all(isinstance(one[0], str) for one in items):
            return sorted(items, key=lambda one: str(one[0]))
        return items
    return value


def check(
    rows: Mapping[Key, Row],
    java: Mapping[Key, Json],
    topic: str,
    tier: str,
    payload: Payload = raw_value,
) -> None:
    """Row by row; every column is compared."""
    assert sorted(rows) == sorted(java)
    for key, message in java.items():
        ours = dict(rows[key])
        expected = metadata_of(message, topic)
        assert set(expected) == set(METADATA_NAMES)
        columns = {name: ours[name] for name in ours if name not in expected}
        expected |= {name: plain(value) for name, value in payload(message, columns).items()}
        ours["__messageProperties"] = dict(ours["__messageProperties"])
        if tier == "query":
            expected = {name: expected[name] for name in expected if name not in BROKER_LOSSY}
        if tier == "broker":
            expected |= dict.fromkeys(BROKER_NULLS)
            # To pulsar-client no key and an empty one are the same.
            expected["__key"] = expected["__key"] or None
            expected["__orderingKey"] = expected["__orderingKey"] or None
        assert without_order(ours) == without_order(expected), key


def split_strays(rows: dict[Key, Row]) -> tuple[dict[Key, Row], dict[Key, Row]]:
    """(rows, those of chunks that the Java client does not show)."""
    strays = {key: row for key, row in rows.items() if row["__error"] == STRAY}
    return {key: row for key, row in rows.items() if key not in strays}, strays


def query_rows(config: Config, topic: str, without: Iterable[str] = BROKER_LOSSY) -> dict[Key, Row]:
    """What a query sees that forces no tier, through the reader alone."""
    with AdminClient(config.pulsar) as client:
        snapshot = take_snapshot(config, client, Topic.parse(topic))
    columns = pa.schema([one for one in snapshot.columns if one.name not in without])
    batches: list[pa.RecordBatch] = []
    if snapshot.version is not None:
        table = TopicTable.open(config.storage, Topic.parse(topic), snapshot.version)
        assert table is not None
        batches += table.batches(columns.names)
    wanted = RowFormat(snapshot.fields, snapshot.schemas, columns)
    splits = plan_splits(snapshot, columns=columns.names)
    batches += [batch for _, batch in read_splits(config, splits, wanted)]
    return keyed([row for batch in batches for row in batch.to_pylist()])


@dataclass(frozen=True)
class Contract:
    """The Java client on the one side, every tier on the other."""

    oracle: Oracle
    admin: Admin
    config: Config
    offload: Callable[[str], None]

    def holds(
        self,
        topic: str,
        payload: Payload = raw_value,
        *,
        strays: Iterable[Key] = (),
        tiers: Sequence[str] = (*HOT, "parquet"),
        schema: Json | None = None,
    ) -> dict[Key, Json]:
        """Compare all tiers; for "parquet" the topic is sealed and offloaded first.

        `schema`: what the Java client reads by.
        """
        java = java_rows(self.oracle, topic, schema)
        failed: list[Exception] = []
        for tier in tiers:
            try:
                if tier == "parquet":
                    self.admin.seal(topic)
                    self.offload(topic)
                query = tier == "query"
                read = (
                    query_rows(self.config, topic) if query else rows_of(self.config, topic, tier)
                )
                rows, found = split_strays(read)
                check(rows, java, topic, tier, payload)
                # The broker's client shows none, like the Java client.
                assert sorted(found) == ([] if tier == "broker" else sorted(strays))
            except Exception as error:  # noqa: BLE001 - the other tiers are of interest, too
                error.add_note(f"tier: {tier}")
                failed.append(error)
        if failed:
            raise ExceptionGroup("tiers that differ from the Java client", failed)
        return java


@pytest.fixture
def contract(
    oracle: Oracle, admin: Admin, lake_config: Config, offload: Callable[[str], None]
) -> Contract:
    return Contract(oracle, admin, lake_config, offload)


# --- chunked messages ---


@dataclass
class Chunked:
    """A message to be sent chunk by chunk."""

    oracle: Oracle
    topic: str
    name: str
    body: bytes
    chunks: int
    compression: str = "NONE"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        none = self.compression == "NONE"
        self.packed = self.body if none else self.oracle.compress(self.body, self.compression)
        self.size = math.ceil(len(self.packed) / self.chunks)

    def send(self, *numbers: int) -> Key:
        """Where the last of them is."""
        for number in numbers:
            ledger, entry, partition, batch = self.oracle.raw_chunk(
                self.topic,
                f"producer of {self.name}",
                f"uuid of {self.name}",
                number,
                self.chunks,
                len(self.packed),
                self.packed[number * self.size : (number + 1) * self.size],
                sequence_id=7,
                compression=self.compression,
                uncompressed_size=len(self.body),
                **self.options,
            )
        return partition, ledger, entry, batch


def body(size: int) -> bytes:
    """Half of it compressible."""
    return os.urandom(size // 2) + b"x" * (size - size // 2)


def test_interleaved_chunks(contract: Contract, topic_name: str) -> None:
    def message(name: str, compression: str) -> Chunked:
        return Chunked(contract.oracle, topic_name, name, body(9_000), 4, compression)

    a, b, c = message("a", "LZ4"), message("b", "ZSTD"), message("c", "NONE")
    a.send(0)
    b.send(0)
    c.send(0)
    contract.oracle.write(topic_name, [{"value": b"between"}])
    b.send(1, 2)
    a.send(1)
    contract.admin.seal(topic_name)
    c.send(1, 2)
    a.send(2)
    contract.admin.seal(topic_name)
    ends = [c.send(3), a.send(3)]
    contract.admin.seal(topic_name)
    ends.append(b.send(3))
    java = contract.holds(topic_name)
    assert [bytes_of(java[end]["data"]) for end in ends] == [c.body, a.body, b.body]
    assert len(java) == 4


@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"])
def test_chunking_producer(contract: Contract, topic_name: str, compression: str) -> None:
    messages = [
        {"value": body(size), "key": f"k{size}", "properties": {"n": str(size)}, "event_time": 5}
        for size in (10, 3_000, 20_000, 100_000)
    ]
    contract.oracle.write(topic_name, messages[:2], chunk_size=2_000, compression=compression)
    contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, messages[2:], chunk_size=2_000, compression=compression)
    assert len(contract.holds(topic_name)) == 4


@pytest.mark.parametrize("sealed", [False, True], ids=["one ledger", "a ledger each"])
@pytest.mark.parametrize(
    ("sent", "rows"),
    [
        ((0, 0, 1, 2), 1),
        ((0, 1, 0, 1, 2), 1),
        ((0, 1, 1, 2), 1),
        ((0, 1, 2, 2), 1),
        ((0, 1, 2, 0, 1, 2), 2),
        ((0, 1), 0),
        ((0,), 0),
    ],
    ids=str,
)
def test_resent_and_incomplete_chunks(
    contract: Contract, topic_name: str, sent: Sequence[int], rows: int, sealed: bool
) -> None:
    contract.oracle.write(topic_name, [{"value": b"before"}])
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3, "LZ4")
    for number in sent:
        message.send(number)
        if sealed:
            contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, [{"value": b"after"}])
    # pulsar-client loses a message of which a chunk was sent again.
    lost = sent in ((0, 0, 1, 2), (0, 1, 0, 1, 2), (0, 1, 1, 2))
    tiers = EXACT if lost else (*HOT, "parquet")
    assert len(contract.holds(topic_name, tiers=tiers)) == 2 + rows


@pytest.mark.parametrize("sent", [(0,), (0, 1), (0, 1, 2, 2), (0, 2)], ids=str)
def test_chunks_at_the_very_end(contract: Contract, topic_name: str, sent: Sequence[int]) -> None:
    """The last entry is there, and gives no message: pulsar-client waits for one, and fails."""
    contract.oracle.write(topic_name, [{"value": b"before"}])
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    end = message.send(*sent)
    contract.holds(topic_name, strays=[end] if sent == (0, 2) else [], tiers=EXACT)


def test_last_chunk_alone_in_the_open_ledger(contract: Contract, topic_name: str) -> None:
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 2)
    message.send(0)
    contract.admin.seal(topic_name)
    end = message.send(1)
    assert list(contract.holds(topic_name)) == [end]


@pytest.mark.parametrize("sealed", [False, True], ids=["one ledger", "a ledger each"])
@pytest.mark.parametrize(
    ("sent", "strays"),
    [((0, 2), [1]), ((1, 2), [0, 1]), ((2,), [0]), ((0, 2, 0, 1, 2), [1])],
    ids=str,
)
def test_missing_chunks(
    contract: Contract,
    topic_name: str,
    sent: Sequence[int],
    strays: Sequence[int],
    sealed: bool,
) -> None:
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    ids = []
    for number in sent:
        ids.append(message.send(number))
        if sealed:
            contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, [{"value": b"after"}])
    contract.holds(topic_name, strays=[ids[n] for n in strays])


def test_giving_up_a_message(contract: Contract, topic_name: str, lake: PulsarLake) -> None:
    """What was incomplete at an earlier commit is one rescued row once it has waited enough."""
    topic, admin = Topic.parse(topic_name), contract.admin
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    other = Chunked(contract.oracle, topic_name, "b", body(5_000), 2)

    def offload(hours: int) -> TopicTable:
        offload = contract.config.offload.model_copy(
            update={"chunk_timeout": dt.timedelta(hours=hours)}
        )
        config = contract.config.model_copy(update={"offload": offload})
        admin.seal(topic_name)
        with AdminClient(config.pulsar) as client:
            TopicOffloader(config, client, lambda: lake.spark.sparkContext).turn(topic, now=True)
        table = TopicTable.open(config.storage, topic)
        assert table is not None
        return table

    _, first_ledger, first_entry, _ = message.send(0)
    other.send(0)
    end = message.send(1)
    assert offload(1).reach(Partition(topic, -1)) == Position(first_ledger, first_entry)
    assert rows_of(contract.config, topic_name, "parquet") == {}
    whole = other.send(1)
    assert offload(0).reach(Partition(topic, -1)) is None
    rows = rows_of(contract.config, topic_name, "parquet")
    assert sorted(rows) == sorted([end, whole])
    assert rows[whole]["value"] == other.body
    assert rows[end]["__error"] == "chunked message that was never completed"
    assert rows[end]["__rescued"].endswith(message.body[: 2 * message.size])
    assert rows[end]["value"] is None
    late = message.send(2)
    query = query_rows(contract.config, topic_name)
    assert query[late]["__error"] == STRAY
    with AdminClient(contract.config.pulsar) as client:
        hold = client.hold_position(Partition(topic, -1), contract.config.offload.subscription)
    assert hold is not None
    assert hold > Position(first_ledger, first_entry)


def test_offload_boundary_inside_a_message(contract: Contract, namespace: str) -> None:
    admin, config, topic = contract.admin, contract.config, f"persistent://{namespace}/t"
    admin.set_retention(namespace, 0, 0)
    admin.create_topic(topic)
    parsed = Topic.parse(topic)
    with AdminClient(config.pulsar) as client:
        [partition] = client.partitions(parsed)

    def held() -> Position:
        """The entry behind which the hold has let go."""
        cursor = admin.internal_stats(topic)["cursors"][config.offload.subscription]
        ledger, entry = cursor["markDeletePosition"].split(":")
        return Position(int(ledger), int(entry))

    admin.create_subscription(topic, config.offload.subscription)  # nothing goes before offloading
    contract.oracle.write(topic, [{"value": b"first"}])
    admin.seal(topic)
    contract.oracle.write(topic, [{"value": b"second"}])
    message = Chunked(contract.oracle, topic, "a", body(6_000), 3, "LZ4", {"key": "k"})
    _, ledger, entry, _ = message.send(0)
    begin = Position(ledger, entry)
    message.send(1)
    contract.oracle.write(topic, [{"value": b"third"}])
    java = java_rows(contract.oracle, topic)
    admin.seal(topic)
    contract.offload(topic)
    check(rows_of(config, topic, "parquet"), java, topic, "parquet")
    assert len(java) == 3
    table = TopicTable.open(config.storage, parsed)
    assert table is not None
    assert table.reach(partition) == begin
    assert held() < begin

    admin.trim(topic)
    assert held() < begin
    assert ledger in admin.ledgers(topic)
    end = message.send(2)
    java |= java_rows(contract.oracle, topic)
    assert bytes_of(java[end]["data"]) == message.body
    check(query_rows(config, topic, ()), java, topic, "all columns")
    check(query_rows(config, topic), java, topic, "query")
    check(
        rows_of(config, topic, "parquet"), {k: java[k] for k in java if k != end}, topic, "parquet"
    )

    admin.seal(topic)
    check(query_rows(config, topic, ()), java, topic, "all columns")
    check(query_rows(config, topic), java, topic, "query")
    contract.offload(topic)
    check(rows_of(config, topic, "parquet"), java, topic, "parquet")
    check(query_rows(config, topic, ()), java, topic, "all columns")
    check(query_rows(config, topic), java, topic, "query")
    table = TopicTable.open(config.storage, parsed)
    assert table is not None
    assert table.reach(partition) is None
    assert held() > begin


# --- transactions ---


def numbered(name: str, count: int = 5) -> list[Json]:
    return [{"value": f"{name} {n}".encode(), "key": name} for n in range(count)]


@pytest.mark.parametrize("batch", [0, 3], ids=["single", "batched"])
def test_transactions(contract: Contract, topic_name: str, batch: int) -> None:
    oracle = contract.oracle

    def write(name: str, transaction: str | None = None) -> None:
        oracle.write(topic_name, numbered(name), batch=batch, transaction=transaction)

    kept, dropped, late = oracle.begin(), oracle.begin(), oracle.begin()
    write("plain")
    write("kept", kept)
    write("dropped", dropped)
    write("late", late)
    write("kept too", kept)
    write("dropped too", dropped)
    write("plain too")
    oracle.abort(dropped)
    oracle.commit(kept)
    write("after")
    contract.admin.seal(topic_name)
    write("next ledger")
    oracle.commit(late)
    java = contract.holds(topic_name, tiers=HOT)
    assert len(java) == 7 * 5
    gone = oracle.begin()
    write("gone", gone)
    contract.admin.seal(topic_name)
    contract.admin.seal(topic_name)
    write("last")
    oracle.abort(gone)
    assert len(contract.holds(topic_name)) == 8 * 5


def test_open_transaction_at_the_end(contract: Contract, topic_name: str) -> None:
    oracle = contract.oracle
    oracle.write(topic_name, numbered("before"))
    done = oracle.begin()
    oracle.write(topic_name, numbered("done"), transaction=done)
    still = oracle.begin()
    oracle.write(topic_name, numbered("open"), transaction=still)
    oracle.write(topic_name, numbered("behind"))
    oracle.commit(done)
    assert len(contract.holds(topic_name, tiers=HOT)) == 10
    contract.admin.seal(topic_name)
    oracle.write(topic_name, numbered("next ledger"))
    assert len(contract.holds(topic_name, tiers=HOT)) == 10
    contract.offload(topic_name)
    java = java_rows(oracle, topic_name)
    check(query_rows(contract.config, topic_name), java, topic_name, "query")
    oracle.commit(still)
    assert len(contract.holds(topic_name)) == 25


def test_transaction_never_ended(contract: Contract, topic_name: str) -> None:
    contract.oracle.write(topic_name, numbered("open"), transaction=contract.oracle.begin())
    contract.oracle.write(topic_name, numbered("behind"))
    assert not contract.holds(topic_name, tiers=HOT)


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_plain_messages_in_a_transactions_batch(
    contract: Contract, topic_name: str, commit: bool
) -> None:
    oracle = contract.oracle
    one, other = oracle.begin(), oracle.begin()
    oracle.write(topic_name, numbered("x", 1), transaction=one)  # registers the topic in it
    oracle.write(topic_name, numbered("x", 1), transaction=other)
    messages = [
        {**message, "transaction": (one, None, other, None)[n % 4]}
        for n, message in enumerate(numbered("mixed", 12))
    ]
    oracle.write(topic_name, messages, batch=4)
    (oracle.commit if commit else oracle.abort)(one)
    oracle.commit(other)
    contract.holds(topic_name)


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_chunks_in_a_transaction(contract: Contract, topic_name: str, commit: bool) -> None:
    oracle = contract.oracle
    transaction = oracle.begin()
    large = [{"value": body(9_000)}, {"value": body(12_000)}]
    oracle.write(topic_name, large, chunk_size=2_000, compression="LZ4", transaction=transaction)
    contract.admin.seal(topic_name)
    oracle.write(topic_name, large[:1], chunk_size=2_000)
    (oracle.commit if commit else oracle.abort)(transaction)
    assert len(contract.holds(topic_name)) == (3 if commit else 1)


# --- keys, nulls, times ---

KEYS: list[Json] = [
    {"value": b"no key"},
    {"value": b"null key", "key": None},
    {"value": b"empty key", "key": ""},
    {"value": b"key", "key": "k"},
    {"value": b"key", "key": "schlüssel \U0001f680"},
    {"value": b"bytes", "key_bytes": b"\x00\xff"},
    {"value": b"empty bytes", "key_bytes": b""},
    {"value": b"ordering", "ordering_key": b"o"},
    {"value": b"both", "key": "k", "ordering_key": b"o"},
    {"value": None},
    {"value": None, "key": "k"},
    {"value": None, "key": ""},
    {"value": b""},
    {"value": b"", "key": "k"},
    {"value": b"properties", "properties": {"a": "", "": "b", "ü": "ö"}},
    {"value": b"times", "event_time": 1},
    {"value": b"times", "event_time": 1_700_000_000_123},
    {"value": b"sequence", "sequence_id": 1000},
    {"value": b"sequence", "sequence_id": 2000},
]


@pytest.mark.parametrize(
    ("batch", "compression"),
    [
        *((batch, kind) for batch in (0, 2) for kind in ("NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY")),
        (1, "LZ4"),
        (100, "NONE"),
    ],
)
def test_keys_and_nulls(contract: Contract, topic_name: str, batch: int, compression: str) -> None:
    contract.oracle.write(topic_name, KEYS, batch=batch, compression=compression, producer="größe")
    assert len(contract.holds(topic_name)) == len(KEYS)


@pytest.mark.parametrize("batch", [0, 2])
def test_ordering_keys_that_are_no_text(contract: Contract, topic_name: str, batch: int) -> None:
    keys = [b"\xff\x00", b"", b"o", b"\x80"]
    messages = [{"value": b"x", "ordering_key": key} for key in keys]
    contract.oracle.write(topic_name, messages, batch=batch)
    contract.holds(topic_name, tiers=EXACT)
    rows = rows_of(contract.config, topic_name, "broker")
    assert [row["__error"] for row in rows.values()] == [
        None if key in (b"", b"o") else "ordering key is not UTF-8" for key in keys
    ]


def test_deliver_at(contract: Contract, topic_name: str) -> None:
    messages = [{"value": b"x", "deliver_at": at} for at in (1, 1_700_000_000_123, FAR)]
    contract.oracle.write(topic_name, [*messages, {"value": b"now"}])
    assert len(contract.holds(topic_name)) == 4


def test_partitions(contract: Contract, topic_name: str) -> None:
    contract.admin.create_topic(topic_name, 3)
    for batch in (0, 4):
        messages = [{"value": str(n).encode(), "key": f"k{n}"} for n in range(40)]
        contract.oracle.write(topic_name, messages, batch=batch)
    assert len(contract.holds(topic_name)) == 80


# --- primitive schemas ---


def _identity(value: Any) -> Any:
    return value


def _milliseconds(value: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=value)


def _time_nanos(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, *seconds = map(int, clock.split(":"))
    whole = hours * 3600 + minutes * 60 + sum(seconds)
    return whole * 10**9 + int(fraction.ljust(9, "0"))


def _nanos(text: str) -> int:
    day, _, clock = text.removesuffix("Z").partition("T")
    days = (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days
    return days * 86_400 * 10**9 + _time_nanos(clock)


PRIMITIVES: list[tuple[str, list[Any], Callable[[Any], Any]]] = [
    ("STRING", ["", "a", "Grüße \U0001f680", "line\nbreak", "x" * 10_000], _identity),
    ("BOOLEAN", [True, False], _identity),
    ("INT8", [0, 1, -1, 127, -128], _identity),
    ("INT16", [0, -1, 2**15 - 1, -(2**15)], _identity),
    ("INT32", [0, -1, 2**31 - 1, -(2**31)], _identity),
    ("INT64", [0, -1, 2**63 - 1, -(2**63)], _identity),
    ("FLOAT", [0.0, -0.0, 1.5, 0.1, "NaN", "Infinity", "-Infinity"], float),
    ("DOUBLE", [0.0, -0.0, 1.5, 0.1, 5e-324, 1e308, "NaN", "Infinity", "-Infinity"], float),
    ("DATE", [0, 86_400_000, 1_700_000_000_123, -1], _milliseconds),
    ("TIMESTAMP", [0, 1_700_000_000_123, -1], _milliseconds),
    ("TIME", [0, 1, 86_399_999], lambda value: value * 1000),
    (
        "INSTANT",
        [
            "1970-01-01T00:00:00Z",
            "2023-11-14T22:13:20.123456789Z",
            "1969-12-31T23:59:59.999999999Z",
        ],
        _nanos,
    ),
    ("LOCAL_DATE", ["1970-01-01", "2024-02-29", "1582-10-04"], dt.date.fromisoformat),
    ("LOCAL_TIME", ["00:00", "23:59:59.999999999", "10:11:12"], _time_nanos),
    (
        "LOCAL_DATE_TIME",
        ["1970-01-01T00:00", "2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999"],
        _nanos,
    ),
]


@pytest.mark.parametrize("batch", [100], ids=["batched"])
@pytest.mark.parametrize(("kind", "values", "ours"), PRIMITIVES, ids=[p[0] for p in PRIMITIVES])
def test_primitives(
    contract: Contract,
    topic_name: str,
    kind: str,
    values: list[Any],
    ours: Callable[[Any], Any],
    batch: int,
) -> None:
    def payload(java: Json, _: Row) -> Row:
        assert "value_error" not in java
        return {"value": None if java["null"] else ours(java["value"])}

    messages = [{"value": value} for value in [*values, None]]
    contract.oracle.write(topic_name, messages, {"type": kind}, batch=batch)
    assert len(contract.holds(topic_name, payload)) == len(messages)


# --- records ---


def record(*fields: Json) -> Json:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


def optional(name: str, kind: Any) -> Json:
    return {"name": name, "type": ["null", kind], "default": None}


FIRST = record({"name": "id", "type": "long"}, optional("name", "string"))
SECOND = record(*FIRST["fields"], optional("price", "double"))
THIRD = record(
    {"name": "id", "type": "long"},
    optional("price", "double"),
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    optional(
        "address",
        {"type": "record", "name": "Address", "fields": [{"name": "street", "type": "string"}]},
    ),
)


def fields(java: Json, ours: Row) -> Row:
    """Columns of the record; a field that the writer's schema does not have is NULL."""
    assert "value_error" not in java
    value: Row = java["value"] or {}
    assert value.keys() <= ours.keys()
    return {name: value.get(name) for name in ours}


def tagged(kind: str, name: str, value: Any) -> Any:
    """Avro's JSON encoding of a union's member."""
    return {name: value} if kind == "AVRO" and value is not None else value


@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_schema_versions(contract: Contract, topic_name: str, kind: str, batch: int) -> None:
    oracle = contract.oracle
    address = "shop.Address"

    def values(version: int, numbers: Iterable[int]) -> list[Json]:
        found = []
        for n in numbers:
            value: Json = {"id": n}
            if version < 3:
                value["name"] = tagged(kind, "string", [None, "", f"n{n} ü"][n % 3])
            if version > 1:
                value["price"] = tagged(kind, "double", [None, 0.5, -1e300][n % 3])
            if version > 2:
                value["tags"] = ["a"] * (n % 3)
                value["address"] = tagged(kind, address, [None, {"street": "x"}][n % 2])
            found.append({"value": value, "key": f"k{n}"})
        return [*found, {"value": None, "key": "k"}]

    schemas = [{"type": kind, "definition": one} for one in (FIRST, SECOND, THIRD)]
    for version, schema in enumerate(schemas, 1):
        oracle.write(topic_name, values(version, range(7)), schema, batch=batch)
        if version == 2:
            contract.admin.seal(topic_name)
    # Old writers are still there, and one producer writes all versions.
    oracle.write(topic_name, values(1, range(7, 9)), schemas[0], batch=batch)
    mixed = [
        {**values(n % 3 + 1, [n])[0], "schema": schemas[n % 3]} for n in (0, 1, 2, 3, 3, 4, 5, 5)
    ]
    oracle.write(topic_name, mixed, schemas[2], batch=batch)
    java = contract.holds(topic_name, fields)
    assert {row["schema_version"] for row in java.values()} == {0, 1, 2}


@pytest.mark.parametrize("batch", [0, 3])
@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_auto_produce(contract: Contract, topic_name: str, kind: str, batch: int) -> None:
    """Bytes that somebody else has encoded, beside a producer with the schema."""
    oracle = contract.oracle
    schema = {"type": kind, "definition": FIRST}
    values = [{"id": n, "name": tagged(kind, "string", f"n{n}")} for n in range(4)]
    oracle.write(topic_name, [{"value": value} for value in values], schema, batch=batch)
    encoded = [base64.b64decode(row["data"]) for row in oracle.read(topic_name)]
    automatic = {"type": "AUTO_PRODUCE"}
    oracle.write(topic_name, [{"value": one} for one in encoded], automatic, batch=batch)
    java = contract.holds(topic_name, fields)
    assert [row["value"]["id"] for row in java.values()] == [*range(4), *range(4)]
