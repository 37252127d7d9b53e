"""A storage is refused whose put-if-absent is none."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from offloader.commit.delta_committer import DeltaCommitter
from offloader.output import Replacement
from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Topic
from reader.storage import Storage, open_storage
from reader.storage.local import LocalStorage
from reader.storage.objects import Objects
from reader.storage.stores.obstore_client import ObstoreClient
from tests.support.additions import addition, open_table

TOPIC = Topic("public", "default", "orders")


class Careless(ObstoreClient):
    """Takes the condition, and writes all the same; says so or not."""

    def __init__(self, *, says: bool) -> None:
        super().__init__(MemoryStore())
        self.says = says
        self.puts = 0

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self.puts += 1
        there = self.info(path) is not None
        self.put(path, data)
        return self.says or not there


class Tried(LocalStorage):
    """A directory whose small objects go through another client."""

    client: ObstoreClient

    def _open_objects(self) -> Objects:
        return Objects(self.client)


def tried(path: Path, client: ObstoreClient) -> Storage:
    storage = Tried(StorageConfig(uri=str(path)))
    storage.client = client
    return storage


@pytest.mark.parametrize("says", [True, False])
def test_one_that_takes_both(tmp_path: Path, says: bool) -> None:
    storage = tried(tmp_path, Careless(says=says))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="takes a put-if-absent of what is there") as e:
            storage.require_exclusive_put()
        assert str(tmp_path) in str(e.value)
    assert storage.objects().below("") == []


def test_nothing_is_committed_to_it(tmp_path: Path) -> None:
    storage = tried(tmp_path, Careless(says=True))
    good = open_storage(StorageConfig(uri=str(tmp_path)))
    DeltaCommitter(good).commit(None, addition(good, TOPIC, [1]))
    before = open_table(good, TOPIC)
    with pytest.raises(ConfigurationError, match="put-if-absent"):
        DeltaCommitter(storage).commit(before, addition(storage, TOPIC, [2], before=1))
    with pytest.raises(ConfigurationError, match="put-if-absent"):
        DeltaCommitter(storage).replace(before, Replacement({}, (), changes=False, note={}))
    assert open_table(good, TOPIC).version == before.version


def test_a_good_one_is_tried_once(tmp_path: Path) -> None:
    class Counting(ObstoreClient):
        puts = 0

        def put_if_absent(self, path: str, data: bytes) -> bool:
            self.puts += 1
            assert path.startswith("~check-")
            return super().put_if_absent(path, data)

    client = Counting(MemoryStore())
    storage = tried(tmp_path, client)
    for _ in range(3):
        storage.require_exclusive_put()
    assert client.puts == 2
    assert storage.objects().below("") == []


def test_one_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    class Slow(ObstoreClient):
        there = False

        def put_if_absent(self, path: str, data: bytes) -> bool:
            if not self.there:
                raise OSError("no answer")
            return super().put_if_absent(path, data)

    client = Slow(MemoryStore())
    storage = tried(tmp_path, client)
    with pytest.raises(UnavailableError, match="no answer"):
        storage.require_exclusive_put()
    client.there = True
    storage.require_exclusive_put()


def test_an_answer_that_was_lost(tmp_path: Path) -> None:
    """A client's retry meets its own put, and takes it for another's."""

    class Lossy(ObstoreClient):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            super().put_if_absent(path, data)
            return False

    tried(tmp_path, Lossy(MemoryStore())).require_exclusive_put()


@pytest.mark.parametrize("good", [True, False])
def test_one_on_which_nothing_may_be_deleted(tmp_path: Path, good: bool) -> None:
    """What is left is two lines; what the probe has shown is said all the same."""

    class Kept(Careless):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            put = ObstoreClient.put_if_absent if good else Careless.put_if_absent
            return put(self, path, data)

        def delete(self, paths: Sequence[str]) -> None:
            raise OSError("403 Forbidden")

    storage = tried(tmp_path, Kept(says=True))
    if good:
        storage.require_exclusive_put()
    else:
        with pytest.raises(ConfigurationError, match="takes a put-if-absent of what is there"):
            storage.require_exclusive_put()


def test_storages_that_are_read_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot tell which of two writers was first"):
        open_storage(StorageConfig(uri="memory://lake")).require_exclusive_put()
