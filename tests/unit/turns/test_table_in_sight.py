"""A query that does not see the table which the hold was moved for."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from offloader.config import Config
from offloader.service.status import topic_status
from reader.errors import ConfigurationError
from reader.model import Partition
from reader.pulsar import WATERMARK_KEY
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, TOPIC, SmallPartition, SmallPulsar

Where = Callable[[SmallPulsar, Path], Config]


def offloaded(tmp_path: Path) -> tuple[SmallPartition, SmallPulsar, Config]:
    """Ledgers 5 and 6 are in the table alone, 7 has what comes after them."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    config = pulsar.config(tmp_path / "lake")
    pulsar.create_hold(part.partition, HOLD)
    for number in (5, 6):
        part.write(f"{number}a")
        part.roll(number + 1)
        pulsar.offload(config)
        shutil.copytree(tmp_path / "lake", tmp_path / f"copy{number}")
    part.write("7a")
    assert part.ledgers == [7]
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "6"
    return part, pulsar, config


def emptied(pulsar: SmallPulsar, tmp_path: Path) -> Config:
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    (tmp_path / "lake").mkdir()
    return pulsar.config(tmp_path / "lake")


WRONG: dict[str, Where] = {
    "another prefix": lambda pulsar, tmp_path: pulsar.config(tmp_path / "other"),
    "not mounted": emptied,
    "no storage": lambda pulsar, tmp_path: pulsar.config(""),
    "a copy that is behind": lambda pulsar, tmp_path: pulsar.config(tmp_path / "copy5"),
}


@pytest.mark.parametrize("where", WRONG.values(), ids=WRONG)
def test_hot_rows_alone_are_an_error(tmp_path: Path, where: Where) -> None:
    _, pulsar, config = offloaded(tmp_path)
    assert sorted(pulsar.query(config)) == ["5a", "6a", "7a"]
    wrong = where(pulsar, tmp_path)
    for tiers in (None, "bookkeeper", "broker"):
        with pytest.raises(ConfigurationError) as found:
            pulsar.query(wrong, tiers)
        assert str(tmp_path / "lake") in str(found.value)
        assert (wrong.storage.uri or "no storage") in str(found.value)


def test_the_status_says_so(tmp_path: Path) -> None:
    _, pulsar, config = offloaded(tmp_path)
    for settings, count in ((config, 0), (pulsar.config(tmp_path / "other"), 1)):
        with pulsar.clients(settings) as clients:
            found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
        assert len(found.errors) == count
    assert "there is none at" in found.errors[0]


