"""The newest version by the commits since the known one: what opening the table says."""

import json
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from offloader.commit.delta_committer import DeltaCommitter
from reader.config import StorageConfig
from reader.errors import CommitConflictError, CorruptError, NotFoundError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.storage import Storage, open_storage
from reader.table import FollowedTables, TopicTable
from reader.table.log import LoggedCommit, read_commit
from tests.support.additions import FIELDS, addition, open_table

TOPIC = Topic("public", "default", "orders")
PARTITIONS = (Partition(TOPIC, 0), Partition(TOPIC, 1))


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "store")))


MOST_FILES = {"no files": 0, "files": 1 << 10, "one file": 1}


@pytest.fixture(params=list(MOST_FILES.values()), ids=list(MOST_FILES))
def followed(storage: Storage, request: pytest.FixtureRequest) -> FollowedTables:
    return FollowedTables(storage, most_files=request.param)


def told(table: TopicTable | None) -> object:
    if table is None:
        return None
    numbers = [
        (
            table.watermark(one),
            table.numbers(one).lookback,
            table.numbers(one).expected,
            table.numbers(one).open_ledger,
        )
        for one in PARTITIONS
    ]
    about = (table.id, table.configuration, table.schema, table.protocol)
    return table.version, about, numbers, table.topic_numbers.data_loss is not None, table.paths()


def directory(storage: Storage) -> Path:
    return Path(storage.directory(TOPIC)[1])


def add(
    storage: Storage,
    ledger: int,
    *,
    partition: int = 0,
    on: TopicTable | None = None,
    fields: pa.Schema = FIELDS,
    newest: Callable[[Topic], TopicTable | None] | None = None,
) -> TopicTable:
    """Commit one ledger, with a lookback and an expected ledger of its own."""
    on = on or TopicTable.open(storage, TOPIC)
    before = on.watermark(PARTITIONS[partition]) if on else -1
    made = addition(storage, TOPIC, [ledger], before=before, partition=partition, fields=fields)
    [advance] = made.advances
    advance = replace(
        advance,
        lookback=Position(ledger, 1) if ledger % 2 else None,
        lookback_before=on.numbers(PARTITIONS[partition]).lookback if on else None,
        expected=ledger + 1 if ledger % 3 else None,
        open_ledger=None if ledger % 3 else ledger + 2,
    )
    committer = DeltaCommitter(storage, newest=newest)
    return committer.commit(on, replace(made, advances=(advance,)))


def grow(storage: Storage, version: int, ledger: int) -> None:
    """Commits of an offloader that the test's does not know, up to ``version``."""
    table = TopicTable.open(storage, TOPIC)
    while table is None or table.version < version:
        table = add(storage, ledger, partition=ledger % 2, on=table)
        ledger += 1


class World:
    """One table, what happens to it, and who follows it; ``ledger`` grows."""

    def __init__(self, storage: Storage, copies: Path, *followers: FollowedTables) -> None:
        self.storage = storage
        self.followers = followers
        self.copies = copies
        self.ledger = 10
        self.columns = 0

    def next(self) -> int:
        self.ledger += 10
        return self.ledger

    def ours(self) -> None:
        ledger = self.next()
        followed = self.followers[ledger // 10 % len(self.followers)]
        table = followed.newest(TOPIC)
        after = add(self.storage, ledger, on=table, newest=followed.newest)
        assert told(after) == told(TopicTable.open(self.storage, TOPIC))

    def others(self) -> None:
        table = TopicTable.open(self.storage, TOPIC)
        for _ in range(self.ledger % 3 + 1):
            table = add(self.storage, self.next(), partition=self.ledger % 2, on=table)

    def column(self) -> None:
        self.columns += 1
        more = pa.field(f"c{self.columns}", pa.int64())
        add(self.storage, self.next(), fields=pa.schema([*FIELDS, more]))

    def external(self) -> None:
        open_table(self.storage, TOPIC).handle.delete(f"id = {self.ledger % 10}")

    def copy(self) -> None:
        shutil.rmtree(self.copies, ignore_errors=True)
        shutil.copytree(directory(self.storage), self.copies)

    def restore(self) -> None:
        if self.copies.exists():
            shutil.rmtree(directory(self.storage))
            shutil.copytree(self.copies, directory(self.storage))

    def restore_and_grow(self) -> None:
        version = open_table(self.storage, TOPIC).version
        self.restore()
        grow(self.storage, version, self.next())
        self.ledger += 100

    def replaced(self) -> None:
        version = open_table(self.storage, TOPIC).version
        shutil.rmtree(directory(self.storage))
        grow(self.storage, version, self.next())
        self.ledger += 100

    def gone(self) -> None:
        shutil.rmtree(directory(self.storage))
        assert [one.newest(TOPIC) for one in self.followers] == [None] * len(self.followers)
        self.others()


@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, *(pytest.param(one, marks=pytest.mark.long) for one in range(4, 8))]
)
def test_it_is_what_opening_says(storage: Storage, tmp_path: Path, seed: int) -> None:
    followers = [FollowedTables(storage, most_files=most) for most in MOST_FILES.values()]
    world = World(storage, tmp_path / "copy", *followers)
    draw = random.Random(seed)
    world.ours()
    often = [world.ours] * 4 + [world.others] * 3
    steps = [world.column, world.external, world.copy, world.restore, world.restore_and_grow]
    for _ in range(16):
        draw.choice([*often, *steps, world.replaced, world.gone])()
        if times := draw.randrange(3):
            opened = told(TopicTable.open(storage, TOPIC))
            for followed in followers:
                assert [told(followed.newest(TOPIC)) for _ in range(times)] == [opened] * times


