"""Another offloader of the topic that is a moment faster: nothing has failed, for either."""

from pathlib import Path

import pytest

from offloader.config import Config
from reader.errors import UnavailableError
from reader.model import Partition
from reader.pulsar import WATERMARK_KEY
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar


@pytest.fixture
def part() -> SmallPartition:
    made = SmallPartition(Partition(TOPIC, -1), first=5)
    made.write("5a")
    return made


@pytest.fixture
def pulsar(part: SmallPartition) -> SmallPulsar:
    made = SmallPulsar(part)
    made.create_hold(part.partition, HOLD)
    part.roll(6)
    return made


@pytest.fixture
def config(pulsar: SmallPulsar, tmp_path: Path) -> Config:
    return pulsar.config(tmp_path / "lake")


def test_a_table_that_is_made_between_two_looks(pulsar: SmallPulsar, config: Config) -> None:
    """It was not there when the log was read, and the hold is moved for it already."""
    said: list[str] = []
    with pulsar.offloader(config, said.append) as slower:
        slower.observe(TOPIC)
        pulsar.rest.in_between = lambda: pulsar.offload(config)
        turn = slower.turn(TOPIC, now=True)
    assert pulsar.rest.in_between is None
    assert turn.committed is None
    assert [one for one in said if "planning again: another offloader has made" in one]
    assert pulsar.query(config) == ["5a"]


def test_a_hold_that_others_are_changing(
    pulsar: SmallPulsar, part: SmallPartition, config: Config
) -> None:
    """What they have noted down is kept."""
    pulsar.rest.changing = 3
    pulsar.offload(config)
    assert part.ml.properties[HOLD][WATERMARK_KEY] == "5"
    assert part.ml.properties[HOLD]["theirs"] == "0 to come"
    assert part.ledgers == [6]


def test_a_hold_that_is_always_being_changed_is_not_moved(
    pulsar: SmallPulsar, part: SmallPartition, config: Config
) -> None:
    pulsar.rest.changing = 1_000
    with pytest.raises(UnavailableError, match="again and again"):
        pulsar.offload(config)
    assert part.ledgers == [5, 6]
    pulsar.rest.changing = 0
    pulsar.offload(config)
    assert part.ledgers == [6]
    assert pulsar.query(config) == ["5a"]
