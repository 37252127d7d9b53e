"""An offloader on an old copy of its table: what lies between is never passed by silently."""

import shutil
from pathlib import Path

import pytest

from offloader.config import Config
from reader.errors import ConfigurationError
from reader.model import Partition
from reader.pulsar import LOST_KEY, PARTITION_KEY, TABLE_ID_KEY, TABLE_KEY, WATERMARK_KEY
from tests.unit.turns.pulsar_world import PLAIN, World, chunk
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar
from tests.unit.turns.test_gaps import offloaded, say_what_is_lost


def restored(
    tmp_path: Path, *, reloaded: bool, keeper: bool = False
) -> tuple[SmallPartition, SmallPulsar, Config]:
    """Ledger 6 was in the table, which is back at 5; 7 or 8 is sealed, and nobody offloaded it.

    ``reloaded``: the broker has counted anew since 6 was deleted. ``keeper``: it is not deleted,
    as another subscription needs it.
    """
    part, pulsar, config = offloaded(tmp_path / "lake")
    if keeper:
        part.ml.cursors["keeper"] = (6, 0)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    part.write("6a")
    part.roll(7)
    pulsar.offload(config)
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "copy", tmp_path / "lake")
    last = 8 if reloaded else 7
    if reloaded:
        part.reload(last)
    part.write(f"{last}a")
    part.roll(last + 1)
    assert (6 in part.ledgers) == keeper
    return part, pulsar, config


@pytest.mark.parametrize("reloaded", [True, False])
def test_nothing_is_done_with_it(tmp_path: Path, reloaded: bool) -> None:
    part, pulsar, config = restored(tmp_path, reloaded=reloaded)
    said: list[str] = []
    before = part.ledgers, dict(part.ml.properties[HOLD]), dict(part.ml.cursors)
    with pulsar.offloader(config, said.append) as offloader:
        for act in (offloader.observe, offloader.turn):
            with pytest.raises(ConfigurationError, match=r"up to 6; .* up to 5"):
                act(TOPIC)
    assert (part.ledgers, part.ml.properties[HOLD], part.ml.cursors) == before
    assert said == []
    with pytest.raises(ConfigurationError, match=r"up to 6; .* up to 5"):
        pulsar.query(config)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("reloaded", [True, False])
def test_what_is_given_up_is_recorded(tmp_path: Path, reloaded: bool, alone: bool) -> None:
    """``alone``: pulsar-admin sets all properties of a subscription, not one."""
    part, pulsar, config = restored(tmp_path, reloaded=reloaded)
    noted = part.ml.properties[HOLD]
    part.ml.properties[HOLD] = {**({} if alone else noted), LOST_KEY: "6"}
    with pytest.raises(ConfigurationError, match=r"up to 6; .* up to 5"):
        pulsar.query(config)
    part.reload(10)
    part.write("10a")  # in a ledger that is open
    pulsar.offload(config)
    last = 8 if reloaded else 7
    assert part.ml.properties[HOLD] == {**noted, WATERMARK_KEY: str(last)}
    part.roll(11)
    pulsar.offload(config)
    with pytest.raises(ConfigurationError, match=f"of ledger 6, .* before ledger {last}, were del"):
        pulsar.query(config)
    allowed = pulsar.config(tmp_path / "lake", query={"allow_data_loss": True})
    assert sorted(pulsar.query(allowed)) == sorted(["5a", "5b", f"{last}a", "10a"])


def test_it_is_recorded_once_however_late_the_hold_moves(tmp_path: Path) -> None:
    part, pulsar, _ = restored(tmp_path, reloaded=True)
    part.ml.properties[HOLD][LOST_KEY] = "6"
    late = pulsar.config(tmp_path / "lake", offload={"grace": "1h"})
    for count in (1, 0):
        assert len(say_what_is_lost(pulsar, late)) == count
        assert part.ml.properties[HOLD][WATERMARK_KEY] == "8"
        assert LOST_KEY not in part.ml.properties[HOLD]


