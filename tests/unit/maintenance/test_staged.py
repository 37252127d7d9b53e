"""What writes have staged and never sent: what is deleted, and what never is."""

import os
import time
from pathlib import Path

import pytest

from offloader.maintenance.staged import AbandonedFiles, StagingCleaner
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.sink import Manifest, NamedWrite, StagedFile
from reader.sink.staged_entries import Run, ShownSchema
from reader.storage import Storage, open_storage
from tests.unit.sink.worlds import World, batches

DAY = 86_400
ONE = "persistent://public/default/orders"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path)))


def stage(storage: Storage, name: str, days: float) -> Path:
    """A staged file of 100 bytes, written so long ago."""
    storage.objects().put(f"~sink/{name}", bytes(100))
    path = Path(storage.root, "~sink", name)
    age(path, days)
    return path


def age(path: Path, days: float) -> None:
    at = time.time() - days * DAY
    os.utime(path, (at, at))


def decided(
    storage: Storage, app: str, version: int, *paths: str, sent: bool = False, named: bool = True
) -> Path:
    staged = [
        StagedFile(f"~sink/{one}", b"", {ONE: [Run(0, 9, 1)]}, 1, {ONE: ShownSchema(None, b"")})
        for one in paths
    ]
    producer = f"pulsar-lake-{app.partition('/')[0]}-01234567"
    manifest = Manifest(producer, version, 0, named=named).sending(staged)
    data = (manifest.as_sent() if sent else manifest).to_bytes()
    storage.objects().put(f"~sink/{app}/{version:020d}.manifest", data)
    return Path(storage.root, "~sink", app, f"{version:020d}.manifest")


def test_nothing_is_staged(storage: Storage, tmp_path: Path) -> None:
    assert StagingCleaner(storage).clean() == AbandonedFiles()
    assert not (tmp_path / "~sink").exists()


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_failed_tasks_have_left(storage: Storage, dry_run: bool) -> None:
    gone = [stage(storage, "a/1.entries", 7.01), stage(storage, "b/2.entries", 100)]
    kept = [stage(storage, "a/3.entries", 6.99), stage(storage, "c/4.entries", 0)]
    found = StagingCleaner(storage).clean(dry_run=dry_run)
    assert found == AbandonedFiles(2, 200)
    assert str(found) == "2 staged files (200 B) that no write will send"
    assert [one.exists() for one in gone] == [dry_run] * 2
    assert all(one.exists() for one in kept)


def test_what_was_never_finished_on_hdfs(storage: Storage) -> None:
    """Under the names that it is written to there, whatever a damaged manifest beside it says."""
    names = (".1.entries.tmp.0a1b", f".{2:020d}.manifest.tmp.7")
    gone = [stage(storage, f"a/{name}", 7.01) for name in names]
    young = stage(storage, "a/.3.entries.tmp.1", 6.9)
    damaged = stage(storage, f"a/{1:020d}.manifest", 7.01)
    found = StagingCleaner(storage).clean()
    assert (found.files, len(found.damaged)) == (2, 1)
    assert not any(one.exists() for one in gone)
    assert young.exists()
    assert damaged.exists()


def test_what_is_decided_to_be_sent_stays_however_old(storage: Storage) -> None:
    """Also where the manifest is not the newest, and whatever its own age."""
    kept = [stage(storage, f"a/{number}.entries", 400) for number in range(2)]
    gone = [stage(storage, "a/failed.entries", 400), stage(storage, "b/9.entries", 400)]
    age(decided(storage, "a", 3, "a/0.entries"), 400)
    decided(storage, "a", 4, "a/1.entries")
    sent = decided(storage, "b", 0, "b/9.entries", sent=True)
    assert StagingCleaner(storage).clean().files == 2
    assert all(one.exists() for one in kept)
    assert not any(one.exists() for one in gone)
    assert sent.exists(), "it tells which sequence ids come next"


