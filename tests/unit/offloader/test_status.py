"""A topic's status from its table's log, where Pulsar does not answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.append import append
from offloader.service.status import topic_status
from reader.config import StorageConfig
from reader.errors import UnavailableError
from reader.model import Partition, SchemaInfo, Topic
from reader.pulsar.ledgers import PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import LoggedCommit, TopicTable
from tests.support.additions import addition, open_table

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

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]:
        raise _NO_ANSWER


@dataclass
class OnlyStorage:
    storage: Storage
    admin: NoAdmin = field(default_factory=NoAdmin)


def test_the_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = OnlyStorage(open_storage(StorageConfig(uri=str(tmp_path))))
    append(clients.storage, None, addition(clients.storage, TOPIC, [3]))
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
