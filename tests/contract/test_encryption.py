"""Encrypted messages: what the Java client reads with the private key is what each tier gives."""

from __future__ import annotations

import dataclasses
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructType

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader import open_topic
from reader.clients import Clients
from reader.config import EncryptionConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Topic
from reader.plan.snapshot import Snapshot, take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.admin import AdminClient
from reader.sources.rows import RowFormat
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from spark_ext.datasource.batch import PulsarDataSource
from spark_ext.datasource.tasks import TaskFormat, plan_tasks, read_task
from spark_ext.session.handoff import SETTINGS_VARIABLE, settings_file
from testbed.admin import wait_until
from testbed.oracle import Json
from tests.contract.against_java import Contract, body, bytes_of, check, java_rows, raw_value
from tests.contract.oracle_corpus import SOME
from tests.contract.stream.following import Follower
from tests.contract.test_sources import Key, Row, keyed, plain, rows_of
from tests.spark.stream.runs import ids, reader, run

KINDS = ["RSA", "ECDSA"]
ONE_KIND = pytest.mark.parametrize("keyed_contract", KINDS[:1], indirect=True)


def context_of(message: Json) -> Row | None:
    context = message["encryption"]
    if context is None:
        return None
    return {
        "keys": [
            {
                "name": key["name"],
                "value": bytes_of(key["value"]),
                "metadata": list(key["metadata"].items()),
            }
            for key in context["keys"]
        ],
        "param": bytes_of(context["param"]),
        "algorithm": context["algorithm"] or None,
        "compression": context["compression"],
        "uncompressedSize": context["uncompressed_size"] or None,
        "batchSize": context["batch_size"],
        "metadata": bytes_of(context["metadata"]),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_encrypted_messages(contract: Contract, topic_name: str, kind: str) -> None:
    """Without the key the Java client gives an entry as it is stored, and so does each tier."""
    oracle = contract.oracle
    public, private = oracle.make_keys(kind)
    other, _ = oracle.make_keys("RSA")
    keys = {"one": public, "two": other}
    messages = [{"value": b"secret %d" % n * 20, "key": f"k{n}", "event_time": 5} for n in range(4)]
    oracle.write(topic_name, messages, encryption=keys)
    oracle.write(topic_name, messages, encryption=keys, batch=3, compression="ZSTD")
    oracle.write(topic_name, [{"value": b"open"}])

    def payload(message: Json, _: Row) -> Row:
        context, data = message["encryption"], bytes_of(message["data"])
        if context is None:
            return raw_value(message, {})
        assert message["encrypted"]
        return {
            "value": None,
            "__rescued": data,
            "__error": SOME,
            "__encryptionContext": context_of(message),
        }

    found = contract.holds(topic_name, payload)
    assert len(found) == 4 + 2 + 1
    decrypted = oracle.read(topic_name, decryption={"one": private})
    assert [bytes_of(row["data"]) for row in decrypted] == [
        *(one["value"] for one in messages * 2),
        b"open",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_can_be_decrypted(contract: Contract, topic_name: str, kind: str) -> None:
    """With the key, the rows give what was sent; the client shows no encrypted chunk without it."""
    public, private = contract.oracle.make_keys(kind)
    small, large = b"small", bytes(n * n % 251 for n in range(9_000))
    keys = {"mine": public}
    contract.oracle.write(topic_name, [{"value": small, "key": "k"}], encryption=keys)
    contract.oracle.write(topic_name, [{"value": large}], encryption=keys, chunk_size=2_000)
    contract.admin.seal(topic_name)
    contract.offload(topic_name)
    plain = []
    for row in rows_of(contract.config, topic_name, "parquet").values():
        metadata = dict(row["__encryptionContext"])["metadata"]
        plain.append(contract.oracle.decrypt(row["__rescued"], metadata, {"mine": private}))
    assert plain[0] == small
    assert len(plain) > 1 + len(large) // 2_000
    assert b"".join(plain[1:]) == large


@dataclasses.dataclass(frozen=True)
class Keyed:
    """A configuration with a private key, and the contract beside it."""

    contract: Contract
    config: Config
    public: dict[str, str]
    private: dict[str, str]
    opened: ExitStack

    @cached_property
    def streams(self) -> Follower:
        return self.opened.enter_context(closing(Follower(self.config)))

    def offload(self, topic: str, lake: PulsarLake) -> None:
        with AdminClient(self.config.pulsar) as client:
            offloader = TopicOffloader(
                Clients(self.config, admin=client),
                self.config.offload,
                lambda: lake.spark.sparkContext,
            )
            while offloader.turn(Topic.parse(topic), now=True).more:
                pass

    def rows(self, topic: str, tiers: str | None = None) -> dict[Key, Row]:
        """Through the reader, as Spark's tasks have it, and the same as Arrow and from streams."""
        with AdminClient(self.config.pulsar) as client:
            snapshot = take_snapshot(
                Clients(self.config, admin=client), Topic.parse(topic), tiers=tiers
            )
        found = self.rows_of(snapshot)
        with open_topic(self.config, topic) as opened:
            assert keyed(opened.scan(tiers=tiers).read_all().to_pylist()) == found
        if tiers is None:
            assert keyed(self.streams.rows(topic)) == found
            assert keyed(self.streams.limited(topic, len(found) // 3 + 1)) == found
        return found

    def rows_of(self, snapshot: Snapshot) -> dict[Key, Row]:
        wanted = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
        form = TaskFormat(self.config, wanted, (None, None))
        tasks = plan_tasks(Clients(self.config), snapshot, snapshot.columns.names)
        batches = [batch for task in tasks for batch in read_task(form, task)]
        return keyed([row for batch in batches for row in batch.to_pylist()])

    def java(self, topic: str, schema: Json | None = None) -> dict[Key, Json]:
        return java_rows(self.contract.oracle, topic, schema, self.private)

    def check(
        self,
        rows: dict[Key, Row],
        java: dict[Key, Json],
        topic: str,
        payload: Callable[[Json, Row], Row] = raw_value,
    ) -> None:
        """Column by column, but what the Java client does not tell.

        That is the metadata of a message in a batch, and whether a size of 0 is given.
        """

        def with_context(message: Json, columns: Row) -> Row:
            context = context_of(message)
            if context is not None:
                assert not message["encrypted"]
                del context["metadata"]
            return {**payload(message, columns), "__encryptionContext": context}

        for row in rows.values():
            if row["__encryptionContext"] is not None:
                context = dict(row["__encryptionContext"])
                del context["metadata"]
                context["uncompressedSize"] = context["uncompressedSize"] or None
                row["__encryptionContext"] = plain(context)
        check(rows, java, topic, with_context)


@pytest.fixture(
    params=["RSA", pytest.param("ECDSA", marks=[pytest.mark.long, pytest.mark.nightly])]
)
def keyed_contract(
    request: pytest.FixtureRequest, contract: Contract, tmp_path: Path
) -> Iterator[Callable[..., Keyed]]:
    public, private = contract.oracle.make_keys(request.param)
    other, _ = contract.oracle.make_keys("RSA")
    file = tmp_path / "private.pem"
    file.write_text(private)

    def make(**settings: Any) -> Keyed:
        encryption = EncryptionConfig(**{"keys": {"one": file}, **settings})
        config = contract.config.model_copy(update={"encryption": encryption})
        keys = {"one": public, "two": other}
        return Keyed(contract, config, keys, {"one": private}, opened)

    with ExitStack() as opened:
        yield make


STORED = pytest.mark.parametrize(
    "store",
    [
        pytest.param(False, id="ciphertext"),
        pytest.param(True, id="plaintext", marks=pytest.mark.long),
    ],
)


@STORED
def test_decrypted_in_every_tier(
    keyed_contract: Callable[..., Keyed], topic_name: str, lake: PulsarLake, store: bool
) -> None:
    """Single messages, batches, chunks, transactions; hot, cold and on both sides."""
    made = keyed_contract(store_plaintext=store)
    oracle, admin = made.contract.oracle, made.contract.admin
    small = [
        {"value": b"secret %d" % n * 20, "key": f"k{n}", "event_time": 5, "properties": {"a": "b"}}
        for n in range(4)
    ]
    small += [{"value": b""}, {"value": None, "key": "gone"}]

    def send() -> None:
        keys = made.public
        oracle.write(topic_name, small, encryption=keys)
        oracle.write(topic_name, small, batch=3, compression="ZSTD", encryption=keys)
        oracle.write(topic_name, [{"value": body(9_000)}], chunk_size=2_000, encryption=keys)
        oracle.write(topic_name, [{"value": b"open"}])
        kept, dropped = oracle.begin(), oracle.begin()
        oracle.write(topic_name, small[:2], transaction=kept, encryption=keys)
        oracle.write(topic_name, small[2:4], transaction=dropped, batch=2, encryption=keys)
        oracle.commit(kept)
        oracle.abort(dropped)

    count = 2 * len(small) + 2 + 2
    send()
    java = made.java(topic_name)
    assert len(java) == count
    made.check(made.rows(topic_name), java, topic_name)
    admin.seal(topic_name)
    for tier in ("bookkeeper", "broker"):
        made.check(made.rows(topic_name, tier), java, topic_name)
    made.offload(topic_name, lake)
    for tiers in (None, "parquet"):
        made.check(made.rows(topic_name, tiers), java, topic_name)
    stored = rows_of(made.contract.config, topic_name, "parquet")
    secrets = [row for row in stored.values() if b"secret" in (row["value"] or b"")]
    assert len(secrets) == (10 if store else 0)
    send()
    java = made.java(topic_name)
    assert len(java) == 2 * count
    made.check(made.rows(topic_name), java, topic_name)
    admin.seal(topic_name)
    made.offload(topic_name, lake)
    made.check(made.rows(topic_name), java, topic_name)


@STORED
def test_a_chunk_on_each_side_of_what_is_offloaded(
    keyed_contract: Callable[..., Keyed], namespace: str, lake: PulsarLake, store: bool
) -> None:
    """Read from the hold on, which stays at the first chunk, and from the table in the end."""
    made = keyed_contract(store_plaintext=store)
    oracle, admin, topic = made.contract.oracle, made.contract.admin, f"persistent://{namespace}/t"
    admin.set_retention(namespace, 0, 0)
    admin.create_topic(topic)
    admin.create_subscription(topic, made.config.offload.subscription)
    parts = [body(1_000) for _ in range(4)]

    def send(uuid: str, number: int) -> Key:
        ledger, entry, partition, batch = oracle.raw_chunk(
            topic, f"p {uuid}", uuid, number, 4, 4_000, parts[number], 7, encryption=made.public
        )
        return partition, ledger, entry, batch

    oracle.write(topic, [{"value": b"before"}])
    admin.seal(topic)
    send("a", 0)
    send("b", 0)
    send("a", 1)
    admin.seal(topic)
    send("a", 2)
    made.offload(topic, lake)
    hidden = 0 if store else 3  # in the table as they are
    assert len(rows_of(made.contract.config, topic, "parquet")) == 1 + hidden
    assert len(made.rows(topic)) == 1
    end = send("a", 3)
    java = made.java(topic)
    rows = made.rows(topic)
    assert rows[end]["value"] == b"".join(parts)
    made.check({end: rows[end]}, {end: java[end]}, topic)
    admin.seal(topic)
    made.offload(topic, lake)
    assert made.rows(topic).keys() == rows.keys()
    assert made.rows(topic)[end]["value"] == b"".join(parts)
    table = TopicTable.open(open_storage(made.config.storage), Topic.parse(topic))
    assert table is not None
    assert table.lookback(Partition(Topic.parse(topic), -1)) is not None  # of b


@ONE_KIND
def test_giving_up_an_encrypted_message(
    keyed_contract: Callable[..., Keyed], topic_name: str, lake: PulsarLake
) -> None:
    made = keyed_contract()
    oracle, admin = made.contract.oracle, made.contract.admin
    ends = []
    for number in (0, 1):
        ledger, entry, partition, batch = oracle.raw_chunk(
            topic_name, "p", "u", number, 3, 30, b"%d" % number * 10, 7, encryption=made.public
        )
        ends.append((partition, ledger, entry, batch))
    admin.seal(topic_name)
    oracle.write(topic_name, [{"value": b"later"}])
    assert len(made.rows(topic_name)) == 1
    hasty = made.config.offload.model_copy(update={"chunk_timeout": 0 * made.config.offload.grace})
    late = dataclasses.replace(made, config=made.config.model_copy(update={"offload": hasty}))
    late.offload(topic_name, lake)
    rows = dataclasses.replace(made).rows(topic_name)  # by streams that begin now
    assert len(rows) == 2
    assert rows[ends[1]]["__error"] == "chunked message that was never completed"
    assert rows[ends[1]]["__rescued"].endswith(b"0" * 10 + b"1" * 10)
    assert len(rows_of(made.contract.config, topic_name, "parquet")) == 2  # as they are


@ONE_KIND
def test_a_ledger_that_leaves_bookkeeper_during_a_query(
    keyed_contract: Callable[..., Keyed], namespace: str, lake: PulsarLake
) -> None:
    made = keyed_contract()
    oracle, admin, topic = made.contract.oracle, made.contract.admin, f"persistent://{namespace}/t"
    admin.set_retention(namespace, 0, 0)
    admin.create_topic(topic)
    admin.create_subscription(topic, made.config.offload.subscription)
    for n in range(2):
        messages = [{"value": b"%d %d" % (n, k)} for k in range(6)]
        oracle.write(topic, messages, encryption=made.public, batch=3)
        oracle.write(topic, [{"value": body(7_000)}], encryption=made.public, chunk_size=2_000)
        admin.seal(topic)
    expected = made.rows(topic)
    assert len(expected) == 14
    with AdminClient(made.config.pulsar) as client:
        token = to_token(take_snapshot(Clients(made.config, admin=client), Topic.parse(topic)))
    old = admin.ledgers(topic)
    oracle.write(topic, [{"value": b"last"}])
    made.offload(topic, lake)

    def gone() -> bool:
        admin.trim(topic)
        return not set(old[:-1]) & set(admin.ledgers(topic))

    wait_until("the ledgers to go", gone)
    with AdminClient(made.config.pulsar) as client:
        snapshot = from_token(client, Topic.parse(topic), token)
    assert made.rows_of(snapshot) == expected


@ONE_KIND
def test_sql(
    keyed_contract: Callable[..., Keyed],
    topic_name: str,
    lake: PulsarLake,
    contract: Contract,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The same session with and without the key."""
    made = keyed_contract()
    schema: Json = {
        "type": "AVRO",
        "definition": {
            "type": "record",
            "name": "Order",
            "fields": [{"name": "id", "type": "long"}, {"name": "text", "type": "string"}],
        },
    }

    def send(first: int) -> None:
        messages = [{"value": {"id": n, "text": "x" * n}} for n in range(first, first + 10)]
        contract.oracle.write(topic_name, messages, schema, encryption=made.public, batch=4)

    send(0)
    contract.admin.seal(topic_name)
    made.offload(topic_name, lake)
    send(10)
    with PulsarLake(made.config) as keyed_lake:
        rows = keyed_lake.table(topic_name).where("length(text) >= 5").select("id").collect()
        assert sorted(row.id for row in rows) == list(range(5, 20))
        assert keyed_lake.table(topic_name).count() == 20
        assert keyed_lake.table(topic_name, tiers="parquet").count() == 10
        name = Topic.parse(topic_name).local_name
        stream = reader(keyed_lake, topic=name, maxMessagesPerTrigger=8).format("pulsar").load()
        assert ids(run(stream, tmp_path / "checkpoint")) == list(range(20))
    monkeypatch.setenv(SETTINGS_VARIABLE, settings_file(made.config) or "")
    source = PulsarDataSource({"topic": topic_name})
    scan = source.reader(StructType().add("id", LongType()))
    batches = [batch for one in scan.partitions() for batch in scan.read(one)]
    assert sorted(pa.Table.from_batches(batches)["id"].to_pylist()) == list(range(20))
    assert lake.table(topic_name).where("__error = 'encrypted'").count() == 6


@ONE_KIND
def test_keys_of_a_command(
    keyed_contract: Callable[..., Keyed], topic_name: str, tmp_path: Path
) -> None:
    script = tmp_path / "keys"

    def answer(text: str) -> list[str]:
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        return [str(script), f"{os.urandom(4).hex()}"]  # answers are kept: another command

    known = keyed_contract()
    known.contract.oracle.write(topic_name, [{"value": b"x"}], encryption=known.public)
    pem = tmp_path / "private.pem"

    def rows(text: str) -> list[Row]:
        made = keyed_contract(keys={}, command=answer(text))
        config = made.config
        return list(dataclasses.replace(known, config=config).rows(topic_name).values())

    (row,) = rows(f'read -r name; [ "$name" = one ] && cat {pem}; true')
    assert (row["value"], row["__error"]) == (b"x", None)
    (row,) = rows("true")  # it has no such key
    assert (row["value"], row["__error"]) == (None, "encrypted")
    (row,) = rows("echo no vault >&2; exit 3")
    assert row["value"] is None
    assert row["__error"] == "encrypted: encryption.command ended with exit code 3"
    (row,) = rows("echo nonsense")
    assert row["__error"] == "encrypted: encryption.command printed what is no private key"


@ONE_KIND
def test_a_key_file_that_is_missing(
    keyed_contract: Callable[..., Keyed], topic_name: str, tmp_path: Path
) -> None:
    made = keyed_contract(keys={"one": tmp_path / "nowhere.pem"})
    made.contract.oracle.write(topic_name, [{"value": b"x"}], encryption=made.public)
    with pytest.raises(ConfigurationError, match="cannot read the private key 'one'"):
        made.rows(topic_name)


def test_a_key_of_the_same_name_that_does_not_fit(
    keyed_contract: Callable[..., Keyed], topic_name: str, tmp_path: Path, contract: Contract
) -> None:
    for kind in KINDS:
        _, private = contract.oracle.make_keys(kind)
        (tmp_path / f"{kind}.pem").write_text(private)
    known = keyed_contract()
    contract.oracle.write(topic_name, [{"value": b"x"}], encryption=known.public)
    for kind in KINDS:
        made = keyed_contract(keys={"one": tmp_path / f"{kind}.pem"})
        (row,) = made.rows(topic_name).values()
        assert (row["value"], row["__error"]) == (None, "encrypted")
