"""A topic's status from its table's log, where Pulsar does not answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from offloader.backlog import topic_backlog
from offloader.commit.delta_committer import DeltaCommitter
from offloader.service.status import topic_status
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Partition, SchemaInfo, Topic
from reader.pulsar.ledgers import PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import LoggedCommit, TopicTable
from tests.support.additions import addition, open_table
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, SmallPartition, SmallPulsar

TOPIC = Topic("public", "default", "orders")

_NO_ANSWER = UnavailableError("no answer")


class NoAdmin:
    """Pulsar does not answer."""

    def partitions(self, topic: Topic) -> list[Partition]:
        raise _NO_ANSWER

    def require_consume(self, topic: Topic) -> None:
        raise _NO_ANSWER

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
        raise _NO_ANSWER

    def subscription_properties(self, partition: Partition) -> dict[str, dict[str, str]]:
        raise _NO_ANSWER

    def schemas(self, topic: Topic) -> tuple[SchemaInfo, ...]:
        raise _NO_ANSWER

    def message_ttl(self, topic: Topic) -> int | None:
        raise _NO_ANSWER

    def subscription_expiry(self, topic: Topic) -> int | None:
        raise _NO_ANSWER

    def shadow_source(self, topic: Topic) -> str | None:
        raise _NO_ANSWER

    def is_migrated(self, topic: Topic) -> bool:
        raise _NO_ANSWER

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]:
        raise _NO_ANSWER


@dataclass
class OnlyStorage:
    storage: Storage
    admin: NoAdmin = field(default_factory=NoAdmin)


def test_the_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = OnlyStorage(open_storage(StorageConfig(uri=str(tmp_path))))
    DeltaCommitter(clients.storage).commit(None, addition(clients.storage, TOPIC, [3]))
    table = open_table(clients.storage, TOPIC)
    for number in (1, 2):
        table.handle.delete(f"id = {number}")
    read: list[int] = []
    commits = TopicTable.commits

    def counted(self: TopicTable) -> Iterator[LoggedCommit]:
        for one in commits(self):
            read.append(one.version)
            yield one

    monkeypatch.setattr(TopicTable, "commits", counted)
    found = topic_status(clients, "pulsar-lake", TOPIC, clock_ms=0, failures={})
    newest = open_table(clients.storage, TOPIC).version
    assert read == list(range(newest, -1, -1))
    assert found.last_commit is not None
    assert (found.last_commit.ledgers, found.last_commit.rows) == (1, 10)
    assert found.last_commit.version == newest - 2
    unanswered, *external = found.errors
    assert unanswered == "no answer"
    assert [f"version {newest - 1}" in external[0], f"version {newest}" in external[1]] == [
        True
    ] * 2


def test_where_the_table_cannot_be_read_no_lag_is_made_up(tmp_path: Path) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    config = pulsar.config(tmp_path)
    pulsar.create_hold(part.partition, HOLD)
    part.write("a")
    part.roll(6)
    with pulsar.clients(config) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
        assert [one.lag_ledgers for one in found.partitions] == [1]
        assert found.to_json()["observed_at"] == NOW_MS / 1000
        log = Path(clients.storage.table_uri(TOPIC), "_delta_log")
        log.mkdir(parents=True)
        Path(log, f"{0:020d}.json").write_text("no commit")
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
    assert (found.backlog, found.partitions, found.lag_ledgers) == (None, (), 0)
    assert [one for one in found.errors if "cannot read the table" in one]
    assert found.to_json()["observed_at"] is None


def test_a_ledger_that_a_recovery_closed_is_due_and_has_no_lag_of_years() -> None:
    """Nobody knows when that was: it is the oldest, and the lag is that of the next."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    part.ml.cursors[HOLD] = (5, 0)
    for ledger in (5, 6):
        part.write("a")
        part.roll(ledger + 1)
    listing = SmallPulsar(part).listing(part)
    recovered, *others = listing.ledgers
    listing = replace(listing, ledgers=(replace(recovered, closed_at=None), *others))
    at = NOW_MS / 1000
    found = topic_backlog(
        [listing], {}, at=at, asked=0.0, read=0.0, version=None, subscription=HOLD
    )
    assert (found.ledgers, found.oldest) == (2, 0.0)
    assert found.lag_seconds(at + 60) == pytest.approx(60)
