"""The log is read before anything is concluded from an error of the store."""

import uuid
from collections.abc import Iterator

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.model import Clocks
from reader.config import StorageConfig
from reader.errors import CommitConflictError, UnavailableError
from reader.model import Partition, Topic
from reader.storage import Storage, open_storage
from testbed.faults import FaultyStore
from testbed.s3 import S3
from tests.support.additions import addition, ledgers_in, open_table

pytestmark = pytest.mark.proxied

TOPIC = Topic("public", "default", "orders")
PARTITION = Partition(TOPIC, 0)


@pytest.fixture
def store(s3: S3) -> Iterator[FaultyStore]:
    with FaultyStore(s3.endpoint) as faulty:
        yield faulty


@pytest.fixture
def good(s3: S3) -> Storage:
    """A table with ledger 1, on the store itself."""
    storage = open_storage(
        StorageConfig(uri=f"{s3.uri}/{uuid.uuid4()}", options=s3.storage_options)
    )
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1]))
    return storage


@pytest.fixture
def faulty(s3: S3, store: FaultyStore, good: Storage) -> Storage:
    """The same table through the store that fails."""
    return open_storage(StorageConfig(uri=good.root, options=s3.options_at(store.endpoint)))


def is_commit(method: str, path: str) -> bool:
    return method == "PUT" and "/_delta_log/" in path and path.split("?")[0].endswith(".json")


@pytest.mark.parametrize("kind", ["apply_then_500", "apply_then_drop", "refuse"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_put_that_seems_to_fail(
    store: FaultyStore, good: Storage, faulty: Storage, kind: str, times: int
) -> None:
    rule = getattr(store, kind)(is_commit, times)
    table = DeltaCommitter(faulty).commit(
        open_table(faulty, TOPIC), addition(faulty, TOPIC, [2], before=1)
    )
    assert rule.hits >= 1
    assert table.watermark(PARTITION) == 2
    assert table.version == open_table(good, TOPIC).version
    assert [one.ledger for one in open_table(good, TOPIC).ledgers()] == [1, 2]
    assert ledgers_in(good, TOPIC) == {(0, 1): 10, (0, 2): 10}


@pytest.mark.parametrize("kind", ["apply_then_500", "apply_then_drop"])
def test_ledgers_without_rows_are_known_again_too(
    store: FaultyStore, good: Storage, faulty: Storage, kind: str
) -> None:
    """A commit without files cannot be found by its files."""
    rule = getattr(store, kind)(is_commit, 1)
    empty = addition(faulty, TOPIC, [2], before=1, rows=0)
    table = DeltaCommitter(faulty).commit(open_table(faulty, TOPIC), empty)
    assert rule.hits == 1
    assert [one.ledger for one in open_table(good, TOPIC).ledgers()] == [1, 2]
    assert table.watermark(PARTITION) == 2


@pytest.mark.parametrize("kind", ["apply_then_500", "apply_then_drop"])
def test_the_first_commit(s3: S3, store: FaultyStore, kind: str) -> None:
    """Both the commit that makes the table and the one that fills it seem to fail."""
    uri = f"{s3.uri}/{uuid.uuid4()}"
    storage = open_storage(StorageConfig(uri=uri, options=s3.options_at(store.endpoint)))
    rule = getattr(store, kind)(is_commit, 2)
    DeltaCommitter(storage).commit(None, addition(storage, TOPIC, [1, 2]))
    assert rule.hits == 2
    good = open_storage(StorageConfig(uri=uri, options=s3.storage_options))
    assert ledgers_in(good, TOPIC) == {(0, 1): 10, (0, 2): 10}
    assert open_table(good, TOPIC).version == 1


def test_a_store_that_takes_no_commit(
    s3: S3, store: FaultyStore, good: Storage, faulty: Storage
) -> None:
    planned = open_table(faulty, TOPIC)
    pending = addition(faulty, TOPIC, [2], before=1)
    rule = store.refuse(is_commit, 10_000)
    with pytest.raises(UnavailableError, match="cannot commit") as caught:
        DeltaCommitter(faulty, clocks=Clocks(sleep=lambda seconds: None)).commit(planned, pending)
    assert rule.hits >= 3
    assert caught.value.hint
    keys = s3.keys(good.root.removeprefix(f"{s3.uri}/"))
    assert any(key.endswith(pending.files[0].path) for key in keys), "files are never deleted"
    store.heal()
    # The same plan is still right when the store is back.
    table = DeltaCommitter(faulty).commit(planned, pending)
    assert table.watermark(PARTITION) == 2
    assert ledgers_in(good, TOPIC) == {(0, 1): 10, (0, 2): 10}


def test_another_offloader_wins_while_our_put_is_refused(
    store: FaultyStore, good: Storage, faulty: Storage
) -> None:
    planned = open_table(faulty, TOPIC)
    ours = addition(faulty, TOPIC, [2, 3], before=1)
    DeltaCommitter(good).commit(open_table(good, TOPIC), addition(good, TOPIC, [2], before=1))
    store.apply_then_500(is_commit, 5)
    with pytest.raises(CommitConflictError):
        DeltaCommitter(faulty).commit(planned, ours)
    assert ledgers_in(good, TOPIC) == {(0, 1): 10, (0, 2): 10}
