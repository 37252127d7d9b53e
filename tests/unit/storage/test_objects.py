"""Small objects, of a directory and of S3: who was first, and answers that were lost."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reader.clients import Clients
from reader.config import ReadConfig, StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.pulsar import NO_LOG, AdminClient
from reader.sink import NamedWrite, StagedFile
from reader.sink.staged_entries import Run, ShownSchema
from reader.storage import Storage, open_storage
from reader.storage.objects import Objects
from testbed.faults import FaultyStore
from testbed.s3 import S3

KINDS = ["directory", "s3"]


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    """A server whose lists have pages of ten names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")
        with S3() as started:
            yield started


@pytest.fixture
def faulty(server: S3) -> Iterator[FaultyStore]:
    with FaultyStore(server.endpoint) as store:
        yield store


def s3_config(server: S3, prefix: str, endpoint: str | None = None) -> StorageConfig:
    options = server.options_at(endpoint or server.endpoint)
    return StorageConfig(uri=f"{server.uri}/{prefix}", options=options)


def names(objects: Objects, directory: str) -> list[str]:
    return [one.path for one in objects.below(directory)]


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, server: S3, tmp_path: Path) -> Storage:
    if request.param == "s3":
        return open_storage(s3_config(server, tmp_path.name))
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


def test_one_object(storage: Storage) -> None:
    objects = storage.objects()
    assert objects is storage.objects()
    assert objects.get("~sink/a/1") is None
    assert objects.put_if_absent("~sink/a/1", b"first")
    assert not objects.put_if_absent("~sink/a/1", b"second")
    assert objects.get("~sink/a/1") == b"first"
    objects.put("~sink/a/1", b"third")
    assert objects.get("~sink/a/1") == b"third"
    objects.put("~sink/a/empty", b"")
    assert objects.get("~sink/a/empty") == b""
    objects.delete(["~sink/a/1", "~sink/a/none"])
    objects.delete([])
    assert objects.get("~sink/a/1") is None
    assert objects.put_if_absent("~sink/a/1", b"again")


def test_names_are_those_of_a_directory(storage: Storage) -> None:
    objects = storage.objects()
    assert names(objects, "~sink/a") == []
    for name in ("a/1", "a/b/2", "ab/3", "a~2Fb/4", "~C3~A9/5"):
        objects.put(f"~sink/{name}", b"x")
    assert sorted(names(objects, "~sink/a")) == ["~sink/a/1", "~sink/a/b/2"]
    assert names(objects, "~sink/a~2Fb") == ["~sink/a~2Fb/4"]
    assert names(objects, "~sink/~C3~A9") == ["~sink/~C3~A9/5"]
    assert len(names(objects, "~sink")) == 5


def test_more_names_than_a_page_has(storage: Storage) -> None:
    objects = storage.objects()
    for number in range(35):
        objects.put(f"d/{number}", b"")
    assert len(names(objects, "d")) == 35


def test_the_same_places_as_the_filesystem_has(storage: Storage) -> None:
    """Staged files are written through the one, and deleted through the other."""
    filesystem, root = storage.filesystem()
    filesystem.create_dir(f"{root}/~sink/~C3~A9", recursive=True)
    with filesystem.open_output_stream(f"{root}/~sink/~C3~A9/x.entries") as stream:
        stream.write(b"staged")
    objects = storage.objects()
    assert objects.get("~sink/~C3~A9/x.entries") == b"staged"
    assert "~sink/~C3~A9/x.entries" in names(objects, "~sink/~C3~A9")
    objects.delete(["~sink/~C3~A9/x.entries"])
    with pytest.raises(FileNotFoundError):
        filesystem.open_input_file(f"{root}/~sink/~C3~A9/x.entries")


