"""Which ledger is read from where: the planner's choices over scripted admin answers."""

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Schema, Transaction

from reader.config import ReadConfig
from reader.errors import ConfigurationError, NotFoundError, UnsupportedError
from reader.model import LedgerMetadata, Partition, Position, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.model.reasons import Reason, TierReason
from reader.plan.filters import Predicate
from reader.plan.plan import Plan, make_plan
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import CREATED_KEY, LEDGERS_KEY, OffloadedLedger, TopicTable, encode_ledgers

TOPIC = Topic("public", "default", "orders")
PART = Partition(TOPIC, -1)
STRING = SchemaInfo(0, "STRING", "")


def metadata(ledger: int, entries: int = 10, state: str = "CLOSED") -> LedgerMetadata:
    last = entries - 1 if state == "CLOSED" else -1
    return LedgerMetadata(ledger, state, 1, 1, 1, last, "CRC32C", ((0, ("127.0.0.1:1",)),))


def sealed(ledger: int, entries: int = 10, **changes: Any) -> LedgerInfo:
    made = LedgerInfo(ledger, entries, entries * 100, metadata(ledger, entries), False, 1000)
    return replace(made, **changes)


def opened(ledger: int) -> LedgerInfo:
    return LedgerInfo(ledger, 0, 0, metadata(ledger, 0, "OPEN"), False, None)


def listing(
    ledgers: Sequence[LedgerInfo], last: str, max_read: str | None = None, **changes: Any
) -> PartitionLedgers:
    end = Position.parse(last)
    made = PartitionLedgers(
        PART,
        tuple(ledgers),
        end,
        Position.parse(max_read) if max_read else end,
        False,
        "created-1",
        500,
        {},
    )
    return replace(made, **changes)


class FakeAdmin:
    """Answers as scripted; ``order`` is what was asked, in order."""

    def __init__(self, *listings: PartitionLedgers) -> None:
        self.listings = {one.partition: one for one in listings}
        self.order: list[str] = []

    is_migrated = staticmethod(lambda topic: False)

    def require_consume(self, topic: Topic) -> None:
        self.order.append("permission")

    def partitions(self, topic: Topic) -> list[Partition]:
        self.order.append("partitions")
        if not self.listings:
            raise NotFoundError(f"topic {topic} does not exist")
        return list(self.listings)

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        self.order.append("ledgers")
        return self.listings[partition]

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        return {}

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        self.order.append("schemas")
        return (STRING,)


@dataclass(frozen=True)
class FakeClients:
    """Planning with a scripted admin and a real storage."""

    settings: ReadConfig
    admin: FakeAdmin

    @property
    def storage(self) -> Storage:
        return open_storage(self.settings.storage)

    @property
    def has_storage(self) -> bool:
        return bool(self.settings.storage.uri)

    def newest_table(self, topic: Topic) -> TopicTable | None:
        return TopicTable.open(self.storage, topic) if self.has_storage else None


@pytest.fixture
def config(tmp_path: Path) -> ReadConfig:
    return ReadConfig.load({"storage": {"uri": str(tmp_path)}, "query": {"tail_entries": 5}})


def make_table(config: ReadConfig, watermark: int, created: str = "created-1") -> None:
    """A table without files whose watermark is set; one file's worth of rows is not needed."""
    schema = pa.schema([("value", pa.string()), *METADATA])
    table = DeltaTable.create(
        open_storage(config.storage).table_uri(TOPIC),
        Schema.from_arrow(schema),
        configuration={CREATED_KEY + PART.full_name: created},
        raise_if_key_not_exists=False,
    )
    rows = pa.Table.from_pylist([{"value": "x", "__ledgerId": 1}], schema)
    from deltalake import write_deltalake

    write_deltalake(
        table,
        rows,
        mode="append",
        commit_properties=CommitProperties(
            app_transactions=[Transaction(PART.full_name, watermark)],
            custom_metadata={
                LEDGERS_KEY: encode_ledgers([OffloadedLedger(-1, 1, 10, 1, 100, "bookkeeper")])
            },
        ),
    )


