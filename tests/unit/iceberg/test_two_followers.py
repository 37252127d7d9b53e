"""Two followers of one table, and catalogs whose answers say nothing: each version lands once."""

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException

from offloader.config import IcebergConfig
from offloader.iceberg.catalogs import open_catalog
from offloader.iceberg.follower import IcebergFollower
from offloader.iceberg.unused_metadata import remove_unused
from offloader.model import IcebergLag
from reader.background import in_thread
from reader.errors import CommitConflictError, UnavailableError
from reader.model import Topic
from reader.storage import Storage
from tests.support.iceberg import follow_all, iceberg_table
from tests.support.steps import Step, at_step, once
from tests.support.tables import TOPIC
from tests.unit.iceberg.worlds import World


def files_of(world: World) -> Counter[str]:
    tasks = iceberg_table(world.storage, world.config).scan().plan_files()
    return Counter(one.file.file_path for one in tasks)


def test_one_that_was_overtaken_before_its_commit_begins_anew(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)
    other = world.another()
    with at_step("iceberg-written", once(lambda: other.follow(TOPIC))):
        result = world.another().follow(TOPIC)
    assert (result.before, result.version, result.added) == (2, 2, 0)
    world.check()
    assert world.versions() == [1, 2]
    assert set(files_of(world).values()) == {1}


def test_one_that_was_overtaken_by_a_newer_version(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)
    other = world.another()

    def overtake() -> None:
        world.fill(3)
        other.follow(TOPIC)

    with at_step("iceberg-written", once(overtake)):
        world.another().follow(TOPIC)
    world.check()
    assert world.versions() == [1, 3]


def test_both_make_the_table(world: World) -> None:
    world.fill(1)
    other = world.another()
    with at_step("iceberg-written", once(lambda: other.follow(TOPIC))):
        world.another().follow(TOPIC)
    world.check()
    assert world.versions() == [1]


def test_many_at_once(world: World) -> None:
    world.fill(1)
    world.follow()
    followers = [world.another() for _ in range(4)]
    for ledger in range(2, 5):
        world.fill(ledger)
        follow_all(followers)
        world.check()
    assert world.versions() == [1, 2, 3, 4]
    assert set(files_of(world).values()) == {1}


def test_both_expire_the_same_snapshots(world: World) -> None:
    for ledger in (1, 2, 3):
        world.fill(ledger)
        world.follow()
    world.ahead_ms = 30 * 3_600_000
    other = world.another()
    with at_step("iceberg-written", once(lambda: other.follow(TOPIC))):
        assert world.another().follow(TOPIC).expired == 0, "the other one has"
    assert world.versions() == [3]
    world.check()


def test_many_open_a_new_database_at_once(tmp_path: Path) -> None:
    """As ``status`` does: each finds it empty."""
    for number in range(3):
        directory = tmp_path / str(number)
        directory.mkdir()
        world = World(directory)
        world.fill(1)
        together = threading.Barrier(8)

        def ask(world: World = world, together: threading.Barrier = together) -> IcebergLag | None:
            one = world.another()
            together.wait(60)
            return one.lag(TOPIC)

        answers = [in_thread(ask) for _ in range(8)]
        assert [one.result(60) for one in answers] == [IcebergLag(None, None, 0.0)] * 8
        world.close()


def test_one_whose_clock_is_behind_commits_nothing(world: World) -> None:
    """Java's readers refuse a table whose snapshots are out of order by more than a minute."""
    world.fill(1)
    world.follow()
    world.fill(2)
    world.ahead_ms = -60_000
    with pytest.raises(UnavailableError, match=r"clock is \d+ s behind"):
        world.follow()
    assert world.versions() == [1]
    world.ahead_ms = -10_000
    world.follow()
    world.check()


def test_one_whose_clock_is_not_the_storages_commits_nothing(world: World) -> None:
    """A day ahead, it would expire all that readers were told they have, and keep others out."""
    for ledger in (1, 2):
        world.fill(ledger)
        world.follow()
    world.fill(3)
    day_ms = 24 * 3_600_000

    def storage_ms(storage: Storage, topic: Topic) -> int:
        return world.clock_ms()

    def skewed(by_ms: int) -> IcebergFollower:
        return world.another(clock_ms=lambda: world.clock_ms() + by_ms, storage_ms=storage_ms)

    for by_ms in (day_ms, 2 * day_ms, 6 * 60_000):
        with pytest.raises(UnavailableError, match="clocks of this host and of the storage"):
            skewed(by_ms).follow(TOPIC)
    assert world.versions() == [1, 2]
    assert skewed(4 * 60_000).follow(TOPIC).expired == 0
    world.check()
    assert world.versions() == [1, 2, 3]


