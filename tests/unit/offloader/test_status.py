"""A topic's status from its table's log, where Pulsar does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from offloader.commit.append import append
from offloader.service.status import topic_status
from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from reader.table import LoggedCommit, TopicTable
from tests.support.additions import addition, open_table

TOPIC = Topic("public", "default", "orders")


class NoAdmin:
    def partitions(self, topic: Topic) -> list[Partition]:
        raise UnavailableError("no answer")


def test_the_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    clients = Clients(config, admin=cast(Any, NoAdmin()))
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