def tiers(
    config: ReadConfig, *parts: PartitionLedgers, **options: Any
) -> list[tuple[int, str, int]]:
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(*parts)), TOPIC, **options)
    return [(s.ledger_id, s.tier, s.last_entry) for s in snapshot.hot]


def test_sealed_and_open_from_bookkeeper_and_a_short_tail_where_that_is_set(
    config: ReadConfig, tmp_path: Path
) -> None:
    part = listing([sealed(1), opened(3)], "3:0")
    plain = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    assert tiers(plain, part) == [(1, "bookkeeper", 9), (3, "bookkeeper", 0)]
    part = listing([sealed(1), sealed(2), opened(3)], "3:2")
    assert tiers(config, part) == [(1, "bookkeeper", 9), (2, "bookkeeper", 9), (3, "broker", 2)]
    part = listing([sealed(1), opened(3)], "3:4")
    assert tiers(config, part) == [(1, "bookkeeper", 9), (3, "broker", 4)]
    part = listing([sealed(1), opened(3)], "3:5")
    assert tiers(config, part) == [(1, "bookkeeper", 9), (3, "bookkeeper", 5)]


def test_empty_ledgers_are_not_read(config: ReadConfig) -> None:
    part = listing([sealed(1), sealed(2, 0), opened(3)], "1:9")
    assert tiers(config, part) == [(1, "bookkeeper", 9)]
    assert tiers(config, listing([opened(3)], "3:-1")) == []


def test_a_terminated_topic_ends_with_a_sealed_ledger(config: ReadConfig) -> None:
    last = LedgerInfo(3, 0, 0, metadata(3, 4), False, None)
    part = listing([sealed(1), last], "3:3", terminated=True)
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(part)), TOPIC)
    assert [(s.ledger_id, s.state, s.last_entry) for s in snapshot.hot] == [
        (1, "sealed", 9),
        (3, "sealed", 3),
    ]


def test_nothing_behind_an_open_transaction(config: ReadConfig) -> None:
    part = listing([sealed(1), sealed(2), opened(3)], "3:8", max_read="2:4")
    assert tiers(config, part) == [(1, "bookkeeper", 9), (2, "bookkeeper", 4)]
    part = listing([sealed(1), opened(2)], "2:8", max_read="1:-1")
    assert tiers(config, part) == []


def test_what_pulsar_moved_away_or_does_not_describe_goes_to_the_broker(config: ReadConfig) -> None:
    part = listing([sealed(1, offloaded=True), sealed(2, metadata=None), opened(3)], "2:9")
    assert tiers(config, part) == [(1, "broker", 9), (2, "broker", 9)]


def test_only_the_watermark_decides_what_is_cold(config: ReadConfig) -> None:
    make_table(config, watermark=2)
    part = listing([sealed(1), sealed(2), sealed(4), opened(5)], "5:1")
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(part)), TOPIC)
    assert [s.ledger_id for s in snapshot.hot] == [4, 5]
    assert [s.ledger_id for s in snapshot.cold] == [1, 2]
    assert snapshot.version == 1
    assert {s.state for s in snapshot.cold} == {"offloaded"}
    assert [s.reason.kind for s in (*snapshot.hot, *snapshot.cold)] == [
        Reason.SEALED,
        Reason.SHORT_TAIL,
        Reason.AT_WATERMARK,
        Reason.AT_WATERMARK,
    ]