def test_what_is_known_is_not_opened_again(storage: Storage, followed: FollowedTables) -> None:
    for ledger in (1, 2, 3):
        add(storage, ledger, on=followed.newest(TOPIC), newest=followed.newest)
    (directory(storage) / "_delta_log" / f"{1:020d}.json").write_text("{")
    with pytest.raises(UnavailableError):
        TopicTable.open(storage, TOPIC)
    table = followed.newest(TOPIC)
    assert table is not None
    assert table.watermark(PARTITIONS[0]) == 3


def test_a_commit_that_is_none_is_an_error(storage: Storage, followed: FollowedTables) -> None:
    after = add(storage, 1)
    followed.newest(TOPIC)
    (directory(storage) / "_delta_log" / f"{after.version + 1:020d}.json").write_text("{")
    with pytest.raises(CorruptError, match="is not a commit"):
        followed.newest(TOPIC)


def test_nothing_is_committed_to_a_table_that_was_replaced(
    storage: Storage, tmp_path: Path
) -> None:
    followed = FollowedTables(storage)  # as who commits has them
    world = World(storage, tmp_path / "copy", followed)
    world.ours()
    world.copy()
    world.ours()
    table = followed.newest(TOPIC)
    world.restore_and_grow()
    before = told(TopicTable.open(storage, TOPIC))
    with pytest.raises(CommitConflictError, match="was replaced meanwhile"):
        add(storage, 1000, on=table, newest=followed.newest)
    assert told(TopicTable.open(storage, TOPIC)) == before == told(followed.newest(TOPIC))


def test_a_table_that_is_replaced_while_its_commits_are_read(
    storage: Storage, followed: FollowedTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ledger in (1, 2, 3):
        after = add(storage, ledger)
    for _ in range(2):  # opened, and read before it was opened
        followed.newest(TOPIC)

    def read(storage: Storage, topic: Topic, version: int) -> LoggedCommit | None:
        if version > after.version and not replaced:
            shutil.rmtree(directory(storage))
            grow(storage, version, 100)
            replaced.append(version)
        return read_commit(storage, topic, version)

    replaced: list[int] = []
    monkeypatch.setattr("reader.table.followed_tables.read_commit", read)
    found = followed.newest(TOPIC)
    assert replaced
    assert told(found) == told(TopicTable.open(storage, TOPIC))


def test_a_version_that_is_known_keeps_its_files(storage: Storage) -> None:
    followed = FollowedTables(storage, most_files=10)
    add(storage, 1)
    followed.newest(TOPIC)
    table = followed.newest(TOPIC)  # read before it was opened
    assert table is not None
    assert table.files().num_rows == 1
    assert followed.newest(TOPIC) is table
    add(storage, 2)
    grown = followed.newest(TOPIC)
    assert grown is not None
    assert (grown.version, grown.files().num_rows) == (table.version + 1, 2)
    assert followed.newest(TOPIC) is grown


def test_only_so_many_files_are_kept(storage: Storage) -> None:
    followed = FollowedTables(storage, most_files=1)
    for name in ("a", "b"):
        topic = Topic("public", "default", name)
        DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
        for _ in range(2):
            table = followed.newest(topic)
            assert table is not None
            table.files()
    a, b = (followed.newest(Topic("public", "default", name)) for name in ("a", "b"))
    assert a is not None
    assert b is not None
    assert (a.files_in_memory, b.files_in_memory) == (1, 0)


def test_a_kept_version_answers_after_its_log_was_cleaned(storage: Storage) -> None:
    followed = FollowedTables(storage, most_files=10)
    for ledger in range(1, 4):
        add(storage, ledger)
    followed.newest(TOPIC)
    table = followed.newest(TOPIC)
    assert table is not None
    table.files()
    DeltaTable(table.uri).create_checkpoint()
    log = directory(storage) / "_delta_log"
    for version in range(table.version):
        (log / f"{version:020d}.json").unlink()
    again = followed.newest(TOPIC)
    assert again is table
    assert again.watermark(Partition(TOPIC, 7)) == -1  # asked for now, and in no commit
    assert again.watermark(PARTITIONS[0]) == 3


def test_a_commit_without_a_time_is_no_version_of_a_time(storage: Storage) -> None:
    add(storage, 1)
    last = add(storage, 2)
    path = directory(storage) / "_delta_log" / f"{last.version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for one in lines:
        one.get("commitInfo", {}).pop("timestamp", None)
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    now = time.time_ns() // 1000
    found = TopicTable.open_at(storage, TOPIC, now)
    assert found is not None
    assert found.version == last.version - 1
    with pytest.raises(NotFoundError, match="no version that is as old"):
        TopicTable.open_at(storage, TOPIC, 1)