@pytest.mark.parametrize(("days", "gone"), [(6.9, False), (7.1, True)])
def test_a_batch_without_a_name_is_not_run_again_after_that(
    storage: Storage, days: float, gone: bool
) -> None:
    app = "a/public~2Fdefault~2Forders"
    file = stage(storage, f"{app}/1.entries", 7.1)
    manifest = decided(storage, app, 0, f"{app}/1.entries", named=False)
    age(manifest, days)
    assert StagingCleaner(storage).clean().files == gone
    assert file.exists() is manifest.exists() is not gone


def test_a_batch_without_a_name_or_a_file(storage: Storage) -> None:
    """What it was to send is in its manifest."""
    manifest, named = decided(storage, "a/t", 0, named=False), decided(storage, "b", 0)
    age(manifest, 7.1)
    age(named, 7.1)
    StagingCleaner(storage).clean()
    assert not manifest.exists()
    assert named.exists()


def test_a_manifest_that_is_damaged_costs_its_own_write_only(storage: Storage) -> None:
    kept, gone = stage(storage, "a/1.entries", 9), stage(storage, "b/1.entries", 9)
    decided(storage, "a", 0).write_bytes(b"\x05\x00\x00\x00{}")
    found = StagingCleaner(storage).clean()
    assert (found.files, len(found.damaged)) == (1, 1)
    assert "~sink/a/00000000000000000000.manifest" in found.damaged[0]
    assert kept.exists()
    assert not gone.exists()


def test_other_files_are_not_touched(storage: Storage) -> None:
    kept = [stage(storage, "a/notes.txt", 400), stage(storage, "a/x.entries.tmp", 400)]
    table = Path(storage.root, "public/default/orders/x.entries")
    table.parent.mkdir(parents=True)
    table.write_bytes(b"")
    age(table, 400)
    assert StagingCleaner(storage).clean().files == 0
    assert all(one.exists() for one in (*kept, table))


def test_it_goes_by_the_storages_clock(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = stage(storage, "a/1.entries", 1)
    ahead = time.time_ns() + 30 * DAY * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: ahead)
    assert StagingCleaner(storage).clean().files == 0
    assert kept.exists()


def test_once_a_day(storage: Storage) -> None:
    now = 5.0
    cleaner = StagingCleaner(storage, clock=lambda: now)
    for passed, files in ((0.0, 1), (DAY - 1.0, 0), (1.0, 1)):
        now += passed
        stage(storage, "a/1.entries", 9)
        assert cleaner.clean_if_due().files == files


def test_a_storage_that_fails(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage(storage, "a/1.entries", 9)

    def fails(directory: str) -> None:
        raise UnavailableError(f"no answer for {directory}")

    monkeypatch.setattr(storage.objects(), "below", fails)
    with pytest.raises(UnavailableError, match="no answer for ~sink"):
        StagingCleaner(storage).clean()


def test_nothing_is_decided_about_what_is_about_to_be_deleted(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        write = NamedWrite(world.clients, "late")
        staged = world.staged(batches(8, large=True), app="late")
        age(world.directory / staged.path, 6.1)
        with pytest.raises(UnavailableError, match="what a task staged is gone, or will be soon"):
            write.decide(0, [staged], encrypted=False)
        (world.directory / staged.path).unlink()
        with pytest.raises(UnavailableError, match="what a task staged is gone, or will be soon"):
            write.decide(0, [staged], encrypted=False)
        assert write.latest() is None


def test_refusals_go_with_their_manifest(storage: Storage) -> None:
    kept = decided(storage, "kept", 1)
    unnamed = decided(storage, "unnamed", 1, named=False)
    noted = [stage(storage, f"{app}/{1:020d}.refused", 8) for app in ("kept", "unnamed", "gone")]
    for one in (kept, unnamed):
        age(one, 8)
    assert StagingCleaner(storage).clean().files == 2
    assert [one.exists() for one in (kept, unnamed, *noted)] == [True, False, True, False, False]