def test_ledgers_are_listed_before_the_table_is_opened(
    config: ReadConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    true_open = TopicTable.open

    def spy(*args: Any, **kwargs: Any) -> TopicTable | None:
        admin.order.append("table")
        return true_open(*args, **kwargs)

    monkeypatch.setattr(TopicTable, "open", spy)
    take_snapshot(FakeClients(config, admin), TOPIC)
    assert admin.order == ["permission", "partitions", "ledgers", "schemas", "table"]


def test_forced_tiers(config: ReadConfig) -> None:
    make_table(config, watermark=1)
    part = listing([sealed(1), sealed(2), opened(3)], "3:1")
    assert tiers(config, part, tiers="bookkeeper") == [
        (1, "bookkeeper", 9),
        (2, "bookkeeper", 9),
        (3, "bookkeeper", 1),
    ]
    assert {tier for _, tier, _ in tiers(config, part, tiers="broker")} == {"broker"}
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(part)), TOPIC, tiers="broker")
    assert {one.reason for one in snapshot.hot} == {TierReason(Reason.FORCED)}
    assert tiers(config, part, tiers="parquet") == []
    with pytest.raises(ConfigurationError, match="unknown tier"):
        tiers(config, part, tiers="tape")


def test_a_forced_hot_tier_never_gives_fewer_rows(config: ReadConfig) -> None:
    make_table(config, watermark=1)
    part = listing([sealed(2), opened(3)], "3:1")  # ledger 1 was trimmed
    with pytest.raises(NotFoundError, match="trimmed"):
        tiers(config, part, tiers="bookkeeper")


def test_a_table_of_another_cluster_is_refused(config: ReadConfig) -> None:
    make_table(config, watermark=5, created="created-0")
    with pytest.raises(ConfigurationError, match="another cluster"):
        tiers(config, listing([sealed(4), opened(6)], "6:1"))


def test_a_topic_made_again_goes_on(config: ReadConfig) -> None:
    make_table(config, watermark=5, created="created-0")
    part = listing([sealed(7), opened(8)], "8:1")
    assert [ledger for ledger, _, _ in tiers(config, part)] == [7, 8]


def test_a_deleted_topic_keeps_its_table(config: ReadConfig) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        take_snapshot(FakeClients(config, FakeAdmin()), TOPIC)
    make_table(config, watermark=1)
    snapshot = take_snapshot(FakeClients(config, FakeAdmin()), TOPIC)
    assert (snapshot.version, snapshot.hot) == (1, ())
    assert snapshot.fields.names == ["value"]


def test_a_token_brings_the_hot_half_back(config: ReadConfig) -> None:
    part = listing([sealed(1), sealed(2), opened(3)], "3:2")
    admin = FakeAdmin(part)
    snapshot = take_snapshot(FakeClients(config, admin), TOPIC)
    token = to_token(snapshot)
    assert token.replace("_", "").replace(".", "").isalnum()
    again = from_token(admin, TOPIC, token)
    key = [(s.ledger_id, s.last_entry, s.tier, s.reason, s.state) for s in snapshot.hot]
    assert [(s.ledger_id, s.last_entry, s.tier, s.reason, s.state) for s in again.hot] == key
    assert again.hot[-1].reason == TierReason(Reason.SHORT_TAIL, 5)
    assert again.fields == snapshot.fields

    # More was written, and ledger 1 was trimmed: the snapshot stays as it was.
    admin.listings[PART] = listing([sealed(2), sealed(3, 50), opened(9)], "9:4")
    later = from_token(admin, TOPIC, token)
    assert [(s.ledger_id, s.last_entry) for s in later.hot] == [(1, 9), (2, 9), (3, 2)]
    assert later.hot[0].metadata is None


def test_a_pinned_snapshot_does_not_wait_for_transactions(config: ReadConfig) -> None:
    class Recovering(FakeAdmin):
        def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
            assert not transactions
            return super().ledgers(partition)

    part = listing([sealed(1), opened(2)], "2:4")
    pinned = take_snapshot(FakeClients(config, FakeAdmin(part)), TOPIC)
    again = from_token(Recovering(part), TOPIC, to_token(pinned))
    assert [(s.ledger_id, s.last_entry) for s in again.hot] == [(1, 9), (2, 4)]


def packed(value: object) -> str:
    """A token with this content."""
    plain = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.b64encode(zlib.compress(plain), b"_.").decode().rstrip("=")


def content(token: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(token + "=" * (-len(token) % 4), b"_.")))