def test_less_is_given_up_than_is_missing(tmp_path: Path) -> None:
    part, pulsar, config = restored(tmp_path, reloaded=True)
    part.ml.properties[HOLD][LOST_KEY] = "5"
    with pytest.raises(ConfigurationError):
        pulsar.offload(config)


def test_more_is_given_up_than_is_missing(tmp_path: Path) -> None:
    """Another partition's number: later unloads of an idle topic are no losses."""
    part, pulsar, config = restored(tmp_path, reloaded=True)
    part.ml.properties[HOLD] = {LOST_KEY: "66"}
    assert len(say_what_is_lost(pulsar, config)) == 1
    for last in (12, 20):
        part.reload(last)
        assert not say_what_is_lost(pulsar, config)
    part.write("20a")
    part.roll(21)
    assert not say_what_is_lost(pulsar, config)


def test_a_partition_without_a_commit(tmp_path: Path) -> None:
    """Nobody knows which ledgers of it the newer table had."""
    first = SmallPartition(Partition(TOPIC, 0), first=5)
    second = SmallPartition(Partition(TOPIC, 1), first=6)
    pulsar = SmallPulsar(first, second)
    config = pulsar.config(tmp_path / "lake")
    pulsar.offload(config)
    first.write("5a")
    first.roll(20)
    pulsar.offload(config)
    shutil.copytree(tmp_path / "lake", tmp_path / "copy")
    second.write("6a")
    second.roll(7)
    second.write("7a")
    pulsar.offload(config)
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "copy", tmp_path / "lake")
    second.roll(8)
    with pytest.raises(ConfigurationError, match=r"up to 6; .* up to -1"):
        pulsar.query(config)
    second.ml.properties[HOLD][LOST_KEY] = "6"
    pulsar.offload(config)
    with pytest.raises(ConfigurationError, match="the messages before ledger 7 were deleted"):
        pulsar.query(config)


def test_a_message_that_it_waits_for_began_in_a_ledger_that_is_gone(world: World) -> None:
    """The ledger that was to follow is there; without the hold the rest would be a stray row."""
    world.seal(PLAIN, chunk("A", 0, 2))
    world.offloader().turn(world.topic, now=True)
    tables = Path(world.table().uri).parents[2]
    copy = tables.parent / "copy"
    shutil.copytree(tables, copy)
    world.seal(chunk("A", 1, 2))
    newer = world.offloader()
    newer.turn(world.topic, now=True)
    newer.turn(world.topic)
    world.delete(10)  # 11 is kept, by another subscription or by retention
    shutil.rmtree(tables)
    shutil.copytree(copy, tables)
    with pytest.raises(ConfigurationError, match=r"up to 11; .* up to 10"):
        world.hot()
    with pytest.raises(ConfigurationError, match=r"up to 11; .* up to 10"):
        world.offloader().turn(world.topic, now=True)


def test_what_pulsar_still_has_is_offloaded_again(tmp_path: Path) -> None:
    part, pulsar, config = restored(tmp_path, reloaded=False, keeper=True)
    assert sorted(pulsar.query(config)) == ["5a", "5b", "6a", "7a"]
    pulsar.offload(config)
    assert sorted(pulsar.query(config)) == ["5a", "5b", "6a", "7a"]
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "7"


def test_another_offloader_commits_and_moves_in_between(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path / "lake")
    part.reload(7)  # the ledger that was to follow is gone: the hold is asked
    part.write("7a")
    part.roll(8)
    pulsar.rest.in_between = lambda: pulsar.offload(config)
    pulsar.offload(config)
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "7"
    assert sorted(pulsar.query(config)) == ["5a", "5b", "7a"]


def test_an_older_offloaders_hold_says_nothing_of_it(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path / "lake")
    part.ml.properties[HOLD] = {TABLE_KEY: part.ml.properties[HOLD][TABLE_KEY]}
    part.reload(7)
    part.write("7a")
    part.roll(8)
    pulsar.offload(config)
    assert set(part.ml.properties[HOLD]) == {TABLE_KEY, TABLE_ID_KEY, WATERMARK_KEY, PARTITION_KEY}
    assert sorted(pulsar.query(config)) == ["5a", "5b", "7a"]
