"""What becomes of a ledger's objects: attempts that fail, deletion, and damage."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.errors import CorruptError, NotFoundError
from reader.model import OffloadContext, Segment, Split, Tier, Topic
from reader.model.reasons import Reason
from reader.plan.plan import plan_snapshot
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import Snapshot, take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.publish import publish
from testbed.tiered import TieredStorage
from tests.contract.against_java import offload_in_thread
from tests.contract.tiered.moved import move

SENT = [b"message %04d" % n for n in range(300)]


@pytest.fixture
def moved(
    cluster: Cluster, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> str:
    """A topic of one ledger of a bucket, without BookKeeper's copy."""
    tiered.use(namespace)
    topic = f"{namespace}/moved"
    published(cluster, admin, topic)
    move(lake_config, tiered, topic)
    return topic


def published(cluster: Cluster, admin: Admin, topic: str) -> None:
    publish(cluster.service_url, f"persistent://{topic}", SENT, batch=7)
    admin.seal(topic)


def snapshot_of(config: Config, topic: str, **options: Any) -> Snapshot:
    with Clients(config) as clients:
        return take_snapshot(clients, Topic.parse(topic), **options)


def only(snapshot: Snapshot) -> Segment:
    (segment,) = snapshot.hot
    return segment


def values(config: Config, snapshot: Snapshot, *, fall_back: bool = True) -> list[bytes]:
    """Read now, by a snapshot that may be old."""
    wanted = RowFormat(snapshot.fields, snapshot.schemas, pa.schema([("value", pa.binary())]))
    splits: tuple[Split, ...] = plan_snapshot(snapshot, columns=["value"]).splits
    with Clients(config) as clients:
        batches = read_rows(clients, SplitsRead(splits, fall_back=fall_back), wanted)
        return [value for batch in batches for value in batch.column("value").to_pylist()]


def flowing(config: Config, snapshot: Snapshot, *, fall_back: bool = True) -> Iterator[list[bytes]]:
    """The values batch by batch, as they are taken."""
    form = RowFormat(snapshot.fields, snapshot.schemas, pa.schema([("value", pa.binary())]))
    splits = plan_snapshot(snapshot, columns=["value"]).splits
    with Clients(config) as clients:
        for batch in read_rows(clients, SplitsRead(splits, fall_back=fall_back), form):
            yield batch.column("value").to_pylist()


def settings(config: Config, **changes: Any) -> Config:
    return config.model_copy(update=changes)


# -- attempts --------------------------------------------------------------------------------------


@pytest.fixture
def store(tiered: TieredStorage) -> Iterator[FaultyStore]:
    with FaultyStore(tiered.s3.endpoint) as opened:
        yield opened


def test_an_attempt_that_failed_and_the_one_that_follows(
    cluster: Cluster,
    admin: Admin,
    lake_config: Config,
    tiered: TieredStorage,
    namespace: str,
    store: FaultyStore,
) -> None:
    """What is only prepared is no offload; a retry has another uuid, and a query finds it."""
    tiered.use(namespace, endpoint=store.endpoint)
    topic = f"{namespace}/retried"
    full = f"persistent://{topic}"
    published(cluster, admin, topic)
    store.refuse(lambda method, path: method in ("PUT", "POST"), times=1000)
    with pytest.raises(RuntimeError, match=r"the offload of .* failed"):
        admin.offload(full)
    [info, _] = sorted(admin.internal_info(full)["ledgers"], key=lambda one: one["ledgerId"])
    assert info["isOffloaded"], "Pulsar calls it so, although it is only prepared"
    prepared = snapshot_of(lake_config, topic)
    assert only(prepared).tier is Tier.BOOKKEEPER
    assert values(lake_config, prepared) == SENT

    store.heal()
    move(lake_config, tiered, topic)
    done = snapshot_of(lake_config, topic)
    assert only(done).tier is Tier.TIERED
    assert only(done).reason.kind is Reason.PULSAR_TIERED
    assert isinstance(only(done).metadata, OffloadContext)
    assert only(done).metadata != OffloadContext(info["offloadedContextUuid"])
    assert values(lake_config, done, fall_back=False) == SENT
    assert values(lake_config, prepared, fall_back=False) == SENT, "planned for the bookies"


# -- deletion --------------------------------------------------------------------------------------


def trimmed(admin: Admin, tiered: TieredStorage, topic: str, ledger: int) -> None:
    """Wait until Pulsar has deleted a ledger, and its objects."""

    def is_gone() -> bool:
        admin.trim(topic)  # again, until the broker has heard of the retention
        return ledger not in admin.ledgers(topic)

    wait_until("the ledger to be gone", is_gone)
    wait_until("its objects to be gone", lambda: not tiered.objects(ledger))