class Refusing(FakeAdmin):
    def require_consume(self, topic: Topic) -> None:
        raise ConfigurationError(f"no permission to consume topic {topic}")


def test_a_token_is_not_looked_at_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zlib, "decompressobj", None)
    with pytest.raises(ConfigurationError, match="no permission"):
        from_token(Refusing(), TOPIC, packed({}))


def test_a_token_that_is_cut_off_is_refused(config: ReadConfig) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    whole = zlib.compress(
        json.dumps(content(to_token(take_snapshot(FakeClients(config, admin), TOPIC)))).encode()
    )
    for size in (0, 1, len(whole) - 1):
        with pytest.raises(ConfigurationError, match="token"):
            from_token(admin, TOPIC, base64.b64encode(whole[:size], b"_.").decode().rstrip("="))


def test_a_token_asks_only_of_partitions_that_there_are(config: ReadConfig) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    value = content(to_token(take_snapshot(FakeClients(config, admin), TOPIC)))
    [ledgers] = value["parts"].values()
    value["parts"] |= {str(index): ledgers for index in range(1000)}
    admin.order.clear()
    found = from_token(admin, TOPIC, packed(value))
    assert len({one.partition for one in found.hot}) == 1001
    assert admin.order == ["permission", "partitions", "ledgers", "schemas"]


def test_a_token_of_another_topic_is_refused(config: ReadConfig) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    token = to_token(take_snapshot(FakeClients(config, admin), TOPIC))
    with pytest.raises(ConfigurationError, match="not the token of a snapshot of a/b/c"):
        from_token(admin, Topic("a", "b", "c"), token)


