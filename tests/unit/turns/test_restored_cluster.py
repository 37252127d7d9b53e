"""A cluster that was restored and gives ledger ids again: no hold moves, nothing is added."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.config import Config, load_config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.plan.history import last_closed
from reader.pulsar import AdminClient, LedgerInfo, PartitionLedgers
from reader.storage import Storage, open_storage
from tests.support.additions import CREATED, addition
from tests.support.conversions import no_jobs
from tests.unit.plan.test_snapshot import PART, TOPIC, listing, opened, sealed

HOLD = "pulsar-lake"
FIRST = Position(5, 0)


@dataclass
class ScriptedAdmin:
    """One partition, listed as it is set; ``moves`` are those of the hold."""

    listed: PartitionLedgers
    held: Position = FIRST
    moves: list[Position] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)

    def partitions(self, topic: Topic, *, known: object = ()) -> list[Partition]:
        return [PART]

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        return replace(self.listed, cursors={HOLD: self.held})

    def create_hold(self, partition: Partition, name: str) -> bool:
        return False

    def move_hold(self, partition: Partition, name: str, to: Position) -> bool:
        self.held = to
        self.moves.append(to)
        return True

    def hold_properties(self, partition: Partition, name: str) -> Mapping[str, str]:
        return self.properties

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        return {HOLD: self.properties}

    def note_hold(self, partition: Partition, name: str, properties: Mapping[str, str]) -> bool:
        self.properties = dict(properties)
        return True

    def shadow_source(self, topic: Topic) -> None: ...

    def message_ttl(self, topic: Topic) -> None: ...

    def subscription_expiry(self, topic: Topic) -> None: ...

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Any]:
        return {}


def part(ledgers: Sequence[LedgerInfo], last: str) -> PartitionLedgers:
    return listing(ledgers, last, created_at=CREATED)


def closed(ledger: int, at: int) -> LedgerInfo:
    return sealed(ledger, closed_at=at)


BACKUP = [closed(5, 500), closed(6, 600)]
BEFORE = part([*BACKUP, closed(7, 700), closed(8, 800), opened(9)], "8:9")


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return load_config({"storage": {"uri": str(tmp_path)}, "offload": {"grace": "0s"}})


@pytest.fixture
def storage(config: Config) -> Storage:
    """5 to 8 are offloaded."""
    made = open_storage(config.storage)
    added = addition(made, TOPIC, [5, 6, 7, 8], partition=-1)
    [advance] = added.advances
    advance = replace(advance, closed=last_closed(None, BEFORE, 8))
    times = {one.ledger_id: one.closed_at for one in BEFORE.ledgers}
    ledgers = tuple(replace(one, closed_at=times[one.ledger]) for one in added.ledgers)
    DeltaCommitter(made).commit(None, replace(added, advances=(advance,), ledgers=ledgers))
    return made


def offloader(config: Config, storage: Storage, admin: ScriptedAdmin) -> TopicOffloader:
    clients = Clients(config, admin=cast(AdminClient, admin), storage=storage)
    return TopicOffloader(clients, config.offload, no_jobs())


def test_the_hold_of_the_same_cluster_moves(config: Config, storage: Storage) -> None:
    admin = ScriptedAdmin(BEFORE)
    offloader(config, storage, admin).observe(TOPIC)
    assert admin.moves == [Position(9, 0)]


RESTORED = {
    "given again": part([*BACKUP, closed(7, 2700), closed(8, 2800), opened(9)], "8:9"),
    "at the same times": part(
        [*BACKUP, closed(7, 700), sealed(8, 7, closed_at=800), opened(9)], "8:6"
    ),
    "not there yet": part([*BACKUP, opened(7)], "6:9"),
}


@pytest.mark.parametrize("held", [Position(5, 0), Position(9, 0), Position(12, 0)])
@pytest.mark.parametrize("after", RESTORED.values(), ids=RESTORED)
def test_the_hold_of_a_restored_one_does_not(
    config: Config, storage: Storage, after: PartitionLedgers, held: Position
) -> None:
    """Neither forward, over messages that no table has, nor back."""
    admin = ScriptedAdmin(after, held)
    turns = offloader(config, storage, admin)
    for act in (turns.observe, turns.turn, turns.release):
        with pytest.raises(ConfigurationError, match="before a restore"):
            act(TOPIC)
    assert admin.moves == []


def test_it_is_seen_by_a_process_that_has_seen_the_other(config: Config, storage: Storage) -> None:
    admin = ScriptedAdmin(BEFORE)
    turns = offloader(config, storage, admin)
    turns.observe(TOPIC)
    for after in RESTORED.values():
        admin.listed = after
        with pytest.raises(ConfigurationError, match="before a restore"):
            turns.observe(TOPIC)
    admin.listed = BEFORE
    turns.observe(TOPIC)
    assert admin.moves == [Position(9, 0)]