def test_one_of_many_is_first(storage: Storage) -> None:
    objects = storage.objects()
    first: list[bytes] = []
    ready = threading.Barrier(8)

    def put(number: int) -> None:
        ready.wait()
        if objects.put_if_absent("one", b"%d" % number):
            first.append(b"%d" % number)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(first) == 1
    assert objects.get("one") == first[0]


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    objects = open_storage(StorageConfig(uri=str(tmp_path))).objects()
    with pytest.raises(UnavailableError, match="file/x"):
        objects.put("file/x", b"")
    with pytest.raises(UnavailableError, match="file/x"):
        objects.put_if_absent("file/x", b"")


def test_a_storage_that_cannot_tell_who_was_first() -> None:
    with pytest.raises(ConfigurationError, match="cannot tell which of two writers was first"):
        open_storage(StorageConfig(uri="memory://lake")).objects()


# -- S3 that fails ---------------------------------------------------------------------------------


def is_manifest(method: str, path: str) -> bool:
    return method == "PUT" and ".manifest" in path


def test_a_store_that_refuses_for_a_while(server: S3, faulty: FaultyStore, tmp_path: Path) -> None:
    objects = open_storage(s3_config(server, tmp_path.name, faulty.endpoint)).objects()
    faulty.refuse(lambda method, path: True, times=2)
    assert objects.put_if_absent("a/1", b"x")
    assert objects.get("a/1") == b"x"


def test_a_store_that_is_gone(server: S3, tmp_path: Path) -> None:
    with FaultyStore(server.endpoint) as gone:
        pass
    objects = open_storage(s3_config(server, tmp_path.name, gone.endpoint)).objects()
    for act in (lambda: objects.put_if_absent("a/1", b"x"), lambda: objects.below("a")):
        with pytest.raises(UnavailableError) as caught:
            act()
        assert "Debug" not in str(caught.value)


@pytest.mark.parametrize("fault", ["apply_then_500", "apply_then_drop"])
@pytest.mark.parametrize("times", [1, 100])
def test_a_decision_whose_answer_is_lost_is_known_as_ones_own(
    server: S3,
    faulty: FaultyStore,
    tmp_path: Path,
    fault: str,
    times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The PUT is applied; a retry meets the manifest that this writer has written itself."""
    monkeypatch.setattr(AdminClient, "log_end", lambda self, partition: NO_LOG)
    storage = s3_config(server, tmp_path.name, faulty.endpoint)
    settings = ReadConfig.load({"storage": storage.model_dump()})
    topic = "persistent://t/n/x"
    staged = [StagedFile("", b"x", {topic: [Run(0, 1, 1)]}, 1, {topic: ShownSchema(None, b"")})]
    with Clients(settings) as clients:
        rule = getattr(faulty, fault)(is_manifest, times)
        decided = NamedWrite(clients, "app").decide(0, staged, encrypted=False)
        assert rule.hits >= 1
        assert decided is not None
        assert decided[1]
        faulty.heal()
        again = NamedWrite(clients, "app").decide(0, staged, encrypted=False)
        assert again == (decided[0], False)


def test_a_decision_that_is_not_applied(server: S3, faulty: FaultyStore, tmp_path: Path) -> None:
    storage = s3_config(server, tmp_path.name, faulty.endpoint)
    settings = ReadConfig.load({"storage": storage.model_dump()})
    with Clients(settings) as clients:
        faulty.refuse(is_manifest, times=100)
        staged = [StagedFile("", b"", {}, 1, {})]
        with pytest.raises(UnavailableError):
            NamedWrite(clients, "app").decide(0, staged, encrypted=False)
        faulty.heal()
        decided = NamedWrite(clients, "app").decide(0, staged, encrypted=False)
        assert decided is not None
        assert decided[1]


def test_the_storages_clock(tmp_path: Path) -> None:
    """Nothing is left of reading it, and the directory need not exist."""
    objects = open_storage(StorageConfig(uri=str(tmp_path / "lake"))).objects()
    before = time.time_ns() // 1_000_000
    told = objects.clock_ms("a/b")
    assert before - 1_000 <= told <= time.time_ns() // 1_000_000 + 1_000
    assert objects.below("") == []
