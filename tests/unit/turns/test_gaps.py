"""Messages that Pulsar deletes while no offloader looks, found by the next one and by queries."""

from pathlib import Path

import pytest

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.errors import ConfigurationError
from reader.model import Partition
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar

LATER = "2100-01-01T00:00:00.000Z"


def offloaded(tmp_path: Path) -> tuple[SmallPartition, SmallPulsar, Config]:
    """Ledger 5 is in the table; ledger 6 is open, and was empty at the commit."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    config = pulsar.config(tmp_path)
    pulsar.create_hold(part.partition, HOLD)
    part.write("5a", "5b")
    part.roll(6)
    pulsar.offload(config)
    assert part.ledgers == [6]
    return part, pulsar, config


def say_what_is_lost(pulsar: SmallPulsar, config: Config) -> set[str]:
    """What a new offloader says, of messages that were deleted, and what every query says then."""
    said: list[str] = []
    pulsar.offload(config, said.append)
    return {one.partition(": ")[2] for one in said if "were deleted" in one}


def test_the_hold_is_deleted_and_the_empty_open_ledger_filled_and_trimmed(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    pulsar.delete_hold(part.partition)
    part.write("6a")
    part.roll(7)
    assert part.ledgers == [7]
    part.write("7a")
    lost = r"messages of ledger 6, and of any other before ledger 7, were deleted"
    with pytest.raises(ConfigurationError, match=lost):
        pulsar.query(config)
    pulsar.create_hold(part.partition, HOLD)
    part.roll(8)
    [line] = say_what_is_lost(pulsar, config)
    assert line.startswith("the messages of ledger 6,")
    with pytest.raises(ConfigurationError, match=lost):  # recorded by the commit of 7
        pulsar.query(config)
    allowed = pulsar.config(tmp_path, query={"allow_data_loss": True})
    assert sorted(pulsar.query(allowed)) == ["5a", "5b", "7a"]


def test_a_ttl_moves_the_hold_over_it(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.write("6a", "6b")
    part.roll(7)
    part.ml.cursors[HOLD] = (6, 2)
    part.trim()
    assert part.ledgers == [7]
    assert len(say_what_is_lost(pulsar, config)) == 1


def test_it_is_lost_after_the_topic_was_loaded_anew(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.reload(7)
    pulsar.delete_hold(part.partition)
    part.write("7a")
    part.roll(8)
    assert part.ledgers == [8]
    assert len(say_what_is_lost(pulsar, config)) == 1


def test_an_empty_ledger_that_goes_with_an_unload_is_no_loss(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.reload(7)
    part.reload(8)
    assert part.ledgers == [8]
    part.write("8a")
    part.roll(9)
    assert sorted(pulsar.query(config)) == ["5a", "5b", "8a"]
    assert not say_what_is_lost(pulsar, config)
    # What is trimmed after its commit is no loss, either, with or without an unload.
    part.write("9a")
    part.roll(10)
    assert not say_what_is_lost(pulsar, config)
    part.reload(11)
    assert sorted(pulsar.query(config)) == ["5a", "5b", "8a", "9a"]


def test_an_empty_ledger_that_was_replaced_is_no_loss(tmp_path: Path) -> None:
    """Its first write failed. What the broker added before the commit is in the table."""
    part, pulsar, config = offloaded(tmp_path)
    assert pulsar.listing(part).trimmed
    part.replace_empty(7)
    part.write("7a")
    assert sorted(pulsar.query(config)) == ["5a", "5b", "7a"]
    part.roll(8)
    part.write("8a")
    assert sorted(pulsar.query(config)) == ["5a", "5b", "7a", "8a"]
    assert not say_what_is_lost(pulsar, config)
    assert sorted(pulsar.query(config)) == ["5a", "5b", "7a", "8a"]


def test_what_is_in_the_table_and_not_trimmed_yet_hides_no_loss(tmp_path: Path) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.write("6a", "6b")
    part.roll(7)
    part.ml.cursors["slow"] = (6, 0)
    pulsar.offload(config)  # of the open ledger 7 it says that it is empty
    assert part.ledgers == [6, 7]
    part.replace_empty(8)
    part.write("8a")
    assert sorted(pulsar.query(config)) == ["5a", "5b", "6a", "6b", "8a"]
    part.roll(9)
    part.write("9a")
    part.ml.cursors = {HOLD: (9, 0)}
    part.trim()
    assert part.ledgers == [9]
    with pytest.raises(ConfigurationError, match="ledger 7, and of any other before ledger 9,"):
        pulsar.query(config)


@pytest.mark.parametrize(("written", "found"), [(1, True), (3, True), (4, False), (6, False)])
def test_a_loss_shows_until_the_broker_has_counted_as_far_as_at_the_commit(
    tmp_path: Path, written: int, found: bool
) -> None:
    """Nobody can tell loads apart: beyond that, it may be what the table has."""
    part, pulsar, config = offloaded(tmp_path)
    part.write("6a", "6b")
    part.roll(7)
    pulsar.offload(config)
    assert part.ml.added == 4
    part.reload(8)
    pulsar.delete_hold(part.partition)
    part.write("8a")
    part.roll(9)
    assert part.ledgers == [9]
    part.write(*map(str, range(written - 1)))
    if found:
        with pytest.raises(ConfigurationError, match="ledger 7, and of any other before ledger 9,"):
            pulsar.query(config)
    else:
        assert len(pulsar.query(config)) == 4 + written - 1


def with_another(tmp_path: Path, created_at: str) -> tuple[SmallPulsar, Config]:
    """A partition that is added, written to, and trimmed before it has a hold."""
    one = SmallPartition(Partition(TOPIC, 0), first=5)
    pulsar = SmallPulsar(one)
    config = pulsar.config(tmp_path)
    pulsar.create_hold(one.partition, HOLD)
    one.write("5a")
    one.roll(6)
    pulsar.offload(config)
    other = SmallPartition(Partition(TOPIC, 1), first=50, created_at=created_at)
    pulsar.add(other)
    other.write("50a", "50b")
    other.roll(51)
    assert other.ledgers == [51]
    other.write("51a")
    return pulsar, config


def test_what_an_added_partition_lost_before_it_was_held_is_recorded(tmp_path: Path) -> None:
    pulsar, config = with_another(tmp_path, LATER)
    lost = "orders-partition-1: the messages before ledger 51 were deleted"
    with pytest.raises(ConfigurationError, match=lost):
        pulsar.query(config)
    pulsar.create_hold(Partition(TOPIC, 1), HOLD)
    pulsar.parts[Partition(TOPIC, 1)].roll(52)
    [line] = say_what_is_lost(pulsar, config)
    assert line.startswith("the messages before ledger 51")
    with pytest.raises(ConfigurationError, match=lost):
        pulsar.query(config)
    assert not say_what_is_lost(pulsar, config)  # said once: it is in the log now


def turns(offloader: TopicOffloader) -> None:
    while offloader.turn(TOPIC, now=True).more:
        pass


def test_a_loss_that_was_seen_is_recorded_after_an_unload(tmp_path: Path) -> None:
    """The unload makes the broker forget what it deleted."""
    pulsar, config = with_another(tmp_path, LATER)
    added = Partition(TOPIC, 1)
    pulsar.create_hold(added, HOLD)
    said: list[str] = []
    with pulsar.offloader(config, said.append) as offloader:
        offloader.observe(TOPIC)
        pulsar.parts[added].reload(52)
        assert not pulsar.listing(pulsar.parts[added]).trimmed
        turns(offloader)
        lost = "orders-partition-1: the messages before ledger 51 were deleted"
        assert [lost in one for one in said if "deleted" in one] == [True, True]
        with pytest.raises(ConfigurationError, match=lost):
            pulsar.query(config)
        said.clear()
        turns(offloader)
        assert not any(lost in one for one in said)  # it is in the log now


def test_a_loss_of_the_open_ledger_that_was_seen_is_recorded_after_an_unload(
    tmp_path: Path,
) -> None:
    part, pulsar, config = offloaded(tmp_path)
    part.write("6a")
    part.roll(7)
    part.ml.cursors[HOLD] = (7, 0)
    part.trim()
    with pulsar.offloader(config) as offloader:
        offloader.observe(TOPIC)
        part.write("7a")
        part.reload(8)
        turns(offloader)
    with pytest.raises(ConfigurationError, match="ledger 6, and of any other before ledger 7,"):
        pulsar.query(config)


def test_a_loss_is_seen_before_the_offloader_itself_unloads(tmp_path: Path) -> None:
    pulsar, _ = with_another(tmp_path, LATER)
    pulsar.create_hold(Partition(TOPIC, 1), HOLD)
    config = pulsar.config(tmp_path, offload={"rollover_after": "1s"})
    with pulsar.offloader(config) as offloader:
        turns(offloader)  # an observation before them would see the loss
    assert max(pulsar.parts[Partition(TOPIC, 1)].ledgers) > 51
    with pytest.raises(ConfigurationError, match="the messages before ledger 51 were deleted"):
        pulsar.query(config)


def test_a_loss_is_forgotten_with_a_topic_that_is_made_again(tmp_path: Path) -> None:
    pulsar, config = with_another(tmp_path, LATER)
    added = Partition(TOPIC, 1)
    pulsar.create_hold(added, HOLD)
    with pulsar.offloader(config) as offloader:
        offloader.observe(TOPIC)
        again = SmallPartition(added, first=60, created_at="2100-02-01T00:00:00.000Z")
        pulsar.add(again)
        pulsar.create_hold(added, HOLD)
        again.write("60a")
        again.roll(61)
        turns(offloader)
    assert sorted(pulsar.query(config)) == ["5a", "60a"]


@pytest.mark.parametrize("created_at", ["2020-01-01T00:00:00.000Z", LATER])
def test_what_a_partition_lost_before_the_topic_was_held_is_not(
    tmp_path: Path, created_at: str
) -> None:
    """The partition is older than the table, whatever the broker's clock says."""
    one = SmallPartition(Partition(TOPIC, 0), first=5)
    other = SmallPartition(Partition(TOPIC, 1), first=50, created_at=created_at)
    other.write("50a", "50b")
    other.roll(51)
    assert other.ledgers == [51]
    pulsar = SmallPulsar(one, other)
    config = pulsar.config(tmp_path)
    pulsar.create_hold(one.partition, HOLD)
    one.write("5a")
    one.roll(6)
    pulsar.offload(config)
    other.write("51a")
    assert not say_what_is_lost(pulsar, config)
    assert sorted(pulsar.query(config)) == ["51a", "5a"]
