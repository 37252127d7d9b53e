"""Encrypted messages while a topic changes, and keys that are missing, wrong or of a function."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from offloader.config import Config
from reader import open_topic
from reader.clients import Clients
from reader.config import EncryptionConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Topic
from reader.plan.snapshot import Snapshot, take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.admin import AdminClient
from reader.sources.row_format import RowFormat
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from spark_ext.datasource.tasks import TaskFormat, plan_tasks, read_task
from testbed.admin import wait_until
from testbed.oracle import Json
from tests.contract import key_provider
from tests.contract.against_java import Contract, offload_in_thread
from tests.contract.java import body, bytes_of, java_rows
from tests.contract.key_provider import DERIVED, KNOWN, NO_KEY, RAISES
from tests.contract.rows import Key, Row, keyed, rows_of
from tests.contract.stream.following import Follower
from tests.spark.stream.runs import ids, reader, run
from tests.support.schemas import avro_record

KINDS = ["RSA", "ECDSA"]


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

    def offload(self, topic: str) -> None:
        offload_in_thread(self.config, topic)

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
            assert keyed(self.streams.rows(topic).to_pylist()) == found
            limited = self.streams.limited(topic, len(found) // 3 + 1)
            assert keyed(limited.to_pylist()) == found
        return found

    def rows_of(self, snapshot: Snapshot) -> dict[Key, Row]:
        wanted = RowFormat(snapshot.fields, snapshot.schemas, snapshot.columns)
        form = TaskFormat(self.config, wanted)
        tasks = plan_tasks(Clients(self.config), snapshot, snapshot.columns.names)
        batches = [batch for task in tasks for batch in read_task(form, task)]
        return keyed([row for batch in batches for row in batch.to_pylist()])

    def java(self, topic: str, schema: Json | None = None) -> dict[Key, Json]:
        return java_rows(self.contract.oracle, topic, schema, self.private)


@pytest.fixture
def keyed_contract(contract: Contract, tmp_path: Path) -> Iterator[Callable[..., Keyed]]:
    public, private = contract.oracle.make_keys("RSA")
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
def test_a_chunk_on_each_side_of_what_is_offloaded(
    keyed_contract: Callable[..., Keyed], namespace: str, store: bool
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
    made.offload(topic)
    hidden = 0 if store else 3  # in the table as they are
    assert len(rows_of(made.contract.config, topic, "parquet")) == 1 + hidden
    assert len(made.rows(topic)) == 1
    end = send("a", 3)
    java = made.java(topic)
    rows = made.rows(topic)
    assert rows[end]["value"] == b"".join(parts)
    assert rows[end]["__encryptionContext"] is not None
    assert bytes_of(java[end]["data"]) == b"".join(parts)
    admin.seal(topic)
    made.offload(topic)
    assert made.rows(topic).keys() == rows.keys()
    assert made.rows(topic)[end]["value"] == b"".join(parts)
    table = TopicTable.open(open_storage(made.config.storage), Topic.parse(topic))
    assert table is not None
    assert table.numbers(Partition(Topic.parse(topic), -1)).lookback is not None  # of b


def test_giving_up_an_encrypted_message(
    keyed_contract: Callable[..., Keyed], topic_name: str
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
    late.offload(topic_name)
    rows = dataclasses.replace(made).rows(topic_name)  # by streams that begin now
    assert len(rows) == 2
    assert rows[ends[1]]["__error"] == "chunked message that was never completed"
    assert rows[ends[1]]["__rescued"].endswith(b"0" * 10 + b"1" * 10)
    assert len(rows_of(made.contract.config, topic_name, "parquet")) == 2  # as they are


def test_a_ledger_that_leaves_bookkeeper_during_a_query(
    keyed_contract: Callable[..., Keyed], namespace: str
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
    made.offload(topic)

    def gone() -> bool:
        admin.trim(topic)
        return not set(old[:-1]) & set(admin.ledgers(topic))

    wait_until("the ledgers to go", gone)
    with AdminClient(made.config.pulsar) as client:
        snapshot = from_token(client, Topic.parse(topic), token)
    assert made.rows_of(snapshot) == expected


def test_sql(
    keyed_contract: Callable[..., Keyed],
    topic_name: str,
    contract_lake: PulsarLake,
    contract: Contract,
    tmp_path: Path,
) -> None:
    """The same session with and without the key."""
    made = keyed_contract()
    schema: Json = {
        "type": "AVRO",
        "definition": avro_record("Order", {"id": "long", "text": "string"}),
    }

    def send(first: int) -> None:
        messages = [{"value": {"id": n, "text": "x" * n}} for n in range(first, first + 10)]
        contract.oracle.write(topic_name, messages, schema, encryption=made.public, batch=4)

    send(0)
    contract.admin.seal(topic_name)
    made.offload(topic_name)
    send(10)
    with PulsarLake(made.config) as keyed_lake:
        rows = keyed_lake.table(topic_name).where("length(text) >= 5").select("id").collect()
        assert sorted(row.id for row in rows) == list(range(5, 20))
        assert keyed_lake.table(topic_name).count() == 20
        assert keyed_lake.table(topic_name, tiers="parquet").count() == 10
        name = Topic.parse(topic_name).local_name
        stream = reader(keyed_lake, topic=name, maxMessagesPerTrigger=8).format("pulsar").load()
        assert ids(run(stream, tmp_path / "checkpoint")) == list(range(20))
        source = keyed_lake.spark.read.format("pulsar").option("topic", topic_name).load()
        assert sorted(row.id for row in source.select("id").collect()) == list(range(20))
    assert contract_lake.table(topic_name).where("__error = 'encrypted'").count() == 6


def test_keys_of_a_provider(
    keyed_contract: Callable[..., Keyed], topic_name: str, tmp_path: Path
) -> None:
    """In this process, and in Spark's planner and workers, which import the function."""
    public = {
        KNOWN: DERIVED.public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        .decode()
    }
    made = keyed_contract(keys={}, key_provider=f"{key_provider.__name__}:private_key")
    expected: dict[str, tuple[bytes | None, str | None]] = {
        KNOWN: (b"x", None),
        "unknown": (None, "encrypted"),
        RAISES: (None, "encrypted: encryption.key_provider raised PermissionError"),
        NO_KEY: (None, "encrypted: encryption.key_provider returned no private key"),
    }
    for name in expected:
        message = [{"value": b"x"}]
        made.contract.oracle.write(topic_name, message, encryption={name: public[KNOWN]})
    rows = sorted(made.rows(topic_name).items())
    assert [(row["value"], row["__error"]) for _, row in rows] == [*expected.values()]
    with PulsarLake(made.config) as lake:
        table = lake.table(topic_name).orderBy("__ledgerId", "__entryId")
        found = table.select("value", "__error").collect()
    assert [(row["value"], row["__error"]) for row in found] == [*expected.values()]


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