def test_more_than_a_token_may_hold_is_said_when_it_is_made(
    config: ReadConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    snapshot = take_snapshot(FakeClients(config, admin), TOPIC)
    monkeypatch.setattr(json, "dumps", lambda *args, **kwargs: "0" * (17 << 20))
    with pytest.raises(UnsupportedError, match="too many ledgers") as error:
        to_token(snapshot)
    assert "pulsar-lake offload" in (error.value.hint or "")


@pytest.mark.parametrize(
    "now",
    [
        listing([sealed(1), opened(2)], "1:9", created_at="created-2"),  # wiped, and made again
        listing([sealed(1, 9), opened(2)], "1:8"),  # restored, and the id given again
        listing([opened(1)], "1:8"),
    ],
)
def test_a_token_is_not_for_another_ledger_of_the_same_id(
    config: ReadConfig, now: PartitionLedgers
) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    token = to_token(take_snapshot(FakeClients(config, admin), TOPIC))
    admin.listings[PART] = now
    with pytest.raises(NotFoundError, match="is another one"):
        from_token(admin, TOPIC, token)


@pytest.mark.parametrize("token", ["", "x", "_.", "QUJD", "é"])
def test_what_is_no_token_is_said(token: str) -> None:
    with pytest.raises(ConfigurationError, match="token"):
        from_token(FakeAdmin(), TOPIC, token)


@pytest.mark.parametrize(
    "changes",
    [
        {"choices": [["tape", "sealed", None]]},
        {"choices": [["bookkeeper", "because", None]]},
        {"choices": []},
        {"choices": [["bookkeeper"]]},
        {"parts": []},
        {"parts": {"x": [[1, 9, 0, 0]]}},
        {"parts": {"0": [[1, "9", 0, 0]]}},
        {"lookback": {"-1": [1, 2, 3]}},
        {"topic": 7},
        {"topic": "no/topic"},
        {"fields": "QUJD"},
        {"fields": base64.b64encode(b"\xff" * 64).decode()},
        {"version": "3"},
        {"version": True},
        {"ciphertext": 3},
        {"ciphertext": ["1"]},
        {"parts": {"0": [[1, 9, 0, -1]]}},
        {"parts": {"0": [[1, -1, 0, 0]]}},
        {"parts": {"0": [[1, 9.0, 0, 0]]}},
        {"parts": {"0": [[1, 10**19, 0, 0]]}},
        {"parts": {"0": [[1, 9, 0, 0], [0, 9, 0, 0]]}},
        {"parts": {"-2": [[1, 9, 0, 0]]}},
        {"lookback": {"-1": ["1", 2]}},
        {"created": {"-1": 7}},
        {"created": ["created-1"]},
        {"choices": [["bookkeeper", "sealed", []]]},
        {"ciphertext": [1, 0, 0]},
    ],
)
def test_what_is_not_of_a_tokens_form_is_said(config: ReadConfig, changes: dict[str, Any]) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    token = to_token(take_snapshot(FakeClients(config, admin), TOPIC))
    value = content(token)

    assert from_token(admin, TOPIC, packed(value)) == from_token(admin, TOPIC, token)
    with pytest.raises(ConfigurationError):
        from_token(admin, TOPIC, packed(value | changes))
    for left_out in value:
        with pytest.raises(ConfigurationError, match="token"):
            from_token(admin, TOPIC, packed({k: value[k] for k in value if k != left_out}))
    with pytest.raises(ConfigurationError, match="token"):
        from_token(admin, TOPIC, packed([value]))


def test_a_token_with_one_byte_changed_is_read_or_refused(config: ReadConfig) -> None:
    admin = FakeAdmin(listing([sealed(1), opened(2)], "1:9"))
    token = to_token(take_snapshot(FakeClients(config, admin), TOPIC))
    value = content(token)
    fields = base64.b64decode(value["fields"])
    refused = 0
    for place in range(len(fields)):
        changed = fields[:place] + bytes([fields[place] ^ 0xFF]) + fields[place + 1 :]
        value["fields"] = base64.b64encode(changed).decode()
        try:
            snapshot = from_token(admin, TOPIC, packed(value))
            assert len(snapshot.fields.names) == len(snapshot.fields)
        except ConfigurationError as error:
            assert "token" in str(error)
            refused += 1
    assert refused


@pytest.mark.parametrize(
    ("created", "ledger", "believed"),
    [
        ("created-1", sealed(1), True),
        ("created-2", sealed(1), False),  # the cluster was wiped, and has the same URL
        ("created-1", sealed(1, closed_at=2000), False),  # restored, and the id given again
        ("created-1", sealed(1, bytes=999), False),
        ("created-1", sealed(1, closed_at=None), False),
        ("", sealed(1), False),
    ],
)
def test_what_was_learned_is_believed_of_the_very_ledger(
    config: ReadConfig, tmp_path: Path, created: str, ledger: LedgerInfo, believed: bool
) -> None:
    query = config.query.model_copy(update={"cache_dir": tmp_path / "cache"})
    config = config.model_copy(update={"query": query})

    def plan(part: PartitionLedgers, columns: list[str], *predicates: Predicate) -> Plan:
        clients = FakeClients(config, FakeAdmin(part))
        return make_plan(clients, take_snapshot(clients, TOPIC), columns, predicates)

    before = listing([sealed(1), opened(2)], "1:9")
    for split in plan(before, ["value"]).splits:
        assert split.identity is not None
        learned = LearnedTimes(-1, 1, split.first_entry, split.last_entry, 250, 10, 20)
        PublishTimeStore(config.query, config.pulsar, TOPIC).learn([(split.identity, learned)])
    now = listing([ledger, opened(2)], "1:9", created_at=created)
    assert plan(now, []).counted == (250 if believed else 0)
    assert bool(plan(now, ["value"], Predicate("__publishTime", ">", (20,))).splits) != believed


def test_a_token_of_ten_thousand_ledgers_stays_small(config: ReadConfig) -> None:
    part = listing(
        [*(sealed(3 * n, 1000 + n % 7) for n in range(1, 10_000)), opened(40_000)], "40000:1"
    )
    token = to_token(take_snapshot(FakeClients(config, FakeAdmin(part)), TOPIC))
    assert len(token) < 40_000
