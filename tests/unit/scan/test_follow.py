"""Following a topic whose table is kept up meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from offloader.config import Config
from reader.clients import Clients
from reader.errors import NotFoundError
from reader.model import Partition
from reader.plan import take_snapshot
from reader.scan.follow import ends_of, new_rows
from reader.scan.row_scan import plan_scan
from reader.storage import open_storage
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar


class Followed:
    """Ledgers 5 to 7 come after the first look, each offloaded to a file of its own.

    ``before_reading``: what happens, once each, between a snapshot and its reading.
    """

    def __init__(self, directory: Path, patch: pytest.MonkeyPatch) -> None:
        self.part = SmallPartition(Partition(TOPIC, -1), first=5)
        self.pulsar = SmallPulsar(self.part)
        self.pulsar.create_hold(self.part.partition, HOLD)
        nowhere = {"service_url": "pulsar://127.0.0.1:1", "timeout": "1s"}
        self.config: Config = self.pulsar.config(directory / "lake", pulsar=nowhere)
        self.before_reading: list[Callable[[], object]] = []
        self.read: list[int | None] = []
        self.write_only = False

        def planned(clients: Clients, snapshot: Any, *arguments: Any) -> Any:
            found = plan_scan(clients, snapshot, *arguments)
            self.read.append(snapshot.version)
            if self.before_reading:
                self.before_reading.pop(0)()
            return found

        patch.setattr("reader.scan.follow.plan_scan", planned)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(open_storage(self.config.storage).table_uri(TOPIC))

    def send(self) -> None:
        for number in (5, 6, 7):
            self.part.write(f"{number}a", f"{number}b")
            self.part.roll(number + 1)
            if not self.write_only:
                self.pulsar.offload(self.config)

    def merge(self) -> None:
        assert self.table.optimize.compact()["numFilesRemoved"] == 3
        self.vacuum()

    def vacuum(self) -> None:
        assert self.table.vacuum(0, dry_run=False, enforce_retention_duration=False)

    def values(self, count: int) -> Iterator[bytes]:
        def no_outage(error: Exception) -> None:
            raise AssertionError from error

        with self.pulsar.clients(self.config) as clients:
            after = ends_of(take_snapshot(clients, TOPIC))
            self.send()
            rows = new_rows(
                clients, TOPIC, after, ["value"], failed=no_outage, sleep=lambda seconds: None
            )
            with closing(rows):
                while count:
                    found = next(rows)["value"].to_pylist()
                    count -= len(found)
                    yield from found


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Followed:
    return Followed(tmp_path, monkeypatch)


def test_files_that_were_merged_and_vacuumed_since_the_snapshot(followed: Followed) -> None:
    followed.before_reading.append(followed.merge)
    values = followed.values(7)
    found = [next(values) for _ in range(6)]
    assert found == [b"5a", b"5b", b"6a", b"6b", b"7a", b"7b"]
    first, second = followed.read
    assert first is not None
    assert second is not None
    assert second > first
    followed.part.write("8a")
    assert next(values) == b"8a", "none twice"


def test_a_ledger_that_grows_gives_each_message_once(followed: Followed) -> None:
    values = followed.values(9)
    assert len([next(values) for _ in range(6)]) == 6
    for text in ("8a", "8b", "8c"):
        followed.part.write(text)
        assert next(values) == text.encode()


def test_a_file_that_is_lost_ends_it(followed: Followed) -> None:
    def lose() -> None:
        (path,) = followed.table.file_uris()[:1]
        Path(path.removeprefix("file://")).unlink()

    followed.before_reading.append(lose)
    with pytest.raises(NotFoundError, match="is gone"):
        list(followed.values(6))
    assert len(followed.read) == 1


def test_a_ledger_that_is_lost_ends_it(followed: Followed) -> None:
    """A new snapshot would not have it: its messages would be missed."""

    def lose() -> None:
        followed.part.ml.cursors.clear()
        followed.part.roll(9)

    followed.write_only = True
    followed.before_reading.append(lose)
    with pytest.raises(NotFoundError):
        list(followed.values(2))
    assert len(followed.read) == 1


def test_a_topic_that_is_deleted_ends_it(followed: Followed) -> None:
    def delete() -> None:
        followed.merge()
        followed.pulsar.state.delete_topic(TOPIC.full_name)

    followed.before_reading.append(delete)
    with pytest.raises(NotFoundError, match="does not exist"):
        list(followed.values(6))
    assert len(followed.read) == 1