def test_the_status_names_a_hold_that_is_gone(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    pulsar.delete_hold(part.partition)
    with pulsar.clients(config) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
    assert any("no subscription pulsar-lake" in one for one in found.errors)


def test_a_table_that_is_given_up_begins_anew(tmp_path: Path) -> None:
    """As docs/operations.md says: without its properties the hold is moved for the new table."""
    part, pulsar, config = offloaded(tmp_path)
    emptied(pulsar, tmp_path)
    part.roll(8)
    with pytest.raises(ConfigurationError, match=r"there is no table at .* was moved for it"):
        pulsar.offload(config)
    part.ml.properties.clear()
    pulsar.offload(config)
    assert pulsar.query(config) == ["7a"]


@pytest.mark.parametrize("where", ["no storage", "not mounted"])
def test_who_allows_it_reads_what_there_is(tmp_path: Path, where: str) -> None:
    _, pulsar, _ = offloaded(tmp_path)
    storage = WRONG[where](pulsar, tmp_path).storage.uri
    allowed = pulsar.config(storage, query={"allow_data_loss": True})
    assert pulsar.query(allowed) == ["7a"]


def test_another_table_at_the_same_place(tmp_path: Path) -> None:
    """Another store has the same URI, and in it a table of a topic of the same name."""
    part, pulsar, config = offloaded(tmp_path)
    emptied(pulsar, tmp_path)
    there = SmallPartition(part.partition, first=1, created_at="2025-01-01T00:00:00.000Z")
    staging = SmallPulsar(there)
    staging.create_hold(part.partition, HOLD)
    there.write("staging")
    there.roll(2)
    staging.offload(config)
    with pytest.raises(ConfigurationError, match=r"but the one at .* has the id"):
        pulsar.query(config)


def test_a_copy_that_is_complete_is_as_good(tmp_path: Path) -> None:
    _, pulsar, _ = offloaded(tmp_path)
    assert sorted(pulsar.query(pulsar.config(tmp_path / "copy6"))) == ["5a", "6a", "7a"]


def test_a_commit_and_its_move_while_the_query_is_planned(tmp_path: Path) -> None:
    """Without a grace the hold names the commit at once."""
    part, pulsar, config = offloaded(tmp_path)
    part.roll(8)
    pulsar.offload(config)
    part.reload(9)  # the open ledger is gone, so the hold is asked
    part.write("9a")
    part.roll(10)
    pulsar.rest.in_between = lambda: pulsar.offload(config)
    assert sorted(pulsar.query(config)) == ["5a", "6a", "7a", "9a"]
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "9"


def test_a_hold_that_is_made_again_names_its_table_at_once(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    with pulsar.offloader(config) as running:
        running.observe(TOPIC)
        pulsar.delete_hold(part.partition)
        running.observe(TOPIC)
    for _ in range(2):  # by who finds it missing, and by who has just started
        assert part.ml.properties[HOLD][WATERMARK_KEY] == "6"
        wrong = pulsar.config(tmp_path / "other")
        with pytest.raises(ConfigurationError):
            pulsar.query(wrong)
        pulsar.delete_hold(part.partition)
        pulsar.offload(config)
    part.roll(8)
    with pytest.raises(ConfigurationError):
        pulsar.offload(pulsar.config(tmp_path / "other"))
    pulsar.offload(config)
    assert sorted(pulsar.query(config)) == ["5a", "6a", "7a"]


def test_nobody_is_asked_about_an_ordinary_topic(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.ml.cursors["reader"] = part.ml.cursors[HOLD]
    pulsar.rest.asked.clear()
    pulsar.query(config)
    assert "stats" not in pulsar.rest.asked
    # Once its open ledger is gone, only the hold can tell.
    part.roll(8)
    pulsar.offload(config)
    del part.ml.cursors["reader"]
    part.reload(9)
    assert part.ledgers == [9]
    pulsar.rest.asked.clear()
    assert sorted(pulsar.query(config)) == ["5a", "6a", "7a"]
    assert pulsar.rest.asked.count("stats") == 1


def test_a_topic_that_was_never_offloaded_needs_no_table(tmp_path: Path) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    part.write("5a")
    assert pulsar.query(pulsar.config("")) == ["5a"]
    assert "stats" not in pulsar.rest.asked  # nobody holds it
    pulsar.create_hold(part.partition, "somebody")
    pulsar.create_hold(part.partition, HOLD)  # and nothing is offloaded yet
    assert pulsar.query(pulsar.config("")) == ["5a"]
    assert pulsar.query(pulsar.config(tmp_path)) == ["5a"]


def test_a_second_installation_has_a_table_of_its_own(tmp_path: Path) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    first = pulsar.config(tmp_path / "first")
    second = pulsar.config(tmp_path / "second", offload={"subscription": "second", "grace": "1d"})
    for config in (first, second):
        pulsar.create_hold(part.partition, config.offload.subscription)
    part.write("5a")
    part.roll(6)
    for config in (first, second):
        pulsar.offload(config)
    assert list(part.ml.properties) == [HOLD]  # the second one's is not moved yet
    part.write("6a")
    for config in (first, second):
        assert sorted(pulsar.query(config)) == ["5a", "6a"]
    part.ml.cursors.pop("second")
    part.trim()
    assert sorted(pulsar.query(second)) == ["5a", "6a"]


def test_a_topic_made_again_goes_on_in_its_table(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    again = SmallPartition(part.partition, first=20, created_at="2026-02-02T00:00:00.000Z")
    pulsar.add(again)
    pulsar.create_hold(part.partition, HOLD)
    again.write("20a")
    assert sorted(pulsar.query(config)) == ["20a", "5a", "6a"]


def test_the_watermark_is_noted_before_each_move(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.ml.properties[HOLD]["mine"] = "kept"
    part.roll(8)
    pulsar.offload(config)
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "7"
    assert part.ml.properties[HOLD]["mine"] == "kept"
    # An older offloader's hold has none yet.
    del part.ml.properties[HOLD][WATERMARK_KEY]
    part.write("8a")
    part.roll(9)
    pulsar.offload(config)
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "8"