def test_a_clock_that_jumps_is_noticed(world: World) -> None:
    """However lately the storage was asked: the ten minutes are this host's own."""
    world.fill(1)
    told = [world.clock_ms()]
    one = world.another(clock_ms=lambda: told[0], storage_ms=lambda *_: world.clock_ms())
    one.follow(TOPIC)
    world.fill(2)
    told[0] += 25 * 3_600_000
    with pytest.raises(UnavailableError, match="Iceberg does not follow"):
        one.follow(TOPIC)
    assert world.versions() == [1]


def test_the_storage_is_asked_for_the_time_now_and_then(world: World) -> None:
    asked = []

    def storage_ms(storage: Storage, topic: Topic) -> int:
        asked.append(topic)
        return world.clock_ms()

    now = [0.0]
    one = world.another(storage_ms=storage_ms, elapsed=lambda: now[0])
    for ledger in (1, 2, 3):
        world.fill(ledger)
        one.follow(TOPIC)
    assert len(asked) == 1
    now[0] += 11 * 60
    world.fill(4)
    one.follow(TOPIC)
    assert len(asked) == 2
    world.ahead_ms += 2 * 60_000  # set by somebody
    world.fill(5)
    one.follow(TOPIC)
    assert len(asked) == 3
    assert one.follow(TOPIC).idle
    world.check()


def test_a_clock_set_back_does_not_stop_the_daily_cleaning(world: World) -> None:
    """The clock is set back by 23 hours after the first cleaning."""
    now = [0.0]
    one = world.another(elapsed=lambda: now[0])
    cleaned: list[Topic] = []

    def counted(*given: Any, **named: Any) -> int:
        cleaned.append(TOPIC)
        return remove_unused(*given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("offloader.iceberg.follower.remove_unused", counted)
        world.fill(1)
        one.follow(TOPIC)
        assert len(cleaned) == 1
        world.ahead_ms -= 23 * 3_600_000
        now[0] += 23 * 3_600
        one.follow(TOPIC)
        assert len(cleaned) == 1
        now[0] += 3_601
        one.follow(TOPIC)
        assert len(cleaned) == 2


class _Ambiguous:
    """A catalog whose next commit lands, and is answered with ``error``, or with none at all."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    def __call__(self, storage: Storage, config: IcebergConfig) -> Catalog:
        catalog = open_catalog(storage, config)
        commit = catalog.commit_table

        def commit_table(*given: Any) -> Any:
            found = commit(*given)
            error, self.error = self.error, None
            if error is not None:
                raise error
            return found

        catalog.commit_table = commit_table  # type: ignore[method-assign, assignment]
        return catalog


@pytest.mark.parametrize(
    "error",
    [
        CommitFailedException("a proxy has sent it twice"),
        CommitStateUnknownException("502"),
        ConnectionError("reset"),
    ],
    ids=["refused", "unknown", "no-answer"],
)
def test_a_commit_that_landed_whatever_the_answer_was(world: World, error: Exception) -> None:
    """PyIceberg deletes the manifests of what it takes for refused; here nothing is deleted."""
    world.fill(1)
    world.follow()
    world.fill(2)
    lost = world.another(opened=_Ambiguous(error))
    if isinstance(error, CommitFailedException):
        lost.follow(TOPIC)  # which begins anew, and finds it
    else:
        with pytest.raises(UnavailableError):
            lost.follow(TOPIC)
    assert world.versions() == [1, 2]
    world.follow()
    world.check()
    assert world.versions() == [1, 2]


def test_who_is_always_too_late_gives_up(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)

    def refusing(storage: Storage, config: IcebergConfig) -> Catalog:
        catalog = open_catalog(storage, config)

        def commit_table(*given: Any) -> Any:
            raise CommitFailedException("too late")

        catalog.commit_table = commit_table  # type: ignore[method-assign, assignment]
        return catalog

    with pytest.raises(CommitConflictError, match="too late"):
        world.another(opened=refusing).follow(TOPIC)
    assert world.follow().added == 1
    world.check()


class Killed(BaseException):
    """As a kill: nothing that comes after it is done."""


@pytest.mark.parametrize("step", ["iceberg-written", "iceberg-committed"])
def test_one_that_was_killed_is_gone_on_from(world: World, step: Step) -> None:
    def die() -> None:
        raise Killed

    world.fill(1)
    with pytest.raises(Killed), at_step(step, once(die)):
        world.another().follow(TOPIC)
    world.fill(2)
    world.follow()
    world.check()
    world.fill(3)
    with pytest.raises(Killed), at_step(step, once(die)):
        world.another().follow(TOPIC)
    world.follow()
    world.check()
    assert set(files_of(world).values()) == {1}
