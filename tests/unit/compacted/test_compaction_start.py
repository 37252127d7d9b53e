"""The log says from where on Pulsar compacts a partition, before Pulsar may delete anything."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.config import Config, load_config
from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from tests.support.additions import addition, open_table
from tests.unit.plan.test_snapshot import PART, TOPIC, opened, sealed
from tests.unit.turns.test_restored_cluster import ScriptedAdmin, offloader, part

LISTED = part([sealed(7), sealed(8), opened(9)], "8:9")


class Compacting(ScriptedAdmin):
    """``ScriptedAdmin`` of a partition that Pulsar compacts, or not: ``compacts``."""

    compacts = True

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        found = super().ledgers(partition)
        cursors = dict(found.cursors)
        if self.compacts:
            cursors["__compaction"] = Position(7, 0)
        return replace(found, cursors=cursors)

    def move_hold(self, partition: Partition, name: str, to: Position) -> bool:
        self.recorded_at_move = open_table(self.storage, TOPIC).numbers(PART).compaction_start
        return super().move_hold(partition, name, to)

    storage: Any = None
    recorded_at_move: int | None = None


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config({"storage": {"uri": str(tmp_path)}, "offload": {"grace": "0s"}})


@pytest.fixture
def storage(config: Config) -> Storage:
    made = open_storage(config.storage)
    DeltaCommitter(made).commit(None, addition(made, TOPIC, [7, 8], partition=-1))
    return made


def test_it_is_recorded_before_the_hold_moves(config: Config, storage: Storage) -> None:
    admin = Compacting(LISTED, held=Position(7, 0))
    admin.storage = storage
    turns = offloader(config, storage, admin)

    def table() -> TopicTable:
        return open_table(storage, TOPIC)

    turns.observe(TOPIC)
    assert (admin.recorded_at_move, admin.moves) == (7, [Position(9, 0)])
    before = table().version
    admin.listed = part([sealed(8), opened(9)], "8:9")  # 7 was compacted, and deleted
    turns.observe(TOPIC)
    assert (table().numbers(PART).compaction_start, table().version) == (7, before), "once"
    admin.compacts = False
    turns.observe(TOPIC)
    assert table().numbers(PART).compaction_start is None
    admin.compacts = True
    turns.observe(TOPIC)
    assert table().numbers(PART).compaction_start == 8, "what a new cursor finds"


def test_without_compaction_nothing_is_recorded(config: Config, storage: Storage) -> None:
    admin = Compacting(LISTED, held=Position(7, 0))
    admin.compacts, admin.storage = False, storage
    before = open_table(storage, TOPIC).version
    offloader(config, storage, admin).observe(TOPIC)
    assert (admin.moves, open_table(storage, TOPIC).version) == ([Position(9, 0)], before)


def test_a_topic_that_is_made_again_begins_anew(config: Config, storage: Storage) -> None:
    admin = Compacting(LISTED, held=Position(7, 0))
    admin.storage = storage
    offloader(config, storage, admin).observe(TOPIC)
    admin.listed = replace(part([sealed(20), opened(21)], "20:9"), created_at="again")
    offloader(config, storage, admin).observe(TOPIC)
    assert open_table(storage, TOPIC).numbers(PART).compaction_start == 7, "of the table's life"
    more = addition(storage, TOPIC, [20], before=8, partition=-1)
    again = tuple(replace(one, created_at="again") for one in more.advances)
    DeltaCommitter(storage).commit(open_table(storage, TOPIC), replace(more, advances=again))
    assert open_table(storage, TOPIC).numbers(PART).compaction_start is None
    offloader(config, storage, admin).observe(TOPIC)
    assert open_table(storage, TOPIC).numbers(PART).compaction_start == 20