@pytest.mark.long
def test_retention_deletes_the_objects_in_the_middle_of_a_query(
    moved: str, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> None:
    """What the table has by then is read there; else it is an error, never fewer rows."""
    full = f"persistent://{moved}"
    snapshot = snapshot_of(lake_config, moved)
    [ledger] = [one.ledger_id for one in snapshot.hot]
    assert len(tiered.objects(ledger)) == 2
    token = to_token(snapshot)
    offload_in_thread(lake_config, moved)
    admin.set_retention(namespace, 0, 0)
    trimmed(admin, tiered, full, ledger)
    assert values(lake_config, snapshot) == SENT
    with Clients(lake_config) as clients:
        again = from_token(clients.admin, Topic.parse(moved), token)
    assert values(lake_config, again) == SENT
    assert snapshot_of(lake_config, moved).hot == ()
    elsewhere = lake_config.storage.model_copy(update={"uri": f"{lake_config.storage.uri}/none"})
    with pytest.raises(NotFoundError, match="is not in the table"):
        values(settings(lake_config, storage=elsewhere), snapshot)


def test_retention_deletes_the_objects_while_rows_flow(
    cluster: Cluster, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> None:
    """What was given stays given; what is left of the ledger comes from the table."""
    tiered.use(namespace)
    topic = f"{namespace}/flowing"
    full = f"persistent://{topic}"
    sent = [b"%03d" % n + bytes(1_000_000) for n in range(96)]
    publish(cluster.service_url, full, sent)
    admin.seal(full)
    tiered.offload(full)
    snapshot = snapshot_of(lake_config, topic)
    assert only(snapshot).tier is Tier.TIERED
    reading, strict = (
        flowing(lake_config, snapshot),
        flowing(lake_config, snapshot, fall_back=False),
    )
    given = [next(reading)]
    next(strict)
    offload_in_thread(lake_config, topic)
    admin.set_retention(namespace, 0, 0)
    trimmed(admin, tiered, full, only(snapshot).ledger_id)
    with pytest.raises(NotFoundError, match=f"-ledger-{only(snapshot).ledger_id} is not there"):
        list(strict)  # not all of it was on its way
    given += reading
    assert [value for some in given for value in some] == sent


@pytest.mark.long
def test_the_subscription_keeps_what_is_not_in_the_table(
    moved: str, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> None:
    """Retention is the same for ledgers that Pulsar has offloaded."""
    full = f"persistent://{moved}"
    [ledger] = [one.ledger_id for one in snapshot_of(lake_config, moved).hot]
    admin.create_subscription(moved, "pulsar-lake")
    admin.set_retention(namespace, 0, 0)
    admin.trim(full)
    assert ledger in admin.ledgers(full)
    offload_in_thread(lake_config, moved)
    trimmed(admin, tiered, full, ledger)


def test_objects_that_somebody_else_has_deleted(
    moved: str, lake_config: Config, tiered: TieredStorage
) -> None:
    """Pulsar still lists the ledger: the table may have it, and the broker is at a loss."""
    snapshot = snapshot_of(lake_config, moved)
    [ledger] = [one.ledger_id for one in snapshot.hot]
    client = tiered.s3.client()
    offload_in_thread(settings(lake_config), moved)
    for key in tiered.objects(ledger):
        client.delete_object(Bucket=tiered.bucket, Key=key)
    assert values(lake_config, snapshot) == SENT
    with pytest.raises(NotFoundError, match=f"ledger {ledger} .*-index is not there"):
        values(lake_config, snapshot, fall_back=False)


# -- damage ----------------------------------------------------------------------------------------


def test_what_pulsar_itself_has_lost_is_an_error(
    cluster: Cluster, admin: Admin, lake_config: Config, tiered: TieredStorage, namespace: str
) -> None:
    """An entry that is larger than a block: the offload says SUCCESS, and does not have it."""
    tiered.use(namespace, keep=True)
    topic = f"{namespace}/lost"
    full = f"persistent://{topic}"
    large = bytes((5 << 20) - 64)  # with its metadata more than fits in a block of 5 MiB
    publish(cluster.service_url, full, [b"before", large, b"after"])
    admin.seal(topic)
    tiered.offload(full)
    snapshot = snapshot_of(lake_config, topic)
    assert only(snapshot).tier is Tier.TIERED
    with pytest.raises(CorruptError, match="the index"):
        values(lake_config, snapshot)
    with pytest.raises(CorruptError, match="the index"):
        offload_in_thread(lake_config, topic)
